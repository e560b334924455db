#include "aah/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

constexpr mode_t kFileMode = 0666;  // the umask decides
// A pipe is opened at once, to be refused, instead of waiting for its writer.
constexpr int kOpenToRead = O_RDONLY | O_NONBLOCK;

// What users can mend is bad input, the rest is the machine's.
ErrorKind KindOf(int error_number) {
  switch (error_number) {
    case EACCES:
    case EEXIST:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOTDIR:
    case ENOTEMPTY:
    case EPERM:
    case EROFS:
      return ErrorKind::kBadInput;
    default:
      return ErrorKind::kMachine;
  }
}

std::string Reason(int error_number) {
  if (error_number == ENOSPC || error_number == EDQUOT) return "the disk is full";
  if (error_number == ENOENT) return "no such file or folder";
  return std::generic_category().message(error_number);
}

std::filesystem::path FolderOf(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

std::string TemporaryPrefix(const std::filesystem::path& path) {
  return "." + path.filename().string() + ".tmp-";
}

// A name beside `path` that no other process or thread uses. The time is part of it since process
// numbers return (in a container soon), and a killed process may have left its file.
std::filesystem::path TemporaryBeside(const std::filesystem::path& path) {
  static std::atomic<int> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string name = TemporaryPrefix(path) + std::to_string(getpid()) + "-" +
                           std::to_string(now) + "-" + std::to_string(counter.fetch_add(1));
  return FolderOf(path) / name;
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : number_(open(path.c_str(), flags | O_CLOEXEC, kFileMode)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Opens for reading and refuses what is not a regular file. Returns the size.
int64_t SizeOfRegularFile(const Descriptor& file, const std::string& name) {
  AAH_CHECK(file.number() >= 0 || KindOf(errno) != ErrorKind::kBadInput, "cannot read ", name, ": ",
            Reason(errno));
  struct stat status = {};
  if (file.number() < 0 || fstat(file.number(), &status) != 0) {
    ThrowError(ErrorKind::kMachine, "cannot read ", name, ": ", Reason(errno));
  }
  AAH_CHECK(!S_ISDIR(status.st_mode), "cannot read ", name, ": expected a file, got a folder");
  AAH_CHECK(S_ISREG(status.st_mode), "cannot read ", name,
            ": expected a regular file, got a device or pipe");
  return status.st_size;
}

// Returns 0 or the error number.
int WriteAll(int descriptor, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(descriptor, data, std::min(size, size_t{1} << 30));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    data += written;
    size -= static_cast<size_t>(written);
  }
  return 0;
}

}  // namespace

std::string ReadFile(const std::filesystem::path& path, int64_t max_bytes) {
  const std::string name = path.string();
  const Descriptor file(path, kOpenToRead);
  const int64_t size = SizeOfRegularFile(file, name);
  AAH_CHECK(size <= max_bytes, "cannot read ", name, ": ", size, " bytes, expected at most ",
            max_bytes);
  std::string content(static_cast<size_t>(size), '\0');
  size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t count = read(file.number(), content.data() + filled, content.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowError(ErrorKind::kMachine, "cannot read ", name, ": ", Reason(errno));
    if (count == 0) break;  // cut short by another process since its size was asked for
    filled += static_cast<size_t>(count);
  }
  content.resize(filled);
  return content;
}

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  const Descriptor file(path, kOpenToRead);
  const auto size = static_cast<size_t>(SizeOfRegularFile(file, name_));
  if (size == 0) return;
  void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
  if (address == MAP_FAILED) {
    ThrowError(ErrorKind::kMachine, "cannot map ", name_, ": ", Reason(errno));
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

AtomicFileWriter::AtomicFileWriter(const std::filesystem::path& path)
    : path_(path), temporary_(TemporaryBeside(path)) {
  AAH_CHECK(path.has_filename(), "cannot write '", path.string(), "': expected a file name");
  AAH_CHECK(!std::filesystem::is_directory(path), "cannot write ", path.string(),
            ": a folder of that name exists, choose another");
  // The rename would put a file in the place of a device, for everybody.
  std::error_code absent;
  const auto status = std::filesystem::status(path, absent);
  AAH_CHECK(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status),
            "cannot write ", path.string(), ": expected a regular file or none, got a device or ",
            "pipe; choose another path");
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
  if (descriptor_ < 0) {
    const int error_number = errno;
    ThrowError(KindOf(error_number), "cannot write in the folder ", FolderOf(path).string(), ": ",
               Reason(error_number), "; nothing was written, choose a folder you can write to");
  }
}

AtomicFileWriter::~AtomicFileWriter() { Discard(); }

void AtomicFileWriter::Discard() noexcept {
  if (descriptor_ < 0) return;
  close(descriptor_);
  descriptor_ = -1;
  unlink(temporary_.c_str());
}

void AtomicFileWriter::Fail(const char* what, int error_number) {
  Discard();
  ThrowError(KindOf(error_number), "cannot ", what, " ", path_.string(), ": ", Reason(error_number),
             "; what was there before is unchanged");
}

void AtomicFileWriter::Write(std::span<const std::byte> bytes) {
  Write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFileWriter::Write(std::string_view text) {
  const int error_number = WriteAll(descriptor_, text.data(), text.size());
  if (error_number != 0) Fail("write", error_number);
  bytes_written_ += static_cast<int64_t>(text.size());
}

void AtomicFileWriter::WriteAt(int64_t offset, std::span<const std::byte> bytes) {
  AAH_CHECK(offset >= 0 && static_cast<int64_t>(bytes.size()) <= bytes_written_ - offset,
            "WriteAt: bytes ", offset, " to ", offset + static_cast<int64_t>(bytes.size()),
            " are not among the ", bytes_written_, " written before");
  if (lseek(descriptor_, offset, SEEK_SET) < 0) Fail("write", errno);
  const int error_number =
      WriteAll(descriptor_, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (error_number != 0) Fail("write", error_number);
  if (lseek(descriptor_, bytes_written_, SEEK_SET) < 0) Fail("write", errno);
}

void AtomicFileWriter::Commit() {
  if (fsync(descriptor_) != 0 && errno != EINVAL) Fail("write", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) Fail("rename the new file to", errno);
  close(descriptor_);
  descriptor_ = -1;
  SyncToDisk(FolderOf(path_));
}

void WriteFileAtomically(const std::filesystem::path& path, std::string_view text) {
  AtomicFileWriter writer(path);
  writer.Write(text);
  writer.Commit();
}

void WriteFileAtomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFileWriter writer(path);
  writer.Write(bytes);
  writer.Commit();
}

AtomicFolderWriter::AtomicFolderWriter(const std::filesystem::path& path)
    : path_(path), temporary_(TemporaryBeside(path)) {
  AAH_CHECK(!std::filesystem::exists(path), "cannot make the folder ", path.string(),
            ": it exists, choose another");
  CreateFolder(FolderOf(path));
  if (mkdir(temporary_.c_str(), 0777) != 0) {
    const int error_number = errno;
    ThrowError(KindOf(error_number), "cannot make a folder in ", FolderOf(path).string(), ": ",
               Reason(error_number), "; nothing was written");
  }
}

AtomicFolderWriter::~AtomicFolderWriter() {
  if (committed_) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

void AtomicFolderWriter::Commit() {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_)) {
    SyncToDisk(entry.path());
  }
  SyncToDisk(temporary_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error_number = errno;
    ThrowError(KindOf(error_number), "cannot rename the new folder to ", path_.string(), ": ",
               Reason(error_number), "; nothing was written there");
  }
  committed_ = true;
  SyncToDisk(FolderOf(path_));
}

void RemoveUnfinished(const std::filesystem::path& path) {
  const std::string prefix = TemporaryPrefix(path);
  std::error_code ignored;
  std::filesystem::directory_iterator entry(FolderOf(path), ignored);
  std::vector<std::filesystem::path> unfinished;
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with(prefix)) unfinished.push_back(entry->path());
  }
  for (const auto& left : unfinished) std::filesystem::remove_all(left, ignored);
}

