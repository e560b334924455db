#ifndef AAH_IO_FILE_H_
#define AAH_IO_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

// Files that are read whole or mapped, and files that appear whole or not at all.
//
// Every function here throws aah::Error: kBadInput where the path is wrong for the user to mend (no
// such file, no permission, a folder where a file was expected, a file over its limit), kMachine
// where the machine failed (disk full, input/output error). Messages name the path and the reason.

namespace aah {

// The whole file. Refuses a file of more than `max_bytes` before it allocates anything.
std::string ReadFile(const std::filesystem::path& path,
                     int64_t max_bytes = std::numeric_limits<int64_t>::max());

// A regular file mapped read-only; the pages live as long as the object. The file must not be cut
// short by others while it is mapped (the files written through this header never are: they are
// replaced, and a mapping keeps the old one).
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

// Writes `path` by way of a temporary file in the same folder: readers see the old content or the
// new one, never a part. Without Commit() nothing of it remains.
class AtomicFileWriter {
 public:
  explicit AtomicFileWriter(const std::filesystem::path& path);
  ~AtomicFileWriter();
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text);
  // Overwrites bytes written before, from `offset` on: for a header whose figures are known last.
  void WriteAt(int64_t offset, std::span<const std::byte> bytes);
  int64_t bytes_written() const { return bytes_written_; }

  // Flushes to the disk, renames over `path`, flushes the folder. To be called once.
  void Commit();

 private:
  [[noreturn]] void Fail(const char* what, int error_number);
  void Discard() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  int64_t bytes_written_ = 0;
};

void WriteFileAtomically(const std::filesystem::path& path, std::string_view text);
void WriteFileAtomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

// A folder that appears whole or not at all, as AtomicFileWriter does for a file: fill
// temporary_path(), then Commit(). `path` must not exist yet.
class AtomicFolderWriter {
 public:
  explicit AtomicFolderWriter(const std::filesystem::path& path);
  ~AtomicFolderWriter();
  AtomicFolderWriter(const AtomicFolderWriter&) = delete;
  AtomicFolderWriter& operator=(const AtomicFolderWriter&) = delete;

  const std::filesystem::path& temporary_path() const { return temporary_; }

  // Flushes every file in it, renames it to `path`, flushes the folder above. To be called once.
  void Commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

// Removes what the writers above left beside `path` where their process was killed. REQUIRES: no
// process is writing `path`. What cannot be removed stays.
void RemoveUnfinished(const std::filesystem::path& path);

// Flushes a file, or the list of names of a folder, to the disk.
void SyncToDisk(const std::filesystem::path& path);

// Makes the folder and those above it; one that is there already must be writable.
void CreateFolder(const std::filesystem::path& path);

// Appends whole lines (JSON Lines, mostly) to a file that others may follow while it grows. Each
// line reaches the system in one write; a line that does not fit on the disk is taken back whole.
class AppendLog {
 public:
  explicit AppendLog(const std::filesystem::path& path);
  ~AppendLog();
  AppendLog(AppendLog&& other) noexcept;
  AppendLog& operator=(AppendLog&& other) noexcept;
  AppendLog(const AppendLog&) = delete;
  AppendLog& operator=(const AppendLog&) = delete;

  // REQUIRES: `line` holds no line break.
  void Append(std::string_view line);
  // Flushes to the disk; to be called before a checkpoint says the log reaches so far.
  void Sync();
  int64_t size() const { return size_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// Cuts a log before the first line for which `keep` is false or that has no line break (what a
// killed process may leave). A file that does not exist stays so. Returns the bytes left.
int64_t TruncateLog(const std::filesystem::path& path,
                    const std::function<bool(std::string_view line)>& keep);

}  // namespace aah

#endif  // AAH_IO_FILE_H_
