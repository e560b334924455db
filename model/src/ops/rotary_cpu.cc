// Compiled with -fopenmp, as at::parallel_for needs.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "ops/attention_kernels.h"

namespace aah {
namespace {

template <typename Real>
void RotateRow(const Real* x, const Real* cosine, const Real* sine, Real sign, int64_t pairs,
               Real* out) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const Real a = x[pair];
    const Real b = x[pair + pairs];
    out[pair] = a * cosine[pair] - sign * b * sine[pair];
    out[pair + pairs] = b * cosine[pair] + sign * a * sine[pair];
  }
}

template <typename Real>
void Rotate(const at::Tensor& x, const at::Tensor& table, bool inverse, const at::Tensor& out) {
  const int64_t tokens = x.size(1);
  const int64_t heads = x.size(2);
  const int64_t pairs = x.size(3) / 2;
  const Real sign = inverse ? Real(-1) : Real(1);
  const Real* cosine = table.const_data_ptr<Real>();
  const Real* sine = cosine + table.stride(0);
  const Real* source = x.const_data_ptr<Real>();
  Real* target = out.mutable_data_ptr<Real>();
  at::parallel_for(0, x.size(0) * tokens, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row % tokens;
      const Real* from = source + row / tokens * x.stride(0) + token * x.stride(1);
      for (int64_t head = 0; head < heads; ++head) {
        RotateRow(from + head * x.stride(2), cosine + token * pairs, sine + token * pairs, sign,
                  pairs, target + (row * heads + head) * 2 * pairs);
      }
    }
  });
}

}  // namespace

at::Tensor RotaryCpu(const at::Tensor& x, const at::Tensor& table, bool inverse) {
  TORCH_CHECK_VALUE(x.dim() == 4 && x.size(3) % 2 == 0,
                    "rotary: x must be [batch, tokens, heads, head_dim] with an even head_dim");
  TORCH_CHECK_VALUE(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble,
                    "rotary: x must be float32 or float64, got ", c10::toString(x.scalar_type()));
  TORCH_CHECK_VALUE(table.dim() == 3 && table.size(0) == 2 && table.size(1) >= x.size(1) &&
                        table.size(2) == x.size(3) / 2 && table.scalar_type() == x.scalar_type(),
                    "rotary: table must be [2, at least tokens, head_dim / 2] of the type of x");
  const at::Tensor source = x.stride(3) == 1 ? x : x.contiguous();
  const at::Tensor dense_table = table.contiguous();
  at::Tensor out = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotary",
                             [&] { Rotate<scalar_t>(source, dense_table, inverse, out); });
  return out;
}

}  // namespace aah
