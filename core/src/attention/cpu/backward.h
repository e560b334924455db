#ifndef AAH_SRC_ATTENTION_CPU_BACKWARD_H_
#define AAH_SRC_ATTENTION_CPU_BACKWARD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/tile_walk.h"

namespace aah {

// Rows of one head of one sequence: row i starts at data + i * stride.
template <typename Element>
struct Rows {
  Element* data = nullptr;
  ptrdiff_t stride = 0;

  Element* At(int64_t row) const { return data + row * stride; }
};

// What a query row brings to every tile beside query and grad_out, in the kernel's units.
struct RowConstants {
  float* log2_sum_exp = nullptr;  // log_sum_exp / ln 2
  float* delta = nullptr;         // scale * out . grad_out
};

// One query head of a task.
struct BackwardHead {
  HeadVisibility visibility;
  Rows<const float> query;
  Rows<const float> grad_out;
  RowConstants constants;  // [queries]
  // Queries that see no key of an earlier task: their rows of grad_query are overwritten.
  Rows<float> grad_query;
  Span owned;
  // Queries that do: their gradients are added to shared_grad_query, row 0 that of shared.begin.
  Rows<float> shared_grad_query;
  Span shared;
};

// A run of keys of one key/value head, with every query head that shares it.
struct BackwardTask {
  std::span<const BackwardHead> heads;
  Rows<const float> key;
  Rows<const float> value;
  Rows<float> grad_key;    // rows `keys` are overwritten
  Rows<float> grad_value;  // rows `keys` are overwritten
  Span keys;
  int64_t head_dim = 0;
  float scale = 1;
  float softcap = 0;
};

// Most queries of a tile: a multiple of every register block's rows.
constexpr int64_t kBackwardQueryBlock = 192;

// Keys per block: tasks should begin at its multiples.
int64_t BackwardKeyBlock(int64_t head_dim);

// Working memory of RunBackwardTask, in floats.
size_t BackwardScratch(int64_t head_dim);

void RunBackwardTask(const BackwardTask& task, float* scratch);

// Fills the constants of rows [begin, end).
struct BackwardRows {
  Rows<const float> out;
  Rows<const float> grad_out;
  Rows<const float> log_sum_exp;  // one element per row
  RowConstants constants;
  int64_t head_dim = 0;
  float scale = 1;
};
void PrepareBackwardRows(const BackwardRows& rows, int64_t begin, int64_t end);

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_CPU_BACKWARD_H_
