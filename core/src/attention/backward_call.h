#ifndef AAH_SRC_ATTENTION_BACKWARD_CALL_H_
#define AAH_SRC_ATTENTION_BACKWARD_CALL_H_

#include <cstddef>
#include <cstdint>

#include "aah/attention.h"
#include "aah/parallel.h"
#include "aah/tensor_view.h"
#include "attention/checks.h"
#include "attention/cpu/backward.h"
#include "attention/nested.h"

namespace aah {

// The arguments of one AttentionBackward, checked.
struct BackwardCall {
  AttentionShape shape;
  ConstView4<float> query;
  ConstView4<float> key;
  ConstView4<float> value;
  ConstView4<float> out;
  ConstView3<float> log_sum_exp;
  ConstView4<float> grad_out;
  const Visibility& visibility;
  View4<float> grad_query;
  View4<float> grad_key;
  View4<float> grad_value;
  // Null for plain attention. Otherwise `visibility` is the widest, out and log_sum_exp are unused.
  const NestedInputs* nested = nullptr;
};

void RunBackward(const BackwardCall& call, Parallel& parallel);

template <typename Element>
Rows<Element> RowsOf(const TensorView<Element, 4>& view, int64_t sequence, int64_t head) {
  return {view.At(sequence, head), view.strides[2]};
}

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_BACKWARD_CALL_H_
