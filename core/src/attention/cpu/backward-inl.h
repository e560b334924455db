// The backward kernel: for a run of keys, every tile of queries that sees some of them. Compiled
// once per instruction set.

#if defined(AAH_SRC_ATTENTION_CPU_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AAH_SRC_ATTENTION_CPU_BACKWARD_INL_H_
#undef AAH_SRC_ATTENTION_CPU_BACKWARD_INL_H_
#else
#define AAH_SRC_ATTENTION_CPU_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <vector>

#include "attention/cpu/backward.h"
#include "attention/cpu/math-inl.h"
#include "attention/cpu/matrix_tile-inl.h"
#include "attention/tile_walk.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {

// Working memory of one worker. Leading dimensions in floats; a key block never has more than
// `key_block` keys, a query block never more than kQueryBlock rows.
struct BackwardWorkspace {
  BackwardWorkspace(float* scratch, int64_t head_dim, int64_t block)
      : row_length(block + kLanes),
        key_panels(scratch),
        value_panels(key_panels + block * head_dim),
        key_rows(value_panels + block * head_dim),
        grad_key(key_rows + block * head_dim),
        grad_value(grad_key + block * head_dim),
        query_rows(grad_value + block * head_dim),
        grad_out_rows(query_rows + kBackwardQueryBlock * head_dim),
        probability(grad_out_rows + kBackwardQueryBlock * head_dim),
        grad_score(probability + kBackwardQueryBlock * row_length) {}

  // Odd in cache lines, so that a column of a tile does not fall into few sets of the cache.
  int64_t row_length;
  float* key_panels;     // K^T in panels, times what turns a product into an exponent
  float* value_panels;   // V^T in panels, times scale
  float* key_rows;       // [keys][head_dim]
  float* grad_key;       // [keys][head_dim]
  float* grad_value;     // [keys][head_dim]
  float* query_rows;     // [queries][head_dim], where the caller's are not contiguous
  float* grad_out_rows;  // [queries][head_dim], likewise
  float* probability;    // [queries][row_length]
  float* grad_score;     // [queries][row_length]
};

// A tile: some queries of one head by one block of keys.
struct BackwardTile {
  const BackwardHead* head;
  const float* query;     // [queries][head_dim]
  const float* grad_out;  // [queries][head_dim]
  Span queries;
  Span keys;
  bool full;
  int64_t head_dim;
  float softcap;
};

// out[panel][d][column] = factor * row(panel * kPanelWidth + column)[d]; columns past the last row
// are zero. head_dim is a multiple of 4.
#if HWY_TARGET == HWY_SCALAR
inline void PackTransposed(Rows<const float> source, Span rows, int64_t head_dim, float factor,
                           float* HWY_RESTRICT out) {
  for (int64_t first = 0; first < rows.size(); first += kPanelWidth) {
    for (int64_t k = 0; k < head_dim; ++k) {
      for (int64_t column = first; column < first + kPanelWidth; ++column) {
        *out++ = column < rows.size() ? factor * source.At(rows.begin + column)[k] : 0.0F;
      }
    }
  }
}
#else
inline void PackTransposed(Rows<const float> source, Span rows, int64_t head_dim, float factor,
                           float* HWY_RESTRICT out) {
  const hn::CappedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> d2;
  const auto scale = hn::Set(d4, factor);
  for (int64_t first = 0; first < hwy::RoundUpTo(rows.size(), kPanelWidth); first += 4) {
    float* to = out + first / kPanelWidth * kPanelWidth * head_dim + first % kPanelWidth;
    const auto row = [&](int64_t column, int64_t k) {
      const int64_t index = rows.begin + first + column;
      return index < rows.end ? hn::Mul(scale, hn::LoadU(d4, source.At(index) + k)) : hn::Zero(d4);
    };
    for (int64_t k = 0; k < head_dim; k += 4, to += 4 * kPanelWidth) {
      const auto r0 = row(0, k);
      const auto r1 = row(1, k);
      const auto r2 = row(2, k);
      const auto r3 = row(3, k);
      const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1));
      const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
      const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1));
      const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
      const auto store = [&](int64_t row_of_out, auto pair) {
        hn::StoreU(hn::BitCast(d4, pair), d4, to + row_of_out * kPanelWidth);
      };
      store(0, hn::InterleaveLower(d2, low01, low23));
      store(1, hn::InterleaveUpper(d2, low01, low23));
      store(2, hn::InterleaveLower(d2, high01, high23));
      store(3, hn::InterleaveUpper(d2, high01, high23));
    }
  }
}
#endif

