#ifndef AAH_SRC_ATTENTION_CPU_NESTED_FORWARD_H_
#define AAH_SRC_ATTENTION_CPU_NESTED_FORWARD_H_

#include <cstddef>
#include <span>

#include "attention/cpu/forward.h"
#include "attention/tile_walk.h"

namespace aah::cpu {

// What a candidate window adds to the next narrower one, and where the candidate's results go.
struct ForwardBand {
  HeadVisibility visibility;
  float weight = 0;    // of the candidate in the mixture
  Rows<float> out;     // the candidate's own
  float* log_sum_exp;  // of the block's first row
  ptrdiff_t log_sum_exp_stride = 1;
};

// A block whose queries see all keys of `bands`, nearest first. block.out is workspace, neither
// block.visibility nor block.log_sum_exp is used, and there are no statistics.
struct NestedForwardBlock {
  ForwardBlock block;
  std::span<const ForwardBand> bands;
  float* mixed;  // [rows, head_dim]: sum of weight * out over the bands
};

void RunNestedForwardBlock(const NestedForwardBlock& block);

}  // namespace aah::cpu

#endif  // AAH_SRC_ATTENTION_CPU_NESTED_FORWARD_H_
