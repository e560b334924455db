// The decode path: one query per sequence. Every key is read once, so the work is cut along the
// keys, in pieces that depend on shapes alone, and the pieces' softmaxes are merged in order.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "aah/float16.h"
#include "aah/parallel.h"
#include "aah/scratch.h"
#include "attention/cpu/forward.h"
#include "attention/forward_call.h"
#include "attention/tile_walk.h"

namespace aah {
namespace {

Span Intersect(Span a, Span b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// What every piece of every head left behind.
class Partials {
 public:
  Partials(const AttentionShape& shape, int64_t pieces)
      : shape_(shape),
        pieces_(pieces),
        partials_(static_cast<size_t>(shape.batch * shape.heads * pieces)),
        out_(partials_.size() * static_cast<size_t>(shape.head_dim) * sizeof(float)) {}

  cpu::DecodePartial& Of(int64_t sequence, int64_t head, int64_t piece) {
    return partials_[Index(sequence, head, piece)];
  }
  float* OutOf(int64_t sequence, int64_t head, int64_t piece) {
    return out_.As<float>() + Index(sequence, head, piece) * static_cast<size_t>(shape_.head_dim);
  }

 private:
  size_t Index(int64_t sequence, int64_t head, int64_t piece) const {
    return static_cast<size_t>((sequence * shape_.heads + head) * pieces_ + piece);
  }

  const AttentionShape& shape_;
  int64_t pieces_;
  std::vector<cpu::DecodePartial> partials_;
  Scratch out_;
};

// One piece of the keys, for all heads that share them: they are read from memory once.
struct Piece {
  int64_t sequence;
  int64_t kv_head;
  int64_t index;
};

template <typename Storage>
void RunPiece(const ForwardCall<Storage>& call, const Piece& piece, Partials& partials,
              float* scratch) {
  const AttentionShape& shape = call.shape;
  float* const query = scratch;
  float* const workspace = scratch + shape.head_dim;
  const Span keys = {piece.index * cpu::kDecodeSplit, (piece.index + 1) * cpu::kDecodeSplit};
  for (int64_t member = 0; member < shape.group(); ++member) {
    const int64_t head = piece.kv_head * shape.group() + member;
    const HeadVisibility visibility = call.VisibilityOf(piece.sequence, head);
    const int64_t position = visibility.PositionOf(0);
    if (position < visibility.key_begin) continue;
    float* const out = partials.OutOf(piece.sequence, head, piece.index);
    std::fill_n(out, shape.head_dim, 0.0f);
    cpu::LoadRows<Storage>({call.query.At(piece.sequence, head), 0}, 1, shape.head_dim,
                           call.score_scale.query_factor, query);
    for (const Span visible : {Span{visibility.key_begin, visibility.SinkEnd(position)},
                               Span{visibility.WindowBegin(position), position + 1}}) {
      const Span span = Intersect(visible, keys);
      if (span.empty()) continue;
      cpu::RunDecodeSpan<Storage>(
          query, shape.head_dim, call.score_scale.cap,
          {{call.key.At(piece.sequence, piece.kv_head, span.begin), call.key.strides[2]},
           {call.value.At(piece.sequence, piece.kv_head, span.begin), call.value.strides[2]},
           span},
          partials.Of(piece.sequence, head, piece.index), out, workspace);
    }
  }
}

// The pieces in which some head of a group sees a key.
template <typename Storage>
std::vector<Piece> PiecesOf(const ForwardCall<Storage>& call, int64_t piece_count) {
  const AttentionShape& shape = call.shape;
  std::vector<Piece> pieces;
  for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      for (int64_t index = 0; index < piece_count; ++index) {
        const Span keys = {index * cpu::kDecodeSplit, (index + 1) * cpu::kDecodeSplit};
        bool seen = false;
        for (int64_t member = 0; member < shape.group(); ++member) {
          const HeadVisibility visibility =
              call.VisibilityOf(sequence, kv_head * shape.group() + member);
          seen = seen || !VisibleQueries(visibility, {0, 1}, keys).empty();
        }
        if (seen) pieces.push_back({sequence, kv_head, index});
      }
    }
  }
  return pieces;
}

// Merges the pieces of one head of one sequence into `row` (head_dim floats) and writes the result.
template <typename Storage>
cpu::BlockStatistics Merge(const ForwardCall<Storage>& call, int64_t sequence, int64_t head,
                           int64_t piece_count, Partials& partials, float* row) {
  const int64_t head_dim = call.shape.head_dim;
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  constexpr double kLn2 = 0.693147180559945;
  float reference = kNothing;
  for (int64_t piece = 0; piece < piece_count; ++piece) {
    const cpu::DecodePartial& partial = partials.Of(sequence, head, piece);
    if (partial.sum != 0) reference = std::max(reference, partial.reference);
  }
  std::fill_n(row, head_dim, 0.0f);
  double sum = 0;
  double weighted = 0;
  double last = 0;
  for (int64_t piece = 0; piece < piece_count; ++piece) {
    const cpu::DecodePartial& partial = partials.Of(sequence, head, piece);
    if (partial.sum == 0) continue;
    const float shift = partial.reference - reference;
    const float factor = std::exp2(shift);
    sum += factor * partial.sum;
    weighted += factor * (partial.weighted + partial.sum * shift);
    last = factor * partial.last;
    const float* out = partials.OutOf(sequence, head, piece);
    for (int64_t i = 0; i < head_dim; ++i) row[i] += factor * out[i];
  }
  cpu::BlockStatistics statistics;
  float log_sum_exp = kNothing;
  if (sum != 0) {
    const auto inverse = static_cast<float>(1 / sum);
    double square = 0;
    for (int64_t i = 0; i < head_dim; ++i) {
      row[i] *= inverse;
      square += double{row[i]} * double{row[i]};
    }
    log_sum_exp = static_cast<float>(kLn2 * (reference + std::log2(sum)));
    statistics = {kLn2 * (std::log2(sum) - weighted / sum), std::sqrt(square), last / sum};
  }
  cpu::StoreRows<Storage>(row, 1, head_dim, {call.out.At(sequence, head), 0});
  *call.log_sum_exp.At(sequence, head) = log_sum_exp;
  return statistics;
}

}  // namespace

