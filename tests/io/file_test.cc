#include "aah/io/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "aah/error.h"
#include "tests/io/error_of.h"
#include "tests/io/file_size_limit.h"
#include "tests/io/temporary_folder.h"

namespace aah {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(ReadFile, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::string text("a\0b\n\xff", 5);
  WriteFileAtomically(folder / "x", text);
  EXPECT_EQ(ReadFile(folder / "x"), text);
  EXPECT_EQ(TextOf(MappedFile(folder / "x")), text);
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(ReadFile, RefusesAFileOverTheLimitBeforeReadingIt) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "x", "12345");
  EXPECT_EQ(ReadFile(folder / "x", 5), "12345");
  EXPECT_THAT(ErrorOf([&] { ReadFile(folder / "x", 4); }),
              HasSubstr("5 bytes, expected at most 4"));
}

TEST(ReadFile, NamesThePathAndTheReason) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing").string();
  EXPECT_EQ(ErrorOf([&] { ReadFile(missing); }),
            "cannot read " + missing + ": no such file or folder");
  EXPECT_THAT(ErrorOf([&] { ReadFile(folder.path()); }),
              HasSubstr("expected a file, got a folder"));
  EXPECT_THAT(ErrorOf([&] { MappedFile("/dev/null"); }),
              HasSubstr("expected a regular file, got a device or pipe"));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf([&] { ReadFile(folder / "pipe", 10); }), HasSubstr("or pipe"));
  EXPECT_THAT(ErrorOf([&] { MappedFile(folder / "pipe"); }), HasSubstr("or pipe"));
  EXPECT_EQ(KindThrownBy([&] { ReadFile(missing); }), ErrorKind::kBadInput);
}

TEST(MappedFile, OfAnEmptyFileIsEmpty) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "x", "");
  EXPECT_EQ(MappedFile(folder / "x").size(), 0);
}

TEST(MappedFile, MovesAndKeepsTheOldContentOverAReplacement) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "x", "old");
  MappedFile first(folder / "x");
  WriteFileAtomically(folder / "x", "newer");
  MappedFile second(folder / "x");
  EXPECT_EQ(TextOf(first), "old");
  first = std::move(second);
  EXPECT_EQ(TextOf(first), "newer");
  const MappedFile third(std::move(first));
  EXPECT_EQ(TextOf(third), "newer");
  EXPECT_EQ(third.name(), (folder / "x").string());
}

TEST(AtomicFileWriter, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "x", "old");
  {
    AtomicFileWriter writer(folder / "x");
    writer.Write("new");
    EXPECT_EQ(folder.entry_count(), 2);
    EXPECT_EQ(ReadFile(folder / "x"), "old");
  }
  EXPECT_EQ(ReadFile(folder / "x"), "old");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFileWriter, OverwritesAHeaderAndGoesOnAtTheEnd) {
  const TemporaryFolder folder;
  AtomicFileWriter writer(folder / "x");
  writer.Write("....body");
  constexpr std::array<std::byte, 2> kHead = {std::byte{'o'}, std::byte{'k'}};
  writer.WriteAt(1, kHead);
  writer.Write("+end");
  EXPECT_EQ(writer.bytes_written(), 12);
  EXPECT_THROW(writer.WriteAt(11, kHead), Error);
  EXPECT_THROW(writer.WriteAt(-1, kHead), Error);
  writer.Commit();
  EXPECT_EQ(ReadFile(folder / "x"), ".ok.body+end");
}

TEST(AtomicFileWriter, OnAFullDiskKeepsTheOldFileAndBlamesTheMachine) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "x", "old");
  const auto write = [&] {
    const FileSizeLimit limit(1000);
    WriteFileAtomically(folder / "x", std::string(5000, 'n'));
  };
  EXPECT_THAT(ErrorOf(write), AllOf(HasSubstr("cannot write " + (folder / "x").string()),
                                    HasSubstr("what was there before is unchanged")));
  EXPECT_EQ(KindThrownBy(write), ErrorKind::kMachine);
  EXPECT_EQ(ReadFile(folder / "x"), "old");
  EXPECT_EQ(folder.entry_count(), 1);
}

TEST(AtomicFileWriter, RefusesAMissingFolderAndAFolderAsTarget) {
  const TemporaryFolder folder;
  const auto write = [&] { WriteFileAtomically(folder / "no/x", "text"); };
  EXPECT_THAT(ErrorOf(write), HasSubstr("cannot write in the folder"));
  EXPECT_EQ(KindThrownBy(write), ErrorKind::kBadInput);
  EXPECT_THAT(ErrorOf([&] { WriteFileAtomically(folder.path(), "text"); }),
              HasSubstr("a folder of that name exists"));
}

TEST(AtomicFileWriter, NeverTakesThePlaceOfADeviceOrPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {std::string(folder / "pipe"), std::string("/dev/null")}) {
    EXPECT_THAT(ErrorOf([&] { WriteFileAtomically(path, "text"); }),
                HasSubstr("expected a regular file or none, got a device or pipe"));
    EXPECT_FALSE(std::filesystem::is_regular_file(path));
  }
}

