// The nested-window pass as it is defined: attention with each candidate's window, mixed. Mixing is
// linear, so a candidate's share of the gradient is attention's for its weight times grad_out.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aah/attention.h"
#include "aah/nested_attention.h"
#include "attention/checks.h"
#include "attention/nested.h"

namespace aah {
namespace {

using Candidate = NestedCandidates::Candidate;

// A contiguous tensor of doubles, zero at first.
template <size_t N>
struct DoubleTensor {
  explicit DoubleTensor(const std::array<int64_t, N>& shape) : view{nullptr, shape, {}} {
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    elements.resize(static_cast<size_t>(size));
    view = TensorView<double, N>::Contiguous(elements.data(), shape);
  }

  std::vector<double> elements;
  TensorView<double, N> view;
};

struct NestedCall {
  NestedCall(ConstView4<double> query, ConstView4<double> key, ConstView4<double> value,
             std::span<const double> selection, const NestedVisibility& nested,
             const AttentionOptions& options)
      : candidates(nested, query.shape[1]),
        shape(CheckAttention(Named("query", query), Named("key", key), Named("value", value),
                             candidates.Widest(), options, HeadDims::kAny)) {
    candidates.CheckSelection(shape, selection);
  }

  // Calls work(candidate, head) for the live heads of candidate n.
  template <typename Work>
  void ForEachHead(int64_t n, const Work& work) const {
    for (int64_t head = 0; head < shape.heads; ++head) {
      for (const Candidate& candidate : candidates.Of(head)) {
        if (candidate.index == n) work(candidate, head);
      }
    }
  }

  // Calls work(b, i) for every row of a head.
  template <typename Work>
  void ForEachRow(const Work& work) const {
    for (int64_t b = 0; b < shape.batch; ++b) {
      for (int64_t i = 0; i < shape.queries; ++i) work(b, i);
    }
  }

  NestedCandidates candidates;
  AttentionShape shape;
};

// Every head with the window of candidate n. Borrows `windows`.
Visibility With(const NestedVisibility& nested, int64_t n, int64_t heads,
                std::vector<int32_t>& windows) {
  windows.assign(static_cast<size_t>(heads), nested.windows[static_cast<size_t>(n)]);
  return {windows, nested.sinks, nested.key_begin, nested.key_length};
}

void Add(double factor, const double* from, int64_t length, double* to) {
  for (int64_t d = 0; d < length; ++d) to[d] += factor * from[d];
}

void AddAll(const View4<double>& from, const View4<double>& to) {
  for (int64_t b = 0; b < to.shape[0]; ++b) {
    for (int64_t h = 0; h < to.shape[1]; ++h) {
      for (int64_t i = 0; i < to.shape[2]; ++i)
        Add(1, from.At(b, h, i), to.shape[3], to.At(b, h, i));
    }
  }
}

void Clear(const View4<double>& tensor) {
  for (int64_t b = 0; b < tensor.shape[0]; ++b) {
    for (int64_t h = 0; h < tensor.shape[1]; ++h) {
      for (int64_t i = 0; i < tensor.shape[2]; ++i) {
        std::fill_n(tensor.At(b, h, i), tensor.shape[3], 0.0);
      }
    }
  }
}

}  // namespace

void ReferenceNestedAttentionForward(ConstView4<double> query, ConstView4<double> key,
                                     ConstView4<double> value, std::span<const double> selection,
                                     const NestedVisibility& visibility,
                                     const AttentionOptions& options, View4<double> out,
                                     View4<double> candidate_out, View3<double> log_sum_exp) {
  const NestedCall call(query, key, value, selection, visibility, options);
  const AttentionShape& shape = call.shape;
  CheckLikeQuery(shape, Named("out", out));
  call.candidates.CheckSlots(shape, Named("candidate_out", candidate_out),
                             Named("log_sum_exp", log_sum_exp));
  Clear(out);
  DoubleTensor<4> one_out(query.shape);
  DoubleTensor<3> one_log_sum_exp({shape.batch, shape.heads, shape.queries});
  std::vector<int32_t> windows;
  for (int64_t n = 0; n < call.candidates.count(); ++n) {
    ReferenceAttentionForward(query, key, value, With(visibility, n, shape.heads, windows), options,
                              one_out.view, one_log_sum_exp.view, {}, {}, {});
    call.ForEachHead(n, [&](const Candidate& candidate, int64_t h) {
      const double weight = selection[call.candidates.Entry(h, candidate)];
      call.ForEachRow([&](int64_t b, int64_t i) {
        const double* row = one_out.view.At(b, h, i);
        Add(weight, row, shape.head_dim, out.At(b, h, i));
        std::copy_n(row, shape.head_dim, candidate_out.At(b, candidate.slot, i));
        *log_sum_exp.At(b, candidate.slot, i) = *one_log_sum_exp.view.At(b, h, i);
      });
    });
  }
}

void ReferenceNestedAttentionBackward(ConstView4<double> query, ConstView4<double> key,
                                      ConstView4<double> value, std::span<const double> selection,
                                      ConstView4<double> candidate_out, ConstView4<double> grad_out,
                                      const NestedVisibility& visibility,
                                      const AttentionOptions& options, View4<double> grad_query,
                                      View4<double> grad_key, View4<double> grad_value,
                                      std::span<double> grad_selection) {
  const NestedCall call(query, key, value, selection, visibility, options);
  const AttentionShape& shape = call.shape;
  CheckLikeQuery(shape, Named("grad_out", grad_out));
  CheckLikeQuery(shape, Named("grad_query", grad_query));
  CheckLikeKey(shape, Named("grad_key", grad_key));
  CheckLikeKey(shape, Named("grad_value", grad_value));
  call.candidates.CheckGradSelection(shape, grad_selection.size());
  for (const View4<double>& gradient : {grad_query, grad_key, grad_value}) Clear(gradient);
  std::fill(grad_selection.begin(), grad_selection.end(), 0.0);
  std::vector<int32_t> windows;
  for (int64_t n = 0; n < call.candidates.count(); ++n) {
    DoubleTensor<4> share(query.shape);  // of grad_out
    call.ForEachHead(n, [&](const Candidate& candidate, int64_t h) {
      const size_t entry = call.candidates.Entry(h, candidate);
      call.ForEachRow([&](int64_t b, int64_t i) {
        const double* grad_row = grad_out.At(b, h, i);
        const double* row = candidate_out.At(b, candidate.slot, i);
        Add(selection[entry], grad_row, shape.head_dim, share.view.At(b, h, i));
        for (int64_t d = 0; d < shape.head_dim; ++d) grad_selection[entry] += grad_row[d] * row[d];
      });
    });
    DoubleTensor<4> one_grad_query(query.shape);
    DoubleTensor<4> one_grad_key(key.shape);
    DoubleTensor<4> one_grad_value(key.shape);
    ReferenceAttentionBackward(query, key, value, share.view,
                               With(visibility, n, shape.heads, windows), options,
                               one_grad_query.view, one_grad_key.view, one_grad_value.view);
    AddAll(one_grad_query.view, grad_query);
    AddAll(one_grad_key.view, grad_key);
    AddAll(one_grad_value.view, grad_value);
  }
}

}  // namespace aah
