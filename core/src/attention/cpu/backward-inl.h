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
#include "attention/cpu/nested_backward-inl.h"
#include "attention/cpu/rows-inl.h"
#include "attention/tile_walk.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace aah {
namespace HWY_NAMESPACE {

// Working memory of one worker. Leading dimensions in floats; a key block never has more than
// `key_block` keys, a query block never more than
// kBackwardQueryBlock rows.
struct BackwardWorkspace {
  BackwardWorkspace(float* scratch, int64_t head_dim, int64_t block)
      : row_length(block + kLanes),
        key_panels(scratch),
        value_panels(key_panels + block * head_dim),
        key_copy(value_panels + block * head_dim),
        key_rows(key_copy),
        grad_key(key_copy + block * head_dim),
        grad_value(grad_key + block * head_dim),
        query_rows(grad_value + block * head_dim),
        grad_out_rows(query_rows + kBackwardQueryBlock * head_dim),
        probability(grad_out_rows + kBackwardQueryBlock * head_dim),
        grad_score(probability + kBackwardQueryBlock * row_length),
        constants{grad_score + kBackwardQueryBlock * row_length,
                  grad_score + kBackwardQueryBlock * (row_length + 1)} {}

  // Odd in cache lines, so that a column of a tile does not fall into few sets of the cache.
  int64_t row_length;
  float* key_panels;       // K^T in panels
  float* value_panels;     // V^T in panels
  float* key_copy;         // [keys][head_dim], where the caller's are not contiguous
  const float* key_rows;   // [keys][head_dim], the copy or the caller's
  float* grad_key;         // [keys][head_dim]
  float* grad_value;       // [keys][head_dim]
  float* query_rows;       // [queries][head_dim], where the caller's are not contiguous
  float* grad_out_rows;    // [queries][head_dim], likewise
  float* probability;      // [queries][row_length]
  float* grad_score;       // [queries][row_length]
  RowConstants constants;  // [queries], of a band of nested windows
};

// How raw products q.k become exponents of 2, and dO.v what dS is made of.
struct ScoreUnits {
  explicit ScoreUnits(const BackwardTask& task)
      : scale(task.scale),
        factor(task.softcap == 0 ? scale * std::numbers::log2e_v<float> : scale / task.softcap),
        cap(task.softcap * std::numbers::log2e_v<float>) {}

