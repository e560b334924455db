// Attention over nested windows, forward and backward: the candidates' bands, and the kernels that
// walk them as they walk any window.

#include "attention/nested.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "aah/nested_attention.h"
#include "aah/parallel.h"
#include "aah/scratch.h"
#include "attention/backward_call.h"
#include "attention/checks.h"
#include "attention/cpu/forward.h"
#include "attention/cpu/nested_forward.h"
#include "attention/forward_call.h"
#include "attention/tile_walk.h"

namespace aah {

using Candidate = NestedCandidates::Candidate;

void RunNestedBlock(const NestedOutputs& outputs, int64_t sequence, int64_t head,
                    const cpu::ForwardBlock& block, float* mixed) {
  std::vector<cpu::ForwardBand> bands;
  int64_t inner = 0;
  for (const Candidate& candidate : outputs.candidates.Of(head)) {
    bands.push_back(
        {.visibility = BandOf(block.visibility, inner, candidate.window),
         .weight = outputs.selection[outputs.candidates.Entry(head, candidate)],
         .out = {outputs.candidate_out.At(sequence, candidate.slot, block.query_begin),
                 outputs.candidate_out.strides[2]},
         .log_sum_exp = outputs.log_sum_exp.At(sequence, candidate.slot, block.query_begin),
         .log_sum_exp_stride = outputs.log_sum_exp.strides[2]});
    inner = candidate.window;
  }
  cpu::RunNestedForwardBlock({block, bands, mixed});
}

void NestedBands::Append(const NestedInputs& inputs, int64_t sequence, int64_t head,
                         const BackwardHead& whole, std::vector<BackwardHead>& heads) {
  std::vector<CandidateRows>& rows = rows_.emplace_back();
  const std::span<const Candidate> candidates = inputs.candidates.Of(head);
  for (const Candidate& candidate : candidates) {
    rows.push_back({inputs.log_sum_exp.At(sequence, candidate.slot),
                    inputs.out_dots.At(sequence, candidate.slot),
                    inputs.selection[inputs.candidates.Entry(head, candidate)]});
  }
  int64_t inner = 0;
  for (size_t n = 0; n < candidates.size(); ++n) {
    BackwardHead& band = heads.emplace_back(whole);
    band.visibility = BandOf(whole.visibility, inner, candidates[n].window);
    band.candidates = std::span(rows).subspan(n);
    inner = candidates[n].window;
  }
}

namespace {

constexpr int64_t kRowsPerTask = 256;

// out_dots of all candidates, and what their sums are: the gradient of each weight.
void DotCandidates(const NestedCandidates& candidates, const AttentionShape& shape,
                   ConstView4<float> candidate_out, ConstView3<float> log_sum_exp,
                   ConstView4<float> grad_out, View3<float> out_dots,
                   std::span<float> grad_selection, Parallel& parallel) {
  const int64_t blocks = (shape.queries + kRowsPerTask - 1) / kRowsPerTask;
  ForEachTask(parallel, shape.batch * shape.heads * blocks, [&](int64_t index, int) {
    const int64_t begin = index % blocks * kRowsPerTask;
    const int64_t end = std::min(begin + kRowsPerTask, shape.queries);
    const int64_t sequence = index / blocks / shape.heads;
    const int64_t head = index / blocks % shape.heads;
    for (const Candidate& candidate : candidates.Of(head)) {
      DotRows(RowsOf(candidate_out, sequence, candidate.slot), RowsOf(grad_out, sequence, head),
              shape.head_dim, begin, end, out_dots.At(sequence, candidate.slot));
    }
  });
  std::fill(grad_selection.begin(), grad_selection.end(), 0.0F);
  ForEachTask(parallel, shape.heads, [&](int64_t head, int) {
    for (const Candidate& candidate : candidates.Of(head)) {
      double sum = 0;
      for (int64_t sequence = 0; sequence < shape.batch; ++sequence) {
        const float* dots = out_dots.At(sequence, candidate.slot);
        const float* sums = log_sum_exp.At(sequence, candidate.slot);
        for (int64_t row = 0; row < shape.queries; ++row) {
          // Rows that see nothing may hold anything in grad_out.
          if (sums[row] != -std::numeric_limits<float>::infinity()) sum += double{dots[row]};
        }
      }
      grad_selection[candidates.Entry(head, candidate)] = static_cast<float>(sum);
    }
  });
}

}  // namespace

void NestedAttentionForward(ConstView4<float> query, ConstView4<float> key, ConstView4<float> value,
                            std::span<const float> selection, const NestedVisibility& visibility,
                            const AttentionOptions& options, View4<float> out,
                            View4<float> candidate_out, View3<float> log_sum_exp,
                            Parallel& parallel) {
  const NestedCandidates candidates(visibility, query.shape[1]);
  const Visibility widest = candidates.Widest();
  const AttentionShape shape =
      CheckAttention(Named("query", query), Named("key", key), Named("value", value), widest,
                     options, HeadDims::kKernels);
  candidates.CheckSelection(shape, selection);
  CheckLikeQuery(shape, Named("out", out));
  candidates.CheckSlots(shape, Named("candidate_out", candidate_out),
                        Named("log_sum_exp", log_sum_exp));
  const NestedOutputs nested = {candidates, selection, candidate_out, log_sum_exp};
  const HeadStatistics no_statistics;
  BlockForward<float>({.query = query,
                       .key = key,
                       .value = value,
                       .out = out,
                       .log_sum_exp = {},
                       .visibility = widest,
                       .statistics = no_statistics,
                       .shape = shape,
                       .score_scale = cpu::ScoreScale(shape.scale, shape.softcap),
                       .parallel = parallel,
                       .nested = &nested});
}

void NestedAttentionBackward(ConstView4<float> query, ConstView4<float> key,
                             ConstView4<float> value, std::span<const float> selection,
                             ConstView4<float> candidate_out, ConstView3<float> log_sum_exp,
                             ConstView4<float> grad_out, const NestedVisibility& visibility,
                             const AttentionOptions& options, View4<float> grad_query,
                             View4<float> grad_key, View4<float> grad_value,
                             std::span<float> grad_selection, Parallel& parallel) {
  const NestedCandidates candidates(visibility, query.shape[1]);
  const Visibility widest = candidates.Widest();
  const AttentionShape shape =
      CheckAttention(Named("query", query), Named("key", key), Named("value", value), widest,
                     options, HeadDims::kKernels);
  candidates.CheckSelection(shape, selection);
  candidates.CheckSlots(shape, Named("candidate_out", candidate_out),
                        Named("log_sum_exp", log_sum_exp));
  CheckLikeQuery(shape, Named("grad_out", grad_out));
  CheckLikeQuery(shape, Named("grad_query", grad_query));
  CheckLikeKey(shape, Named("grad_key", grad_key));
  CheckLikeKey(shape, Named("grad_value", grad_value));
  candidates.CheckGradSelection(shape, grad_selection.size());
  const std::array<int64_t, 3> slots = {shape.batch, candidates.slots(), shape.queries};
  const Scratch memory(static_cast<size_t>(slots[0] * slots[1] * slots[2]) * sizeof(float));
  const auto out_dots = View3<float>::Contiguous(memory.As<float>(), slots);
  DotCandidates(candidates, shape, candidate_out, log_sum_exp, grad_out, out_dots, grad_selection,
                parallel);
  const NestedInputs nested = {candidates, selection, log_sum_exp, out_dots};
  RunBackward({.shape = shape,
               .query = query,
               .key = key,
               .value = value,
               .out = {},
               .log_sum_exp = {},
               .grad_out = grad_out,
               .visibility = widest,
               .grad_query = grad_query,
               .grad_key = grad_key,
               .grad_value = grad_value,
               .nested = &nested},
              parallel);
}

}  // namespace aah
