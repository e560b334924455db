#ifndef AAH_SRC_ATTENTION_CPU_FORWARD_H_
#define AAH_SRC_ATTENTION_CPU_FORWARD_H_

#include <cstddef>
#include <cstdint>

#include "attention/tile_walk.h"

namespace aah::cpu {

// The steps of a forward pass that are compiled per instruction set and chosen at run time. Storage
// is float, Bfloat16 or Float16; everything between load and store is float.

// Keys are packed in panels of this many, transposed: element (d, j) of panel n is key
// n * KeyPanelWidth() + j at n * KeyPanelWidth() * head_dim + d * KeyPanelWidth() + j.
int64_t KeyPanelWidth();

// A run of rows in a strided tensor.
template <typename Storage>
struct Rows {
  Storage* data = nullptr;
  ptrdiff_t stride = 0;

  Storage* At(int64_t row) const { return data + row * stride; }
};

// Packs `count` <= KeyPanelWidth() keys into one panel; the columns beyond are zero.
template <typename Storage>
void PackKeyPanel(Rows<const Storage> keys, int64_t count, int64_t head_dim, float* panel);

// destination[row][d] = rows[row][d] * scale, dense.
template <typename Storage>
void LoadRows(Rows<const Storage> rows, int64_t count, int64_t head_dim, float scale,
              float* destination);

// The inverse, without a scale; rounds to nearest even.
template <typename Storage>
void StoreRows(const float* source, int64_t count, int64_t head_dim, Rows<Storage> rows);

// Maps an index of keys, or of panels of keys, to where it is stored: everything in
// [gap_begin, gap_end) is left out, as is everything before `first`.
struct StoredRange {
  int64_t first = 0;
  int64_t gap_begin = 0;
  int64_t gap_end = 0;

  int64_t SlotOf(int64_t index) const {
    return index - first - (index >= gap_end ? gap_end - gap_begin : 0);
  }
};

// The keys and values of one key/value head of one sequence, ready for the kernel.
struct PackedKeys {
  const float* panels = nullptr;
  StoredRange panel_range;
  const float* values = nullptr;  // rows of value_stride
  ptrdiff_t value_stride = 0;
  StoredRange value_range;
};

// How raw products q.k become exponents of 2: scores are in units of ln 2.
struct ScoreScale {
  // Queries are multiplied by this beforehand.
  float query_factor = 1;
  // 0: off; otherwise score = cap * tanh(q.k * query_factor).
  float cap = 0;

  ScoreScale(float scale, float softcap);
};

// By-products of a block of queries, summed over its rows.
struct BlockStatistics {
  double entropy = 0;  // natural log
  double norm = 0;
  double usage = 0;
};

// One block of queries of one head.
struct ForwardBlock {
  HeadVisibility visibility;
  int64_t query_begin = 0;
  int64_t query_end = 0;
  int64_t head_dim = 0;
  float score_cap = 0;  // of ScoreScale
  const float* query;   // [rows, head_dim], times ScoreScale::query_factor
  PackedKeys keys;
  float* out;                             // [rows, head_dim]
  float* log_sum_exp;                     // [rows], natural log
  BlockStatistics* statistics = nullptr;  // null where not wanted
  float* workspace;                       // ForwardWorkspace() floats
};

// Queries per block, and the floats a worker needs for one.
constexpr int64_t kQueryBlock = 96;
size_t ForwardWorkspace();

void RunForwardBlock(const ForwardBlock& block);

// One query of one head against part of its keys.
template <typename Storage>
struct DecodeSpan {
  Rows<const Storage> keys;  // of the span
  Rows<const Storage> values;
  Span span;  // indices of those keys
};

// A softmax not yet divided: what spans of keys leave behind and what merges them.
struct DecodePartial {
  float reference = 0;  // in units of ln 2; meaningless while sum is 0
  float sum = 0;
  float weighted = 0;  // sum of p * (score - reference)
  float last = 0;      // p of the last key seen
};

// Keys that one task of the decode path reads, and the floats it needs to do so.
constexpr int64_t kDecodeSplit = 512;
size_t DecodeWorkspace(int64_t head_dim);

// Adds the keys of `span` to the partial softmax of one query (head_dim floats, times
// ScoreScale::query_factor); `out` has head_dim floats, zero at first.
template <typename Storage>
void RunDecodeSpan(const float* query, int64_t head_dim, float score_cap,
                   const DecodeSpan<Storage>& span, DecodePartial& partial, float* out,
                   float* workspace);

}  // namespace aah::cpu

#endif  // AAH_SRC_ATTENTION_CPU_FORWARD_H_