  float scale;
  float factor;  // of q.k: to the exponent, or to the argument of tanh where scores are capped
  float cap;     // 0: off
};

// A tile: some queries of one head by one block of keys.
struct BackwardTile {
  const BackwardHead* head;
  const float* query;      // [queries][head_dim]
  const float* grad_out;   // [queries][head_dim]
  RowConstants constants;  // row 0 is that of queries.begin, so in grad_query
  Rows<float> grad_query;
  Span queries;
  Span keys;
  bool full;
  int64_t head_dim;
  ScoreUnits units;
};

// K^T or V^T of a block of keys, panel by panel.
inline void PackPanels(Rows<const float> source, Span rows, int64_t head_dim, float* panels) {
  for (int64_t begin = rows.begin; begin < rows.end; begin += kPanelWidth) {
    PackKeyPanelImpl<float>({source.At(begin), source.stride},
                            std::min(kPanelWidth, rows.end - begin), head_dim, panels);
    panels += kPanelWidth * head_dim;
  }
}

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

// In place, for one vector of products: p, q.k at first, becomes the probability
// 2^(exponent - log2_sum_exp), and ds, dO.v at first, becomes p (scale dO.v - delta), times the
// slope of the cap.
template <bool kSoftcap>
HWY_INLINE void ScoreGradients(const ScoreUnits& units, float log2_sum_exp, float delta,
                               hn::Vec<FloatTag>& p, hn::Vec<FloatTag>& ds) {
  const FloatTag d;
  const auto lse = hn::Set(d, log2_sum_exp);
  const auto factor = hn::Set(d, units.factor);
  auto centred = hn::MulSub(ds, hn::Set(d, units.scale), hn::Set(d, delta));
  if constexpr (kSoftcap) {
    const auto t = Tanh(d, hn::Mul(p, factor));
    centred = hn::Mul(centred, hn::NegMulAdd(t, t, hn::Set(d, 1.0F)));
    p = hn::MulSub(t, hn::Set(d, units.cap), lse);
  } else {
    p = hn::MulSub(p, factor, lse);
  }
  p = Exp2(d, p);
  ds = hn::Mul(p, centred);
}

// One row of one panel; `visible` counts columns from the panel's first.
template <bool kSoftcap, bool kWhole>
HWY_INLINE void RowGradients(const ScoreUnits& units, float log2_sum_exp, float delta, Span visible,
                             float* HWY_RESTRICT probability, float* HWY_RESTRICT grad_score) {
  const FloatTag d;
  for (int64_t column = 0; column < kPanelWidth; column += kLanes) {
    auto p = hn::LoadU(d, probability + column);
    auto ds = hn::LoadU(d, grad_score + column);
    ScoreGradients<kSoftcap>(units, log2_sum_exp, delta, p, ds);
    if constexpr (!kWhole) {
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

// P and dS of rows `rows` (counted from the tile's first query) of one panel of keys. kWhole: the
// rows see the whole panel.
template <bool kSoftcap, bool kWhole>
HWY_NOINLINE void RowsGradients(const BackwardTile& tile, const BackwardWorkspace& w, Span rows,
                                int64_t column) {
  const HeadVisibility& head = tile.head->visibility;
  const ScoreUnits units = tile.units;
  const int64_t first_key = tile.keys.begin + column;
  const Span panel = {first_key, std::min(tile.keys.end, first_key + kPanelWidth)};
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    Span visible = {0, kPanelWidth};
    if constexpr (!kWhole) {
      visible = VisibleKeys(head, head.PositionOf(tile.queries.begin + row), panel);
      visible = {visible.begin - first_key, visible.end - first_key};
    }
    RowGradients<kSoftcap, kWhole>(
        units, tile.constants.log2_sum_exp[row], tile.constants.delta[row], visible,
        w.probability + row * w.row_length + column, w.grad_score + row * w.row_length + column);
  }
}

// As above for all rows that see a key of the panel: the first and the last few see a part of it.
template <bool kSoftcap>
HWY_INLINE void PanelGradients(const BackwardTile& tile, const BackwardWorkspace& w, Span rows,
                               int64_t column) {
  const int64_t first_key = tile.keys.begin + column;
  const int64_t last_key = first_key + kPanelWidth - 1;
  Span whole = rows;
  if (last_key >= tile.keys.end) {
    whole.end = whole.begin;
  } else if (!tile.full) {
    const Span first =
        VisibleQueries(tile.head->visibility, tile.queries, {first_key, first_key + 1});
    const Span last = VisibleQueries(tile.head->visibility, tile.queries, {last_key, last_key + 1});
    if (first.empty() || last.empty()) {
      whole.end = whole.begin;
    } else {
      whole.begin = std::clamp(last.begin - tile.queries.begin, rows.begin, rows.end);
      whole.end = std::clamp(first.end - tile.queries.begin, whole.begin, rows.end);
    }
  }
  RowsGradients<kSoftcap, false>(tile, w, {rows.begin, whole.begin}, column);
  RowsGradients<kSoftcap, true>(tile, w, whole, column);
  RowsGradients<kSoftcap, false>(tile, w, {whole.end, rows.end}, column);
}

inline void ZeroPanel(const BackwardWorkspace& w, Span rows, int64_t column) {
  const FloatTag d;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t at = column; at < column + kPanelWidth; at += kLanes) {
      hn::StoreU(hn::Zero(d), d, w.probability + row * w.row_length + at);
      hn::StoreU(hn::Zero(d), d, w.grad_score + row * w.row_length + at);
    }
  }
}

// Rows of the tile that see one of the panel's keys in vectors [vectors.begin, vectors.end).
inline Span RowsSeeing(const BackwardTile& tile, Span vectors, int64_t column) {
  const int64_t first_key = tile.keys.begin + column;
  const Span keys = {first_key + vectors.begin * kLanes,
                     std::min(tile.keys.end, first_key + vectors.end * kLanes)};
  const Span seeing = VisibleQueries(tile.head->visibility, tile.queries, keys);
  return {seeing.begin - tile.queries.begin, seeing.end - tile.queries.begin};
}

// Raw S and dP of some rows and of kVectors vectors of a panel, from its column `offset` on.
template <int64_t kVectors>
HWY_INLINE void MultiplyScores(const BackwardTile& tile, const BackwardWorkspace& w, Span rows,
                               int64_t column, int64_t offset) {
  if (rows.empty()) return;
  const int64_t head_dim = tile.head_dim;
  const ptrdiff_t left = rows.begin * head_dim;
  const ptrdiff_t right = column * head_dim + offset;
  const ptrdiff_t to = rows.begin * w.row_length + column + offset;
  const FloatTag d;
  MultiplyPanel<false, kVectors>(d, {tile.query + left, head_dim, 1}, w.key_panels + right,
                                 kPanelWidth, {w.probability + to, w.row_length}, rows.size(),
                                 head_dim);
  MultiplyPanel<false, kVectors>(d, {tile.grad_out + left, head_dim, 1}, w.value_panels + right,
                                 kPanelWidth, {w.grad_score + to, w.row_length}, rows.size(),
                                 head_dim);
}

// S = Q K^T and dP = dO V^T panel by panel, each turned into P and dS while it is in cache. Only
// the rows that see a key of the panel. The rows around them are zero as far as AddEdgeGradients
// may read them: its strips begin and end at most kStripRows - 1 beyond what is visible.
inline void ScoreTile(const BackwardTile& tile, const BackwardWorkspace& w) {
  const int64_t rows = tile.queries.size();
  for (int64_t column = 0; column < tile.keys.size(); column += kPanelWidth) {
    Span seeing = {0, rows};
    if (!tile.full) {
      seeing = RowsSeeing(tile, {0, 2}, column);
      ZeroPanel(w, {std::max<int64_t>(seeing.begin - kStripRows, 0), std::min(seeing.begin, rows)},
                column);
      ZeroPanel(w, {seeing.end, std::min(seeing.end + kStripRows, rows)}, column);
      if (seeing.empty()) continue;
    }
    const Span seeing_end = tile.full ? seeing : RowsSeeing(tile, Span{1, 2}, column);
    const Span seeing_start = tile.full ? seeing : RowsSeeing(tile, Span{0, 1}, column);
    // Where the edge of a window comes in, rows see one half of the panel before the other.
    const bool halves = !tile.full && !seeing_start.empty() && !seeing_end.empty() &&
                        seeing_end.begin <= seeing_start.end;
    if (halves) {
      MultiplyScores<1>(tile, w, {seeing.begin, seeing_end.begin}, column, 0);
      MultiplyScores<2>(tile, w, {seeing_end.begin, seeing_start.end}, column, 0);
      MultiplyScores<1>(tile, w, {seeing_start.end, seeing.end}, column, kLanes);
    } else {
      MultiplyScores<2>(tile, w, seeing, column, 0);
    }
    if (tile.units.cap == 0) {
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
  Multiply<true>({w.grad_score + queries.begin * w.row_length + seen.begin, w.row_length, 1},
                 RightOperand::RowMajor(w.key_rows + seen.begin * tile.head_dim, tile.head_dim),
                 {tile.grad_query.At(queries.begin), tile.grad_query.stride}, queries.size(),
                 tile.head_dim, seen.size());
}

// As above for a tile that a window's edge crosses: strip by strip, over what the strip sees.
inline void AddEdgeGradients(const BackwardTile& tile, const BackwardWorkspace& w) {
  const HeadVisibility& visibility = tile.head->visibility;
  // Keys outside the sequence have no strip: ScoreTile leaves their columns undefined.
  const int64_t key_end = std::min(tile.keys.end, visibility.key_end) - tile.keys.begin;
  int64_t key_begin = std::max(visibility.key_begin - tile.keys.begin, int64_t{0});
  for (; key_begin < key_end; key_begin += kStripRows) {
    const Span strip = {key_begin, std::min(key_begin + kStripRows, key_end)};
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

inline RowConstants ConstantsOf(const BackwardTask& task, const BackwardHead& head, Span queries,
                                const BackwardWorkspace& w) {
  if (head.candidates.empty()) {
    return {head.constants.log2_sum_exp + queries.begin, head.constants.delta + queries.begin};
  }
  BandConstants(head.candidates, queries, task.scale, w.constants);
  return w.constants;
}

// Tiles of one head with one block of keys, for queries [range.begin, range.end).
inline void AddRange(const BackwardTask& task, const BackwardHead& head, Span keys,
                     const QueryRange& range, const BackwardWorkspace& w) {
  for (int64_t begin = range.begin; begin < range.end;) {
    int64_t end = range.end;
    Rows<float> grad_query = head.grad_query;
    if (head.shared.begin <= begin && begin < head.shared.end) {
      end = std::min(end, head.shared.end);
      grad_query = head.shared_grad_query;
      grad_query.data = grad_query.At(begin - head.shared.begin);
    } else {
      grad_query.data = grad_query.At(begin);
    }
    const Span queries = {begin, end};
    AddTile({&head, ContiguousRows(head.query, queries, task.head_dim, w.query_rows),
             ContiguousRows(head.grad_out, queries, task.head_dim, w.grad_out_rows),
             ConstantsOf(task, head, queries, w), grad_query, queries, keys, range.full,
             task.head_dim, ScoreUnits(task)},
            w);
    begin = end;
  }
}

// Zeroes the rows of grad_query up to `end` that this task owns and has not used yet: as late as
// can be, so that they are in cache when the first tile adds to them.
inline void ClearUntil(const BackwardHead& head, int64_t head_dim, int64_t end, int64_t& cleared) {
  const size_t bytes = static_cast<size_t>(head_dim) * sizeof(float);
  for (; cleared < std::min(end, head.owned.end); ++cleared) {
    std::memset(head.grad_query.At(cleared), 0, bytes);
  }
}

// All tiles of one block of keys, none of which lies across the sinks' boundary.
inline void RunKeyBlock(const BackwardTask& task, Span keys, BackwardWorkspace w,
                        std::vector<int64_t>& cleared) {
  const int64_t head_dim = task.head_dim;
  const size_t bytes = static_cast<size_t>(keys.size() * head_dim) * sizeof(float);
  PackPanels(task.key, keys, head_dim, w.key_panels);
  PackPanels(task.value, keys, head_dim, w.value_panels);
  w.key_rows = ContiguousRows(task.key, keys, head_dim, w.key_copy);
  const bool in_place = task.grad_key.stride == head_dim && task.grad_value.stride == head_dim;
  if (in_place) {
    w.grad_key = task.grad_key.At(keys.begin);
    w.grad_value = task.grad_value.At(keys.begin);
  }
  std::memset(w.grad_key, 0, bytes);
  std::memset(w.grad_value, 0, bytes);
  std::vector<QueryRange> ranges;
  for (const BackwardHead& head : task.heads) {
    QueryRangesOf(head.visibility, keys.begin, keys.end, kBackwardQueryBlock, ranges);
    if (ranges.empty()) continue;
    ClearUntil(head, head_dim, ranges.back().end, cleared[head.member]);
    for (const QueryRange& range : ranges) AddRange(task, head, keys, range, w);
  }
  if (in_place) return;
  for (int64_t row = 0; row < keys.size(); ++row) {
    const size_t row_bytes = static_cast<size_t>(head_dim) * sizeof(float);
    std::memcpy(task.grad_key.At(keys.begin + row), w.grad_key + row * head_dim, row_bytes);
    std::memcpy(task.grad_value.At(keys.begin + row), w.grad_value + row * head_dim, row_bytes);
  }
}

inline void RunTask(const BackwardTask& task, float* scratch) {
  const int64_t block = BackwardKeyBlock(task.head_dim);
  const BackwardWorkspace workspace(scratch, task.head_dim, block);
  std::vector<int64_t> cleared;  // per member: its own rows before are zeroed
  for (const BackwardHead& head : task.heads) {
    if (head.member == cleared.size()) cleared.push_back(head.owned.begin);
  }
  const int64_t boundary = task.heads.front().visibility.SinkBoundary();
  for (int64_t begin = task.keys.begin; begin < task.keys.end;) {
    int64_t end = std::min(task.keys.end, (begin / block + 1) * block);
    if (begin < boundary) end = std::min(end, boundary);
    RunKeyBlock(task, {begin, end}, workspace, cleared);
    begin = end;
  }
  for (const BackwardHead& head : task.heads) {
    ClearUntil(head, task.head_dim, head.owned.end, cleared[head.member]);
  }
}

HWY_INLINE float DotRow(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                        int64_t head_dim) {
  const hn::CappedTag<float, 8> d;
  auto sum = hn::Zero(d);
  for (int64_t k = 0; k < head_dim; k += static_cast<int64_t>(hn::MaxLanes(d))) {
    sum = hn::MulAdd(hn::LoadU(d, a + k), hn::LoadU(d, b + k), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

inline void PrepareRows(const BackwardRows& rows, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    rows.constants.delta[row] =
        rows.scale * DotRow(rows.out.At(row), rows.grad_out.At(row), rows.head_dim);
    rows.constants.log2_sum_exp[row] = *rows.log_sum_exp.At(row) * std::numbers::log2e_v<float>;
  }
}

inline void DotRowsImpl(Rows<const float> a, Rows<const float> b, int64_t head_dim, int64_t begin,
                        int64_t end, float* dots) {
  for (int64_t row = begin; row < end; ++row) dots[row] = DotRow(a.At(row), b.At(row), head_dim);
}

}  // namespace HWY_NAMESPACE
}  // namespace aah
HWY_AFTER_NAMESPACE();

#endif  // AAH_SRC_ATTENTION_CPU_BACKWARD_INL_H_
