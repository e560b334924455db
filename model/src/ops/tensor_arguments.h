#ifndef AAH_MODEL_SRC_OPS_TENSOR_ARGUMENTS_H_
#define AAH_MODEL_SRC_OPS_TENSOR_ARGUMENTS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "aah/attention.h"
#include "aah/error.h"
#include "aah/tensor_view.h"

// What the operators' CPU kernels share: torch tensors as core's views, and checks of them.
namespace aah {

using OptionalTensor = std::optional<at::Tensor>;

// An undefined tensor is how autograd saves the lack of one.
inline OptionalTensor Optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

// Every tensor with heads that the operator makes lies [batch, tokens, heads, head_dim] in memory,
// so that joining the heads for the projection that follows copies nothing.
inline at::Tensor EmptyHeadsInner(const at::Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)}, like.options())
      .transpose(1, 2);
}

// The same for fake tensors.
inline at::Tensor EmptyHeadsInnerSymbolic(const at::Tensor& like) {
  return at::empty_symint({like.sym_size(0), like.sym_size(2), like.sym_size(1), like.sym_size(3)},
                          like.options())
      .transpose(1, 2);
}

inline at::Tensor WithUnitLastStride(const at::Tensor& tensor) {
  return tensor.dim() == 0 || tensor.stride(-1) == 1 || tensor.size(-1) <= 1 ? tensor
                                                                             : tensor.contiguous();
}

template <typename Element, size_t N>
TensorView<Element, N> ViewOf(const at::Tensor& tensor) {
  TensorView<Element, N> view;
  view.data = static_cast<Element*>(tensor.data_ptr());
  for (size_t axis = 0; axis < N; ++axis) {
    view.shape[axis] = tensor.size(static_cast<int64_t>(axis));
    view.strides[axis] = tensor.stride(static_cast<int64_t>(axis));
  }
  return view;
}

inline void CheckInputs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const auto check_one = [&](const char* name, const at::Tensor& tensor) {
    AAH_CHECK(tensor.dim() == 4, "attention: ", name,
              " must have four dimensions [batch, heads, tokens, head_dim], got ", tensor.dim());
    AAH_CHECK(tensor.scalar_type() == query.scalar_type(), "attention: ", name,
              " must have the type of query, ", c10::toString(query.scalar_type()), ", got ",
              c10::toString(tensor.scalar_type()));
    AAH_CHECK(tensor.device().is_cpu(), "attention: ", name, " must be on the CPU, got ",
              tensor.device().str());
  };
  check_one("query", query);
  check_one("key", key);
  check_one("value", value);
}

// An int32 CPU vector argument; contiguous.
inline at::Tensor Int32Vector(const char* name, const at::Tensor& tensor) {
  AAH_CHECK(tensor.dim() == 1 && tensor.scalar_type() == at::kInt && tensor.device().is_cpu(),
            "attention: ", name, " must be an int32 vector on the CPU, got ",
            c10::toString(tensor.scalar_type()), " of ", tensor.dim(), " dimensions on ",
            tensor.device().str());
  return tensor.contiguous();
}

// What such a vector holds; borrows from it.
inline std::span<const int32_t> Int32Span(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<int32_t>(), static_cast<size_t>(tensor.numel())};
}

// Owns which keys each sequence has, and lends them to a visibility, core's of either operator.
class KeyBounds {
 public:
  KeyBounds(const OptionalTensor& key_begin, const OptionalTensor& key_length) {
    if (key_begin) begin_ = Int32Vector("key_begin", *key_begin);
    if (key_length) length_ = Int32Vector("key_length", *key_length);
  }

  // What `visibility` borrows lives as long as this object.
  template <typename SomeVisibility>
  void LendTo(SomeVisibility& visibility) const {
    if (begin_.defined()) visibility.key_begin = Int32Span(begin_);
    if (length_.defined()) visibility.key_length = Int32Span(length_);
  }

 private:
  at::Tensor begin_;
  at::Tensor length_;
};

inline int32_t Sinks(int64_t sinks) {
  AAH_CHECK(sinks >= 0 && sinks <= std::numeric_limits<int32_t>::max(),
            "attention: sinks must be a number of tokens from 0 on, got ", sinks);
  return static_cast<int32_t>(sinks);
}

inline AttentionOptions Options(double scale, double softcap) {
  return {static_cast<float>(scale), static_cast<float>(softcap)};
}

template <typename Element>
std::span<Element> SpanOf(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<Element>(), static_cast<size_t>(tensor.numel())};
}

template <typename Element>
std::span<const Element> ConstSpanOf(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<Element>(), static_cast<size_t>(tensor.numel())};
}

// Calls `run`, turning core's complaint about arguments into the exception that Python shows as a
// ValueError.
template <typename Run>
auto WithTorchErrors(const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(error.kind() != ErrorKind::kBadInput, error.what());
    throw;
  }
}

}  // namespace aah

#endif  // AAH_MODEL_SRC_OPS_TENSOR_ARGUMENTS_H_