void SyncToDisk(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  // Some file systems cannot sync folders and say EINVAL: nothing to be done there.
  if (file.number() < 0 || (fsync(file.number()) != 0 && errno != EINVAL)) {
    ThrowError(KindOf(errno), "cannot write ", path.string(), " to the disk: ", Reason(errno));
  }
}

void CreateFolder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    ThrowError(KindOf(error.value()), "cannot make the folder ", path.string(), ": ",
               Reason(error.value()), "; choose a place you can write to");
  }
  AAH_CHECK(std::filesystem::is_directory(path), "cannot make the folder ", path.string(),
            ": a file of that name exists, choose another");
  AAH_CHECK(access(path.c_str(), W_OK | X_OK) == 0, "cannot write in the folder ", path.string(),
            ": ", Reason(errno), "; choose a place you can write to");
}

AppendLog::AppendLog(const std::filesystem::path& path) : path_(path) {
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode);
  struct stat status = {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    const int error_number = errno;
    if (descriptor_ >= 0) close(descriptor_);
    ThrowError(KindOf(error_number), "cannot write to ", path.string(), ": ", Reason(error_number));
  }
  size_ = status.st_size;
}

AppendLog::~AppendLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

AppendLog::AppendLog(AppendLog&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

AppendLog& AppendLog::operator=(AppendLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

void AppendLog::Append(std::string_view line) {
  std::string whole(line);
  whole += '\n';
  const int error_number = WriteAll(descriptor_, whole.data(), whole.size());
  if (error_number != 0) {
    const bool taken_back = ftruncate(descriptor_, size_) == 0;
    ThrowError(KindOf(error_number), "cannot append to ", path_.string(), ": ",
               Reason(error_number), taken_back ? "; its earlier lines are unchanged" : "");
  }
  size_ += static_cast<int64_t>(whole.size());
}

void AppendLog::Sync() {
  if (fsync(descriptor_) != 0 && errno != EINVAL) {
    ThrowError(ErrorKind::kMachine, "cannot write ", path_.string(),
               " to the disk: ", Reason(errno));
  }
}

int64_t TruncateLog(const std::filesystem::path& path,
                    const std::function<bool(std::string_view line)>& keep) {
  if (!std::filesystem::exists(path)) return 0;
  int64_t kept = 0;
  {
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      if (end == std::string_view::npos || !keep(text.substr(begin, end - begin))) break;
      begin = end + 1;
      kept = static_cast<int64_t>(begin);
    }
    if (kept == file.size()) return kept;
  }
  if (truncate(path.c_str(), kept) != 0) {
    const int error_number = errno;
    ThrowError(KindOf(error_number), "cannot cut ", path.string(), " to ", kept,
               " bytes: ", Reason(error_number));
  }
  return kept;
}

}  // namespace aah