inline void CopyRows(Rows<const float> source, Span rows, int64_t head_dim,
                     float* HWY_RESTRICT out) {
  for (int64_t row = rows.begin; row < rows.end; ++row, out += head_dim) {
    std::memcpy(out, source.At(row), static_cast<size_t>(head_dim) * sizeof(float));
  }
}

// The rows as a contiguous matrix: themselves where they are one, else a copy. (Rows far apart by a
// power of two, as in a token-major tensor, fall into few sets of the cache.)
inline const float* ContiguousRows(Rows<const float> source, Span rows, int64_t head_dim,
                                   float* copy) {
  if (source.stride == head_dim) return source.At(rows.begin);
  CopyRows(source, rows, head_dim, copy);
  return copy;
}

// In place, for one vector of scores x (in the units of key_panels) and of dP * scale:
// p = 2^(x - log2_sum_exp) and dS = p (dP - delta).
template <bool kSoftcap>
HWY_INLINE void ScoreGradients(float exponent_of_cap, float log2_sum_exp, float delta,
                               hn::Vec<FloatTag>& p, hn::Vec<FloatTag>& ds) {
  const FloatTag d;
  const auto lse = hn::Set(d, log2_sum_exp);
  auto centred = hn::Sub(ds, hn::Set(d, delta));
  if constexpr (kSoftcap) {
    const auto t = Tanh(d, p);
    centred = hn::Mul(centred, hn::NegMulAdd(t, t, hn::Set(d, 1.0F)));
    p = hn::MulSub(t, hn::Set(d, exponent_of_cap), lse);
  } else {
    p = hn::Sub(p, lse);
  }
  p = Exp2(d, p);
  ds = hn::Mul(p, centred);
}

// One row of one panel; `visible` counts columns from the panel's first.
template <bool kSoftcap>
HWY_INLINE void RowGradients(float exponent_of_cap, float log2_sum_exp, float delta, Span visible,
                             float* HWY_RESTRICT probability, float* HWY_RESTRICT grad_score) {
  const FloatTag d;
  const bool whole = visible.begin <= 0 && visible.end >= kPanelWidth;
  for (int64_t column = 0; column < kPanelWidth; column += kLanes) {
    auto p = hn::LoadU(d, probability + column);
    auto ds = hn::LoadU(d, grad_score + column);
    ScoreGradients<kSoftcap>(exponent_of_cap, log2_sum_exp, delta, p, ds);
    if (HWY_UNLIKELY(!whole)) {
      const auto index = hn::Iota(d, static_cast<float>(column));
      const auto seen = hn::And(hn::Ge(index, hn::Set(d, static_cast<float>(visible.begin))),
                                hn::Lt(index, hn::Set(d, static_cast<float>(visible.end))));
      p = hn::IfThenElseZero(seen, p);
      ds = hn::IfThenElseZero(seen, ds);
    }
    hn::StoreU(p, d, probability + column);
    hn::StoreU(ds, d, grad_score + column);
  }
}

// P and dS of one panel of keys, rows `rows` (counted from the tile's first query).
template <bool kSoftcap>
HWY_NOINLINE void PanelGradients(const BackwardTile& tile, const BackwardWorkspace& w, Span rows,
                                 int64_t column) {
  const BackwardHead& head = *tile.head;
  const float exponent_of_cap = tile.softcap * std::numbers::log2e_v<float>;
  const int64_t first_key = tile.keys.begin + column;
  const Span panel = {first_key, std::min(tile.keys.end, first_key + kPanelWidth)};
  const bool whole = tile.full && panel.size() == kPanelWidth;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t query = tile.queries.begin + row;
    Span visible = {0, kPanelWidth};
    if (!whole) {
      visible = VisibleKeys(head.visibility, head.visibility.PositionOf(query), panel);
      visible = {visible.begin - first_key, visible.end - first_key};
    }
    RowGradients<kSoftcap>(
        exponent_of_cap, head.constants.log2_sum_exp[query], head.constants.delta[query], visible,
        w.probability + row * w.row_length + column, w.grad_score + row * w.row_length + column);
  }
}

