#ifndef AAH_TENSOR_VIEW_H_
#define AAH_TENSOR_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace aah {

// A borrowed view of a strided array of rank N. Strides count elements, may be any value (zero for
// a broadcast axis, negative for a reversed one) except the last, which kernels require to be 1.
// Owns nothing; the memory must outlive the view.
template <typename Element, size_t N>
struct TensorView {
  Element* data = nullptr;
  std::array<int64_t, N> shape = {};
  std::array<int64_t, N> strides = {};

  // A dense row-major view.
  static TensorView Contiguous(Element* data, const std::array<int64_t, N>& shape) {
    TensorView view{data, shape, {}};
    int64_t stride = 1;
    for (size_t axis = N; axis-- > 0;) {
      view.strides[axis] = stride;
      stride *= shape[axis];
    }
    return view;
  }

  template <typename... Index>
  Element* At(Index... index) const {
    static_assert(sizeof...(Index) <= N);
    const std::array<int64_t, sizeof...(Index)> indices = {static_cast<int64_t>(index)...};
    int64_t offset = 0;
    for (size_t axis = 0; axis < indices.size(); ++axis) offset += indices[axis] * strides[axis];
    return data + offset;
  }

  operator TensorView<const Element, N>() const  // NOLINT(google-explicit-constructor)
    requires(!std::is_const_v<Element>)
  {
    return {data, shape, strides};
  }
};

template <typename Element>
using View4 = TensorView<Element, 4>;
template <typename Element>
using ConstView4 = TensorView<const Element, 4>;
template <typename Element>
using View3 = TensorView<Element, 3>;
template <typename Element>
using ConstView3 = TensorView<const Element, 3>;

}  // namespace aah

#endif  // AAH_TENSOR_VIEW_H_
