// Online softmax over the tiles of one block of queries. Compiled once per instruction set.
//
// A strip is kStripRows queries: what one register block of the products holds. Per key range and
// strip: scores of the visible columns (S = Q K^T), their exponentials in place, O += P V. A strip
// computes only the columns that one of its rows sees, so edge tiles cost what they show.

#if defined(AAH_SRC_ATTENTION_CPU_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AAH_SRC_ATTENTION_CPU_FORWARD_INL_H_
#undef AAH_SRC_ATTENTION_CPU_FORWARD_INL_H_
#else
#define AAH_SRC_ATTENTION_CPU_FORWARD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/cpu/forward.h"
#include "attention/cpu/math-inl.h"
#include "attention/cpu/matrix_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Most keys of a tile: their panels and values stay in the second-level cache over all strips of a
// block, and a strip's scores in the first.
constexpr int64_t kMostColumns = 512;
HWY_INLINE int64_t KeyBlockOf(int64_t head_dim) {
  constexpr int64_t kTileFloats = 65536;
  return std::min(kMostColumns, kTileFloats / head_dim / 64 * 64);
}
// A score row: whole vectors around the columns, and an odd number of cache lines, so that the rows
// of a strip do not compete for the same cache sets.
constexpr int64_t kScoreStride = kMostColumns + 3 * 16;
constexpr float kLn2 = 0.69314718f;
// How far, in powers of 2, scores may rise above the reference before sums are rescaled to a new
// one. Far below overflow, far above what rows need after their first tile.
constexpr float kRescaleAbove = 16;

// The running softmax of each query of a block, in units of ln 2 relative to `reference`.
struct RunningRows {
  float reference[cpu::kQueryBlock];  // minus infinity until the row has seen a key
  float sum[cpu::kQueryBlock];        // sum of 2^(score - reference)
  float weighted[cpu::kQueryBlock];   // sum of 2^(score - reference) * (score - reference)
  float last[cpu::kQueryBlock];       // 2^(score - reference) of the row's last key of a tile
};

// The columns a strip computes in one tile, and what each of its rows sees of them. Columns count
// from `origin`, a whole number of vectors into a panel.
struct StripColumns {
  int64_t origin = 0;
  Span all;    // from the first visible to the last
  Span clear;  // whole vectors that every row sees; possibly empty
  Span row[kStripRows];

  int64_t padded() const { return (all.end + kLanes - 1) / kLanes * kLanes; }
};

HWY_INLINE StripColumns ColumnsOf(const HeadVisibility& head, int64_t first_position, int64_t rows,
                                  const KeyRange& range) {
  StripColumns columns;
  Span any = {range.end, range.begin};
  Span every = range.span();
  for (int64_t row = 0; row < rows; ++row) {
    const Span visible =
        range.full ? range.span() : VisibleKeys(head, first_position + row, range.span());
    columns.row[row] = visible;
    every = {std::max(every.begin, visible.begin), std::min(every.end, visible.end)};
    if (visible.empty()) continue;
    any = {std::min(any.begin, visible.begin), std::max(any.end, visible.end)};
  }
  if (any.empty()) return columns;
  const int64_t origin = any.begin / kLanes * kLanes;
  columns.origin = origin;
  columns.all = {any.begin - origin, any.end - origin};
  for (int64_t row = 0; row < rows; ++row) {
    columns.row[row].begin -= origin;
    columns.row[row].end -= origin;
  }
  columns.clear.begin = (every.begin - origin + kLanes - 1) / kLanes * kLanes;
  columns.clear.end = std::max(columns.clear.begin, (every.end - origin) / kLanes * kLanes);
  if (every.empty()) columns.clear = {columns.padded(), columns.padded()};
  return columns;
}

// scores[row][column] = query[row] . key[origin + column] for whole vectors of columns.
HWY_INLINE void Scores(const float* query, int64_t rows, int64_t head_dim,
                       const cpu::PackedKeys& keys, const StripColumns& columns, float* scores) {
  const LeftOperand left = {query, head_dim, 1};
  const int64_t within = columns.origin % kPanelWidth;
  const float* panel =
      keys.panels + keys.panel_range.SlotOf(columns.origin / kPanelWidth) * kPanelWidth * head_dim;
  int64_t done = 0;
  if (within != 0) {  // the right half of a panel
    MultiplyPanel<false, 1>(FloatTag(), left, panel + within, kPanelWidth, {scores, kScoreStride},
                            rows, head_dim);
    panel += kPanelWidth * head_dim;
    done = kLanes;
  }
  const int64_t rest = columns.padded() - done;
  for (int64_t column = 0; column < rest; column += kPanelWidth) {
    const Product product = {scores + done + column, kScoreStride};
    if (rest - column >= kPanelWidth) {
      MultiplyPanel<false, 2>(FloatTag(), left, panel, kPanelWidth, product, rows, head_dim);
    } else {
      MultiplyPanel<false, 1>(FloatTag(), left, panel, kPanelWidth, product, rows, head_dim);
    }
    panel += kPanelWidth * head_dim;
  }
}