inline void ZeroPanel(const BackwardWorkspace& w, Span rows, int64_t column) {
  constexpr size_t kBytes = static_cast<size_t>(kPanelWidth) * sizeof(float);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    std::memset(w.probability + row * w.row_length + column, 0, kBytes);
    std::memset(w.grad_score + row * w.row_length + column, 0, kBytes);
  }
}

// S = Q K^T and dP = dO V^T panel by panel, each turned into P and dS while it is in cache. Only
// the rows that see a key of the panel; the others are zero.
inline void ScoreTile(const BackwardTile& tile, const BackwardWorkspace& w) {
  const int64_t rows = tile.queries.size();
  const int64_t head_dim = tile.head_dim;
  for (int64_t column = 0; column < tile.keys.size(); column += kPanelWidth) {
    Span seeing = {0, rows};
    if (!tile.full) {
      const int64_t first_key = tile.keys.begin + column;
      const Span panel = {first_key, std::min(tile.keys.end, first_key + kPanelWidth)};
      seeing = VisibleQueries(tile.head->visibility, tile.queries, panel);
      seeing = {seeing.begin - tile.queries.begin, seeing.end - tile.queries.begin};
      ZeroPanel(w, {0, std::min(seeing.begin, rows)}, column);
      ZeroPanel(w, {std::max<int64_t>(seeing.end, 0), rows}, column);
      if (seeing.empty()) continue;
    }
    const ptrdiff_t left = seeing.begin * head_dim;
    const ptrdiff_t to = seeing.begin * w.row_length + column;
    Multiply<false>({tile.query + left, head_dim, 1},
                    RightOperand::Panels(w.key_panels + column * head_dim, head_dim),
                    {w.probability + to, w.row_length}, seeing.size(), kPanelWidth, head_dim);
    Multiply<false>({tile.grad_out + left, head_dim, 1},
                    RightOperand::Panels(w.value_panels + column * head_dim, head_dim),
                    {w.grad_score + to, w.row_length}, seeing.size(), kPanelWidth, head_dim);
    if (tile.softcap == 0) {
      PanelGradients<false>(tile, w, seeing, column);
    } else {
      PanelGradients<true>(tile, w, seeing, column);
    }
  }
}

// dV += P^T dO, dK += dS^T Q for keys [begin, end) of the tile from queries `seeing` of the tile.
inline void AddKeyGradients(const BackwardTile& tile, const BackwardWorkspace& w, Span keys,
                            Span seeing) {
  const int64_t head_dim = tile.head_dim;
  const ptrdiff_t left = seeing.begin * w.row_length + keys.begin;
  const ptrdiff_t right = seeing.begin * head_dim;
  const ptrdiff_t to = keys.begin * head_dim;
  Multiply<true>({w.probability + left, 1, w.row_length},
                 RightOperand::RowMajor(tile.grad_out + right, head_dim),
                 {w.grad_value + to, head_dim}, keys.size(), head_dim, seeing.size());
  Multiply<true>({w.grad_score + left, 1, w.row_length},
                 RightOperand::RowMajor(tile.query + right, head_dim), {w.grad_key + to, head_dim},
                 keys.size(), head_dim, seeing.size());
}

// dQ += dS K for queries [begin, end) of the tile from keys `seen` of the tile.
inline void AddQueryGradients(const BackwardTile& tile, const BackwardWorkspace& w, Span queries,
                              Span seen) {
  const BackwardHead& head = *tile.head;
  float* to = head.grad_query.At(tile.queries.begin + queries.begin - head.first_query);
  Multiply<true>({w.grad_score + queries.begin * w.row_length + seen.begin, w.row_length, 1},
                 RightOperand::RowMajor(w.key_rows + seen.begin * tile.head_dim, tile.head_dim),
                 {to, head.grad_query.stride}, queries.size(), tile.head_dim, seen.size());
}

