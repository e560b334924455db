#include "attention/key_packing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <vector>

#include "aah/float16.h"
#include "aah/parallel.h"
#include "attention/cpu/forward.h"
#include "attention/tile_walk.h"

namespace aah {
namespace {

// Scratch that packing aims at when there are many pairs.
constexpr int64_t kMemoryGoal = int64_t{32} << 20;
// Keys per packing task.
constexpr int64_t kPieceKeys = 512;

// The keys that some query of a group of heads sees: at most two runs, ascending.
struct NeededKeys {
  Span sinks;
  Span window;
};

template <typename Storage>
NeededKeys NeededBy(const ForwardCall<Storage>& call, int64_t pair) {
  const AttentionShape& shape = call.shape;
  const int64_t sequence = pair / shape.kv_heads;
  const int64_t first_head = pair % shape.kv_heads * shape.group();
  NeededKeys needed;
  for (int64_t head = first_head; head < first_head + shape.group(); ++head) {
    const HeadVisibility visibility = call.VisibilityOf(sequence, head);
    const int64_t first = std::max(visibility.PositionOf(0), visibility.key_begin);
    if (first >= visibility.key_end) return {};  // then no head of this sequence sees anything
    const int64_t begin = visibility.WindowBegin(first);
    if (needed.window.empty() || begin < needed.window.begin) {
      needed.window = {begin, visibility.key_end};
    }
    needed.sinks = {visibility.key_begin, visibility.SinkEnd(visibility.key_end - 1)};
  }
  if (needed.sinks.end >= needed.window.begin) {
    needed.window.begin = std::min(needed.window.begin, needed.sinks.begin);
    needed.sinks = {};
  }
  return needed;
}

Span PanelsOf(Span keys, int64_t width) {
  return {keys.begin / width, (keys.end + width - 1) / width};
}

// Whether rows `stride` floats apart are as good as packed ones. Rows far apart share few cache
// sets, and would be evicted between the strips of a tile.
bool ReadableInPlace(ptrdiff_t stride, int64_t head_dim) {
  return std::abs(stride) <= 2 * head_dim;
}

}  // namespace

template <typename Storage>
int64_t PackedPairs<Storage>::PairsAtOnce(const ForwardCall<Storage>& call) {
  const int64_t bytes = 2 * call.shape.keys * call.shape.head_dim * int64_t{sizeof(float)};
  return std::clamp<int64_t>(kMemoryGoal / bytes, 1, call.shape.batch * call.shape.kv_heads);
}

template <typename Storage>
PackedPairs<Storage>::PackedPairs(const ForwardCall<Storage>& call, Span pairs)
    : pairs_(pairs),
      panel_width_(cpu::KeyPanelWidth()),
      packed_(static_cast<size_t>(pairs.size())) {
  const int64_t panel_floats = panel_width_ * call.shape.head_dim;
  const bool in_place =
      std::is_same_v<Storage, float> && ReadableInPlace(call.value.strides[2], call.shape.head_dim);
  std::vector<Piece> pieces;
  std::vector<int64_t> offsets(packed_.size());
  int64_t panel_count = 0;
  for (int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    const NeededKeys needed = NeededBy(call, pair);
    const Span sinks = PanelsOf(needed.sinks, panel_width_);
    Span window = PanelsOf(needed.window, panel_width_);
    cpu::StoredRange& stored = packed_[static_cast<size_t>(pair - pairs.begin)].panel_range;
    stored = {window.begin, window.begin, window.begin};
    if (!sinks.empty()) {
      window.begin = std::max(window.begin, sinks.end);
      stored = {sinks.begin, sinks.end, window.begin};
    }
    offsets[static_cast<size_t>(pair - pairs.begin)] = panel_count;
    panel_count += sinks.size() + window.size();
    for (const Span run : {sinks, window}) {
      const int64_t step = std::max<int64_t>(1, kPieceKeys / panel_width_);
      for (int64_t panel = run.begin; panel < run.end; panel += step) {
        pieces.push_back({pair, {panel, std::min(run.end, panel + step)}});
      }
    }
  }
  memory_.emplace(static_cast<size_t>(panel_count * panel_floats * (in_place ? 1 : 2)) *
                  sizeof(float));
  float* const panels = memory_->As<float>();
  float* const values = in_place ? nullptr : panels + panel_count * panel_floats;
  for (int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    const auto index = static_cast<size_t>(pair - pairs.begin);
    cpu::PackedKeys& packed = packed_[index];
    packed.panels = panels + offsets[index] * panel_floats;
    if constexpr (std::is_same_v<Storage, float>) {
      packed.values = call.value.At(pair / call.shape.kv_heads, pair % call.shape.kv_heads);
      packed.value_stride = call.value.strides[2];
    }
    if (in_place) continue;
    packed.values = values + offsets[index] * panel_floats;
    packed.value_stride = call.shape.head_dim;
    packed.value_range = {packed.panel_range.first * panel_width_,
                          packed.panel_range.gap_begin * panel_width_,
                          packed.panel_range.gap_end * panel_width_};
  }
  ForEachTask(call.parallel, static_cast<int64_t>(pieces.size()), [&](int64_t index, int) {
    const Piece& piece = pieces[static_cast<size_t>(index)];
    const int64_t offset = offsets[static_cast<size_t>(piece.pair - pairs.begin)] * panel_floats;
    PackPiece(call, piece, panels + offset, in_place ? nullptr : values + offset);
  });
}

template <typename Storage>
void PackedPairs<Storage>::PackPiece(const ForwardCall<Storage>& call, const Piece& piece,
                                     float* panels, float* values) const {
  const int64_t head_dim = call.shape.head_dim;
  const int64_t sequence = piece.pair / call.shape.kv_heads;
  const int64_t kv_head = piece.pair % call.shape.kv_heads;
  const int64_t key_end = call.VisibilityOf(sequence, kv_head * call.shape.group()).key_end;
  for (int64_t panel = piece.panels.begin; panel < piece.panels.end; ++panel) {
    const int64_t slot = Of(piece.pair).panel_range.SlotOf(panel) * panel_width_ * head_dim;
    const int64_t key = panel * panel_width_;
    const int64_t count = std::min(panel_width_, key_end - key);
    cpu::PackKeyPanel<Storage>({call.key.At(sequence, kv_head, key), call.key.strides[2]}, count,
                               head_dim, panels + slot);
    if (values == nullptr) continue;
    cpu::LoadRows<Storage>({call.value.At(sequence, kv_head, key), call.value.strides[2]}, count,
                           head_dim, 1, values + slot);
  }
}

template class PackedPairs<float>;
template class PackedPairs<Bfloat16>;
template class PackedPairs<Float16>;

}  // namespace aah
