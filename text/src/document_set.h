#ifndef AAH_TEXT_SRC_DOCUMENT_SET_H_
#define AAH_TEXT_SRC_DOCUMENT_SET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "aah/text/sha256.h"

namespace aah {

// Documents longer than this are refused: they are held in memory whole.
inline constexpr int64_t kLargestDocument = int64_t{1} << 30;

// Which documents a corpus keeps: the first of equal ones, none that is empty.
class DocumentSet {
 public:
  // Checks a document and returns whether to keep it. Throws aah::Error unless it is UTF-8.
  bool Admit(std::string_view text, const std::string& origin);

  // Throws aah::Error unless `text` is what was admitted `index`-th.
  void CheckUnchanged(int64_t index, std::string_view text, const std::string& origin) const;

  int64_t duplicates() const { return duplicates_; }
  int64_t empty() const { return empty_; }

 private:
  struct DigestHash {
    size_t operator()(const Sha256::Digest& digest) const;
  };

  std::vector<Sha256::Digest> digests_;
  std::unordered_set<Sha256::Digest, DigestHash> seen_;
  int64_t duplicates_ = 0;
  int64_t empty_ = 0;
};

// Files below `folder` for which `take` holds, sorted by path, hidden files and folders and those
// for which `enter` does not hold left out.
std::vector<std::string> ListFiles(const std::string& folder,
                                   const std::function<bool(const std::string& name)>& enter,
                                   const std::function<bool(const std::string& name)>& take);

}  // namespace aah

#endif  // AAH_TEXT_SRC_DOCUMENT_SET_H_