// As above for a tile that a window's edge crosses: strip by strip, over what the strip sees.
inline void AddEdgeGradients(const BackwardTile& tile, const BackwardWorkspace& w) {
  const HeadVisibility& visibility = tile.head->visibility;
  const int64_t key_count = tile.keys.size();
  for (int64_t begin = 0; begin < key_count; begin += kStripRows) {
    const Span strip = {begin, std::min(begin + kStripRows, key_count)};
    const Span seeing = VisibleQueries(
        visibility, tile.queries, {tile.keys.begin + strip.begin, tile.keys.begin + strip.end});
    if (seeing.empty()) continue;
    AddKeyGradients(tile, w, strip,
                    {seeing.begin - tile.queries.begin, seeing.end - tile.queries.begin});
  }
  const int64_t query_count = tile.queries.size();
  for (int64_t begin = 0; begin < query_count; begin += kStripRows) {
    const Span strip = {begin, std::min(begin + kStripRows, query_count)};
    const int64_t first = visibility.PositionOf(tile.queries.begin + strip.begin);
    const Span seen = {VisibleKeys(visibility, first, tile.keys).begin,
                       VisibleKeys(visibility, first + strip.size() - 1, tile.keys).end};
    if (seen.empty()) continue;
    AddQueryGradients(tile, w, strip, {seen.begin - tile.keys.begin, seen.end - tile.keys.begin});
  }
}

inline void AddTile(const BackwardTile& tile, const BackwardWorkspace& w) {
  ScoreTile(tile, w);
  if (tile.full) {
    AddKeyGradients(tile, w, {0, tile.keys.size()}, {0, tile.queries.size()});
    AddQueryGradients(tile, w, {0, tile.queries.size()}, {0, tile.keys.size()});
  } else {
    AddEdgeGradients(tile, w);
  }
}

// All tiles of one block of keys, none of which lies across the sinks' boundary.
inline void RunKeyBlock(const BackwardTask& task, Span keys, const BackwardWorkspace& w) {
  const int64_t head_dim = task.head_dim;
  const size_t bytes = static_cast<size_t>(keys.size() * head_dim) * sizeof(float);
  const float to_exponent =
      task.softcap == 0 ? task.scale * std::numbers::log2e_v<float> : task.scale / task.softcap;
  PackTransposed(task.key, keys, head_dim, to_exponent, w.key_panels);
  PackTransposed(task.value, keys, head_dim, task.scale, w.value_panels);
  CopyRows(task.key, keys, head_dim, w.key_rows);
  std::memset(w.grad_key, 0, bytes);
  std::memset(w.grad_value, 0, bytes);
  std::vector<QueryRange> ranges;
  for (const BackwardHead& head : task.heads) {
    QueryRangesOf(head.visibility, keys.begin, keys.end, kBackwardQueryBlock, ranges);
    for (const QueryRange& range : ranges) {
      const float* query = ContiguousRows(head.query, range.span(), head_dim, w.query_rows);
      const float* grad_out =
          ContiguousRows(head.grad_out, range.span(), head_dim, w.grad_out_rows);
      AddTile({&head, query, grad_out, range.span(), keys, range.full, head_dim, task.softcap}, w);
    }
  }
  for (int64_t row = 0; row < keys.size(); ++row) {
    const size_t row_bytes = static_cast<size_t>(head_dim) * sizeof(float);
    std::memcpy(task.grad_key.At(keys.begin + row), w.grad_key + row * head_dim, row_bytes);
    std::memcpy(task.grad_value.At(keys.begin + row), w.grad_value + row * head_dim, row_bytes);
  }
}

inline void RunTask(const BackwardTask& task, float* scratch) {
  const int64_t block = BackwardKeyBlock(task.head_dim);
  const BackwardWorkspace workspace(scratch, task.head_dim, block);
  const int64_t boundary = task.heads.front().visibility.SinkBoundary();
  for (int64_t begin = task.keys.begin; begin < task.keys.end;) {
    int64_t end = std::min(task.keys.end, (begin / block + 1) * block);
    if (begin < boundary) end = std::min(end, boundary);
    RunKeyBlock(task, {begin, end}, workspace);
    begin = end;
  }
}

inline void PrepareRows(const BackwardRows& rows, int64_t begin, int64_t end) {
  const hn::CappedTag<float, 8> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const size_t bytes = static_cast<size_t>(rows.head_dim) * sizeof(float);
  for (int64_t row = begin; row < end; ++row) {
    const float* out = rows.out.At(row);
    const float* grad_out = rows.grad_out.At(row);
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < rows.head_dim; k += lanes) {
      sum = hn::MulAdd(hn::LoadU(d, out + k), hn::LoadU(d, grad_out + k), sum);
    }
    rows.constants.delta[row] = rows.scale * hn::GetLane(hn::SumOfLanes(d, sum));
    rows.constants.log2_sum_exp[row] = *rows.log_sum_exp.At(row) * std::numbers::log2e_v<float>;
    std::memset(rows.grad_query.At(row), 0, bytes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_BACKWARD_INL_H_