template <typename Storage>
void DecodeForward(const ForwardCall<Storage>& call) {
  const AttentionShape& shape = call.shape;
  const int64_t piece_count = (shape.keys + cpu::kDecodeSplit - 1) / cpu::kDecodeSplit;
  const size_t worker_floats =
      static_cast<size_t>(shape.head_dim) + cpu::DecodeWorkspace(shape.head_dim);
  const Scratch scratch(static_cast<size_t>(call.parallel.worker_count()) * worker_floats *
                        sizeof(float));
  Partials partials(shape, piece_count);
  const std::vector<Piece> pieces = PiecesOf(call, piece_count);
  ForEachTask(call.parallel, static_cast<int64_t>(pieces.size()), [&](int64_t index, int worker) {
    RunPiece(call, pieces[static_cast<size_t>(index)], partials,
             scratch.As<float>() + static_cast<size_t>(worker) * worker_floats);
  });
  for (int64_t head = 0; head < shape.heads; ++head) {
    cpu::BlockStatistics total;
    for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
      const cpu::BlockStatistics one =
          Merge(call, sequence, head, piece_count, partials, scratch.As<float>());
      total.entropy += one.entropy;
      total.norm += one.norm;
      total.usage += one.usage;
    }
    if (call.statistics.wanted()) call.WriteStatistics(head, total);
  }
}

template void DecodeForward<float>(const ForwardCall<float>& call);
template void DecodeForward<Bfloat16>(const ForwardCall<Bfloat16>& call);
template void DecodeForward<Float16>(const ForwardCall<Float16>& call);

}  // namespace aah