TEST(AtomicFolderWriter, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  {
    const AtomicFolderWriter writer(folder / "step-1");
    WriteFileAtomically(writer.temporary_path() / "a", "1");
    EXPECT_FALSE(std::filesystem::exists(folder / "step-1"));
  }
  EXPECT_EQ(folder.entry_count(), 0);
  {
    AtomicFolderWriter writer(folder / "runs/step-1");
    WriteFileAtomically(writer.temporary_path() / "a", "1");
    writer.Commit();
  }
  EXPECT_EQ(ReadFile(folder / "runs/step-1/a"), "1");
  EXPECT_THAT(ErrorOf([&] { AtomicFolderWriter(folder / "runs/step-1"); }),
              HasSubstr("it exists, choose another"));
}

TEST(RemoveUnfinished, RemovesWhatKilledProcessesLeft) {
  const TemporaryFolder folder;
  RemoveUnfinished(folder / "no/x");
  {
    const AtomicFolderWriter other(folder / "xy");
    CreateFolder(folder / ".x.tmp-1-2-3/a");
    WriteFileAtomically(folder / ".x.tmp-1-2-3/a/b", "1");
    WriteFileAtomically(folder / ".x.tmp-4-5-6", "1");
    WriteFileAtomically(folder / "x", "1");
    RemoveUnfinished(folder / "x");
    EXPECT_EQ(folder.entry_count(), 2);
    EXPECT_TRUE(std::filesystem::exists(other.temporary_path()));
    RemoveUnfinished(folder / "xy");
  }
  EXPECT_EQ(folder.entry_count(), 1);
  EXPECT_EQ(ReadFile(folder / "x"), "1");
}

TEST(CreateFolder, MakesAllOfThePathAndRefusesAFileOnIt) {
  const TemporaryFolder folder;
  CreateFolder(folder / "a/b/c");
  CreateFolder(folder / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  WriteFileAtomically(folder / "a/file", "");
  EXPECT_EQ(KindThrownBy([&] { CreateFolder(folder / "a/file/sub"); }), ErrorKind::kBadInput);
  EXPECT_EQ(KindThrownBy([&] { CreateFolder(folder / "a/file"); }), ErrorKind::kBadInput);
}

TEST(CreateFolder, RefusesAnUnwritableFolder) {
  if (geteuid() == 0) {
    // Root may write anywhere except where the system itself refuses.
    EXPECT_EQ(KindThrownBy([] { CreateFolder("/proc/aah"); }), ErrorKind::kBadInput);
    return;
  }
  const TemporaryFolder folder;
  CreateFolder(folder / "locked");
  chmod((folder / "locked").c_str(), 0500);
  EXPECT_THAT(ErrorOf([&] { CreateFolder(folder / "locked"); }),
              HasSubstr("choose a place you can write to"));
}

TEST(AppendLog, AddsLinesAcrossOpenings) {
  const TemporaryFolder folder;
  {
    AppendLog log(folder / "log");
    log.Append("one");
    log.Append("two");
    log.Sync();
    EXPECT_EQ(log.size(), 8);
    AppendLog moved(std::move(log));
    moved.Append("three");
  }
  AppendLog again(folder / "log");
  EXPECT_EQ(again.size(), 14);
  again.Append("four");
  EXPECT_EQ(ReadFile(folder / "log"), "one\ntwo\nthree\nfour\n");
}

TEST(AppendLog, TakesBackALineThatDoesNotFitOnTheDisk) {
  const TemporaryFolder folder;
  AppendLog log(folder / "log");
  log.Append("one");
  {
    const FileSizeLimit limit(10);
    const auto append = [&] { log.Append(std::string(100, 'x')); };
    EXPECT_THAT(ErrorOf(append), HasSubstr("its earlier lines are unchanged"));
    EXPECT_EQ(KindThrownBy(append), ErrorKind::kMachine);
  }
  log.Append("two");
  EXPECT_EQ(ReadFile(folder / "log"), "one\ntwo\n");
}

TEST(TruncateLog, CutsAtTheFirstLineThatGoesAndAtAHalfLine) {
  const TemporaryFolder folder;
  const auto is_short = [](std::string_view line) { return line.size() < 4; };
  WriteFileAtomically(folder / "log", "1\n22\n4444\n1\n");
  EXPECT_EQ(TruncateLog(folder / "log", is_short), 5);
  EXPECT_EQ(ReadFile(folder / "log"), "1\n22\n");
  WriteFileAtomically(folder / "log", "1\n22\n33");
  EXPECT_EQ(TruncateLog(folder / "log", is_short), 5);
  EXPECT_EQ(ReadFile(folder / "log"), "1\n22\n");
  EXPECT_EQ(TruncateLog(folder / "log", is_short), 5);
  EXPECT_EQ(TruncateLog(folder / "none", is_short), 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

}  // namespace
}  // namespace aah
