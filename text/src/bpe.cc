#include "bpe.h"

#include <queue>

#include "aah/error.h"
#include "aah/random.h"
#include "byte_level.h"

namespace aah {
namespace {

constexpr int32_t kNone = -1;

uint64_t Pair(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32U | static_cast<uint32_t>(right);
}

// A token of the piece in a list; a token joined to its left neighbour has the id kNone.
struct Symbol {
  int32_t id;
  int32_t previous;
  int32_t next;
};

struct Candidate {
  int32_t rank;
  int32_t position;
  int32_t id;

  // For a queue whose top is the least rank, then the leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

}  // namespace

size_t Bpe::PairHash::operator()(uint64_t pair) const { return SplitMix64(pair); }

Bpe::Bpe(const TokenizerDescription& description) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < description.vocabulary.size(); ++id) {
    const std::string& token = description.vocabulary[id];
    if (!token.empty()) ids.emplace(token, static_cast<int32_t>(id));
    // A token of other characters can never come from text; it decodes to itself.
    token_bytes_.push_back(ByteLevelToBytes(token).value_or(token));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(BytesToByteLevel(std::string(1, static_cast<char>(byte))));
    id_of_byte_[byte] = found == ids.end() ? kNone : found->second;
  }
  merges_.reserve(description.merges.size());
  int32_t rank = 0;
  for (const auto& [left, right] : description.merges) {
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    const auto joined_id = ids.find(left + right);
    AAH_CHECK(left_id != ids.end() && right_id != ids.end() && joined_id != ids.end(),
              description.origin, ": merge ", rank, ": '", left, "', '", right,
              "' or both together are not in the vocabulary");
    merges_.insert_or_assign(Pair(left_id->second, right_id->second),
                             Merge{rank, joined_id->second});
    ++rank;
  }
  if (description.ignore_merges) {
    for (const auto& [token, id] : ids) {
      if (ByteLevelToBytes(token)) whole_.emplace(token_bytes_[id], id);
    }
  }
}

const Bpe::Merge* Bpe::Find(int32_t left, int32_t right) const {
  const auto found = merges_.find(Pair(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (!whole_.empty()) {
    if (const auto found = whole_.find(piece); found != whole_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  Join(piece, ids);
}

void Bpe::Join(std::string_view piece, std::vector<int32_t>& ids) const {
  AAH_CHECK(piece.size() < INT32_MAX, "a piece of ", piece.size(),
            " bytes is too long for BPE; cut the text into documents");
  const auto count = static_cast<int32_t>(piece.size());
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols.push_back(
        {id_of_byte_[static_cast<unsigned char>(piece[i])], i - 1, i + 1 < count ? i + 1 : kNone});
  }
  std::priority_queue<Candidate> queue;
  const auto offer = [&](int32_t position) {
    const int32_t next = symbols[position].next;
    if (next == kNone) return;
    const Merge* merge = Find(symbols[position].id, symbols[next].id);
    if (merge != nullptr) queue.push({merge->rank, position, merge->id});
  };
  for (int32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& symbol = symbols[best.position];
    if (symbol.id == kNone || symbol.next == kNone) continue;
    Symbol& right = symbols[symbol.next];
    // Since it was offered one of the two may have been joined elsewhere.
    const Merge* merge = Find(symbol.id, right.id);
    if (merge == nullptr || merge->id != best.id) continue;
    symbol.id = best.id;
    symbol.next = right.next;
    right.id = kNone;
    if (symbol.next != kNone) symbols[symbol.next].previous = best.position;
    if (symbol.previous != kNone) offer(symbol.previous);
    offer(best.position);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.id != kNone) ids.push_back(symbol.id);
  }
}

}  // namespace aah
