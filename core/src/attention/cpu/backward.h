#ifndef AAH_SRC_ATTENTION_CPU_BACKWARD_H_
#define AAH_SRC_ATTENTION_CPU_BACKWARD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/cpu/forward.h"
#include "attention/tile_walk.h"

namespace aah {

using cpu::Rows;

// What a query row brings to every tile beside query and grad_out.
struct RowConstants {
  float* log2_sum_exp = nullptr;  // log_sum_exp / ln 2
  float* delta = nullptr;         // scale * out . grad_out
};

// One of the candidates of nested windows that show a band of keys.
struct CandidateRows {
  const float* log_sum_exp = nullptr;  // [queries]
  const float* out_dots = nullptr;     // [queries]: the candidate's out . grad_out
  float weight = 0;                    // in the mixture
};

// Below this the weight of a band in a row counts as nothing.
constexpr float kLeastBandWeight = 0x1p-100F;

// One query head of a task, or one band of its keys where its windows are nested.
struct BackwardHead {
  HeadVisibility visibility;
  Rows<const float> query;
  Rows<const float> grad_out;
  RowConstants constants;  // [queries]; unused where there are candidates
  // Of a band: the candidates that show it, ascending. Empty where windows are not nested.
  std::span<const CandidateRows> candidates;
  // The head's place in the group. Bands of one head share its rows of grad_query.
  size_t member = 0;
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

// dots[row] = a's row . b's row for rows [begin, end).
void DotRows(Rows<const float> a, Rows<const float> b, int64_t head_dim, int64_t begin, int64_t end,
             float* dots);

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_CPU_BACKWARD_H_
