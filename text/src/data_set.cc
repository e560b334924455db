#include "data_set.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "aah/error.h"

namespace aah {

void CheckOutputFree(const std::string& output, bool overwrite) {
  AAH_CHECK(!output.empty(), "name the folder the data set goes to");
  std::error_code ignored;
  const auto token_path = std::filesystem::path(output) / "tokens.bin";
  AAH_CHECK(overwrite || !std::filesystem::exists(token_path, ignored), output,
            ": there is a data set already; name another folder or ask to overwrite it");
}

namespace {

std::filesystem::path MakeFor(const std::filesystem::path& folder) {
  CreateFolder(folder);
  const std::filesystem::path unfinished = folder / "unfinished";
  RemoveUnfinished(unfinished);
  return unfinished;
}

}  // namespace

NewFolders::NewFolders(const std::filesystem::path& path) {
  std::error_code ignored;
  for (std::filesystem::path folder = path;
       !folder.empty() && !std::filesystem::exists(folder, ignored);
       folder = folder.parent_path()) {
    folders_.push_back(folder);
  }
}

NewFolders::~NewFolders() {
  std::error_code ignored;
  for (const auto& folder : folders_) {
    if (std::filesystem::is_directory(folder, ignored)) std::filesystem::remove(folder, ignored);
  }
}

DataSetFolder::DataSetFolder(const std::string& output)
    : folder_(output), new_folders_(folder_), unfinished_(MakeFor(folder_)) {}

void DataSetFolder::Commit() {
  const auto fail = [&](const std::string& what, const std::error_code& error) {
    ThrowError(ErrorKind::kMachine, "cannot ", what, ": ", error.message());
  };
  std::vector<std::string> stale;  // of an earlier data set, without a successor
  std::error_code error;
  for (const char* name : {"tokenizer.json", "data.json", "tokens.bin"}) {
    if (!std::filesystem::exists(unfinished() / name, error)) {
      stale.emplace_back(name);
      continue;
    }
    std::filesystem::rename(unfinished() / name, folder_ / name, error);
    if (error) fail(std::string("move the new ") + name + " to " + folder_.string(), error);
  }
  for (const std::string& name : stale) {
    std::filesystem::remove(folder_ / name, error);
    if (error) fail("remove the old " + (folder_ / name).string(), error);
  }
  SyncToDisk(folder_);
}

nlohmann::ordered_json DescribeSplits(const TokenFileInfo& info) {
  nlohmann::ordered_json splits = nlohmann::ordered_json::object();
  for (int i = 0; i < kSplitCount; ++i) {
    const SplitInfo& split = info.splits[i];
    splits[std::string(SplitName(static_cast<Split>(i)))] = {{"tokens", split.tokens.size()},
                                                             {"documents", split.documents.size()},
                                                             {"text_bytes", split.text_bytes}};
  }
  return splits;
}

}  // namespace aah
