#include "added_tokens.h"

#include <algorithm>

namespace aah {
namespace {

// Unicode's White_Space, as UTF-8.
constexpr auto kWhiteSpace = std::to_array<std::string_view>(
    {"\t",           "\n",           "\v",           "\f",           "\r",           " ",
     "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
     "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
     "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
     "\xe3\x80\x80"});

size_t WithoutTrailingSpace(std::string_view text) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view space : kWhiteSpace) {
      if (!text.ends_with(space)) continue;
      text.remove_suffix(space.size());
      found = true;
      break;
    }
  }
  return text.size();
}

size_t LeadingSpace(std::string_view text) {
  size_t length = 0;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view space : kWhiteSpace) {
      if (!text.substr(length).starts_with(space)) continue;
      length += space.size();
      found = true;
      break;
    }
  }
  return length;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, std::vector<std::string> contents)
    : tokens_(std::move(tokens)), contents_(std::move(contents)) {
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (contents_[i].empty()) continue;
    by_first_byte_[static_cast<unsigned char>(contents_[i][0])].push_back(static_cast<int>(i));
  }
  for (std::vector<int>& bucket : by_first_byte_) {
    std::ranges::sort(bucket, [&](int a, int b) {
      const size_t size_a = contents_[a].size();
      const size_t size_b = contents_[b].size();
      return size_a != size_b ? size_a > size_b : a < b;
    });
  }
}

int AddedTokens::Match(std::string_view text) const {
  for (const int i : by_first_byte_[static_cast<unsigned char>(text[0])]) {
    if (text.starts_with(contents_[i])) return i;
  }
  return -1;
}

void AddedTokens::Cut(std::string_view text, const std::function<void(std::string_view)>& between,
                      const std::function<void(int32_t)>& token) const {
  size_t done = 0;  // up to here the text is given out
  for (size_t position = 0; position < text.size();) {
    const int found = tokens_.empty() ? -1 : Match(text.substr(position));
    if (found < 0) {
      ++position;
      continue;
    }
    const AddedToken& match = tokens_[found];
    size_t begin = position;
    size_t end = position + contents_[found].size();
    // The search goes on behind the token itself, not behind the space it takes: so do
    // `tokenizers`.
    position = end;
    if (match.strip_left) {
      begin = std::max(done, WithoutTrailingSpace(text.substr(0, begin)));
    }
    if (match.strip_right) end += LeadingSpace(text.substr(end));
    if (done < begin) between(text.substr(done, begin - done));
    token(match.id);
    done = end;
  }
  if (done < text.size()) between(text.substr(done));
}

}  // namespace aah
