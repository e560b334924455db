#include "document_set.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "aah/error.h"
#include "aah/text/utf8.h"

namespace aah {

size_t DocumentSet::DigestHash::operator()(const Sha256::Digest& digest) const {
  size_t hash;
  std::memcpy(&hash, digest.data(), sizeof(hash));
  return hash;
}

bool DocumentSet::Admit(std::string_view text, const std::string& origin) {
  AAH_CHECK(static_cast<int64_t>(text.size()) <= kLargestDocument, origin, ": a document of ",
            text.size(), " bytes is longer than ", kLargestDocument,
            "; cut it into several, for instance as lines of JSONL");
  CheckUtf8(text, origin);
  if (text.empty()) {
    ++empty_;
    return false;
  }
  const Sha256::Digest digest = Sha256Of(text);
  if (!seen_.insert(digest).second) {
    ++duplicates_;
    return false;
  }
  digests_.push_back(digest);
  return true;
}

void DocumentSet::CheckUnchanged(int64_t index, std::string_view text,
                                 const std::string& origin) const {
  AAH_CHECK(Sha256Of(text) == digests_[index], origin,
            ": the text changed while it was being read; start again");
}

std::vector<std::string> ListFiles(const std::string& folder,
                                   const std::function<bool(const std::string& name)>& enter,
                                   const std::function<bool(const std::string& name)>& take) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  AAH_CHECK(!error, folder, ": cannot list this folder: ", error.message());
  while (entry != fs::recursive_directory_iterator()) {
    const std::string name = entry->path().filename().string();
    const bool hidden = name.starts_with('.');
    std::error_code ignored;  // a link to nowhere is neither a folder nor a file
    if (entry->is_directory(ignored)) {
      if (hidden || !enter(name)) entry.disable_recursion_pending();
    } else if (!hidden && entry->is_regular_file(ignored) && take(name)) {
      files.push_back(entry->path().string());
    }
    entry.increment(error);
    AAH_CHECK(!error, folder, ": cannot list this folder: ", error.message());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace aah