HWY_INLINE void CapScores(float cap, int64_t columns, float* scores) {
  const FloatTag d;
  const auto factor = hn::Set(d, cap);
  for (int64_t column = 0; column < columns; column += kLanes) {
    hn::StoreU(hn::Mul(Tanh(d, hn::LoadU(d, scores + column)), factor), d, scores + column);
  }
}

// Which of the vector of columns from `column` on lie within `visible`.
HWY_INLINE hn::Mask<FloatTag> Within(Span visible, int64_t column) {
  const FloatTag d;
  const auto index = hn::Iota(d, static_cast<float>(column));
  return hn::And(hn::Ge(index, hn::Set(d, static_cast<float>(visible.begin))),
                 hn::Lt(index, hn::Set(d, static_cast<float>(visible.end))));
}

// The largest score that a row sees; minus infinity if it sees none. Like Exponentiate it goes over
// the same vectors for all rows of a strip, which the branch predictor thanks.
HWY_INLINE float Maximum(const StripColumns& columns, Span visible, const float* scores) {
  const FloatTag d;
  const auto least = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto first = least;
  auto second = least;
  int64_t column = 0;
  for (; column < columns.clear.begin; column += kLanes) {
    const auto inside = Within(visible, column);
    first = hn::Max(first, hn::IfThenElse(inside, hn::LoadU(d, scores + column), least));
  }
  for (; column + kLanes < columns.clear.end; column += 2 * kLanes) {
    first = hn::Max(first, hn::LoadU(d, scores + column));
    second = hn::Max(second, hn::LoadU(d, scores + column + kLanes));
  }
  for (; column < columns.padded(); column += kLanes) {
    const auto inside = Within(visible, column);
    second = hn::Max(second, hn::IfThenElse(inside, hn::LoadU(d, scores + column), least));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(first, second)));
}

// Moves a row's sums to a higher reference.
template <bool kStatistics>
HWY_INLINE void Rescale(float maximum, int64_t head_dim, RunningRows& rows, int64_t row,
                        float* out) {
  const float before = rows.reference[row];
  rows.reference[row] = maximum;
  if (before == -std::numeric_limits<float>::infinity()) return;  // nothing summed yet
  const FloatTag d;
  const float factor = hn::GetLane(Exp2(d, hn::Set(d, before - maximum)));
  if constexpr (kStatistics) {
    const float shift = std::max(before - maximum, -126.0f);
    rows.weighted[row] = factor * (rows.weighted[row] + rows.sum[row] * shift);
  }
  rows.sum[row] *= factor;
  for (int64_t i = 0; i < head_dim; ++i) out[i] *= factor;
}

// scores <- 2^(scores - reference) where visible, else 0, over all vectors of the strip; adds the
// row up.
template <bool kStatistics>
HWY_INLINE void Exponentiate(const StripColumns& columns, Span visible, float* scores,
                             RunningRows& rows, int64_t row) {
  const FloatTag d;
  const auto reference = hn::Set(d, rows.reference[row]);
  auto sum = hn::Zero(d);
  auto weighted = hn::Zero(d);
  int64_t column = 0;
  for (int part = 0; part < 2; ++part) {
    const int64_t edge_end = part == 0 ? columns.clear.begin : columns.padded();
    for (; column < edge_end; column += kLanes) {
      const auto inside = Within(visible, column);
      const auto x = hn::Sub(hn::LoadU(d, scores + column), reference);
      const auto p = hn::IfThenElseZero(inside, Exp2(d, x));
      hn::StoreU(p, d, scores + column);
      sum = hn::Add(sum, p);
      if constexpr (kStatistics) {
        weighted = hn::Add(weighted, hn::IfThenElseZero(inside, hn::Mul(p, x)));
      }
    }
    for (; column < columns.clear.end; column += kLanes) {
      const auto x = hn::Sub(hn::LoadU(d, scores + column), reference);
      const auto p = Exp2(d, x);
      hn::StoreU(p, d, scores + column);
      sum = hn::Add(sum, p);
      if constexpr (kStatistics) weighted = hn::MulAdd(p, x, weighted);
    }
  }
  rows.sum[row] += hn::GetLane(hn::SumOfLanes(d, sum));
  if constexpr (kStatistics) {
    rows.weighted[row] += hn::GetLane(hn::SumOfLanes(d, weighted));
    if (!visible.empty()) rows.last[row] = scores[visible.end - 1];
  }
}

// One strip against one key range.
template <bool kStatistics>
HWY_INLINE void ForwardStrip(const cpu::ForwardBlock& block, int64_t first_row, int64_t row_count,
                             const KeyRange& range, RunningRows& rows) {
  const int64_t head_dim = block.head_dim;
  const HeadVisibility& head = block.visibility;
  const StripColumns columns =
      ColumnsOf(head, head.PositionOf(block.query_begin + first_row), row_count, range);
  if (columns.all.empty()) return;
  float* scores = block.workspace;
  float* out = block.out + first_row * head_dim;
  Scores(block.query + first_row * head_dim, row_count, head_dim, block.keys, columns, scores);
  for (int64_t row = 0; row < row_count; ++row) {
    float* row_scores = scores + row * kScoreStride;
    if (block.score_cap != 0) CapScores(block.score_cap, columns.padded(), row_scores);
    const float maximum = Maximum(columns, columns.row[row], row_scores);
    // Written so that a NaN, which compares false, leaves the reference alone and reaches the sums.
    if (maximum > rows.reference[first_row + row] + kRescaleAbove ||
        rows.reference[first_row + row] == -std::numeric_limits<float>::infinity()) {
      Rescale<kStatistics>(maximum, head_dim, rows, first_row + row, out + row * head_dim);
    }
  }
  for (int64_t row = 0; row < row_count; ++row) {
    Exponentiate<kStatistics>(columns, columns.row[row], scores + row * kScoreStride, rows,
                              first_row + row);
  }
  const int64_t first_key = columns.origin + columns.all.begin;
  const float* values =
      block.keys.values + block.keys.value_range.SlotOf(first_key) * block.keys.value_stride;
  Multiply<true>({scores + columns.all.begin, kScoreStride, 1},
                 RightOperand::RowMajor(values, block.keys.value_stride), {out, head_dim},
                 row_count, head_dim, columns.all.size());
}

// Whether a row has seen no key so far.
HWY_INLINE bool SawNothing(const RunningRows& rows, int64_t row) {
  return rows.reference[row] == -std::numeric_limits<float>::infinity() && rows.sum[row] == 0;
}

// Natural log-sum-exp of the scores a row has seen so far.
HWY_INLINE float LogSumExp(const RunningRows& rows, int64_t row) {
  return kLn2 * (rows.reference[row] + std::log2(rows.sum[row]));
}

// Divides by the sums, writes log-sum-exp, gathers the statistics.
template <bool kStatistics>
void FinishBlock(const cpu::ForwardBlock& block, const RunningRows& rows) {
  const int64_t head_dim = block.head_dim;
  const int64_t row_count = block.query_end - block.query_begin;
  for (int64_t row = 0; row < row_count; ++row) {
    float* out = block.out + row * head_dim;
    if (SawNothing(rows, row)) {
      block.log_sum_exp[row] = -std::numeric_limits<float>::infinity();
      continue;
    }
    const float inverse = 1 / rows.sum[row];
    for (int64_t i = 0; i < head_dim; ++i) out[i] *= inverse;
    block.log_sum_exp[row] = LogSumExp(rows, row);
    if constexpr (kStatistics) {
      double square = 0;
      for (int64_t i = 0; i < head_dim; ++i) square += double{out[i]} * double{out[i]};
      block.statistics->norm += std::sqrt(square);
      block.statistics->entropy +=
          double{kLn2} * (std::log2(rows.sum[row]) - rows.weighted[row] * inverse);
      const int64_t position = block.visibility.PositionOf(block.query_begin + row);
      if (position == block.visibility.key_end - 1) {
        block.statistics->usage += rows.last[row] * inverse;
      }
    }
  }
}

// Before the first key.
HWY_INLINE void StartRows(const cpu::ForwardBlock& block, RunningRows& rows) {
  const int64_t row_count = block.query_end - block.query_begin;
  std::fill_n(rows.reference, row_count, -std::numeric_limits<float>::infinity());
  std::fill_n(rows.sum, row_count, 0.0f);
  std::fill_n(rows.weighted, row_count, 0.0f);
  std::fill_n(block.out, row_count * block.head_dim, 0.0f);
}

// All keys that block.visibility shows.
template <bool kStatistics>
HWY_INLINE void WalkKeys(const cpu::ForwardBlock& block, RunningRows& rows) {
  const int64_t row_count = block.query_end - block.query_begin;
  const HeadVisibility& head = block.visibility;
  std::vector<KeyRange> ranges;
  const int64_t key_block = KeyBlockOf(block.head_dim);
  if (head.window + head.sinks + kStripRows <= key_block) {
    // Narrow: what a strip sees is one tile, or two with sinks.
    for (int64_t row = 0; row < row_count; row += kStripRows) {
      const int64_t count = std::min(kStripRows, row_count - row);
      const int64_t first = block.query_begin + row;
      KeyRangesOf(head, first, first + count, head.key_end, ranges);
      for (const KeyRange& range : ranges) {
        ForwardStrip<kStatistics>(block, row, count, range, rows);
      }
    }
  } else {
    KeyRangesOf(head, block.query_begin, block.query_end, key_block, ranges);
    for (const KeyRange& range : ranges) {
      for (int64_t row = 0; row < row_count; row += kStripRows) {
        ForwardStrip<kStatistics>(block, row, std::min(kStripRows, row_count - row), range, rows);
      }
    }
  }
}

template <bool kStatistics>
void ForwardBlockImpl(const cpu::ForwardBlock& block) {
  RunningRows rows;
  StartRows(block, rows);
  WalkKeys<kStatistics>(block, rows);
  FinishBlock<kStatistics>(block, rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_FORWARD_INL_H_
