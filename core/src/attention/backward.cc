// The backward pass: what is cut into tasks, and how their sums are put together. The keys of each
// (sequence, key/value head) are cut into segments. A task owns one segment: it writes the
// segment's grad_key and grad_value, and adds into a grad_query of its own, because segments share
// queries. The first segment's is the result itself; the others are added to it in their order.
// Shapes and windows alone decide the cut, so the sums are the same to the bit for any number of
// workers.

#include "attention/cpu/backward.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "aah/attention.h"
#include "aah/parallel.h"
#include "aah/scratch.h"
#include "aah/tensor_view.h"
#include "attention/backward_call.h"
#include "attention/checks.h"
#include "attention/nested.h"
#include "attention/tile_walk.h"

namespace aah {
namespace {

// Enough tasks to keep many workers busy to the end; more segments cost memory: each has a
// grad_query of its own.
constexpr int64_t kTasks = 64;
constexpr int64_t kMostSegments = 8;
constexpr int64_t kRowsPerTask = 256;  // of the passes before and after

using Arguments = BackwardCall;

// A run of keys of one (sequence, key/value head), its cost, and where its grad_query rows lie.
struct Segment {
  int64_t sequence = 0;
  int64_t kv_head = 0;
  Span keys;
  int64_t pairs = 0;
  std::vector<Span> owned;   // per head of the group: queries that no earlier segment sees
  std::vector<Span> shared;  // per head of the group: those that one does
  size_t buffer = 0;         // where their rows start in the buffers
};

// Pairs between keys [begin, end) and the queries that see them; the number of queries changes
// almost linearly from key to key.
int64_t PairsOfKeys(const HeadVisibility& head, Span keys) {
  const Span queries = {0, head.queries};
  const int64_t first = VisibleQueries(head, queries, {keys.begin, keys.begin + 1}).size();
  const int64_t last = VisibleQueries(head, queries, {keys.end - 1, keys.end}).size();
  return (first + last) * keys.size() / 2;
}

std::vector<HeadVisibility> GroupOf(const Arguments& a, int64_t sequence, int64_t kv_head) {
  std::vector<HeadVisibility> group;
  for (int64_t n = 0; n < a.shape.group(); ++n) {
    group.push_back(VisibilityOf(a.visibility, a.shape, sequence, kv_head * a.shape.group() + n));
  }
  return group;
}

// Cost of each block of keys of one (sequence, key/value head).
std::vector<int64_t> BlockCosts(const Arguments& a, int64_t sequence, int64_t kv_head) {
  const int64_t block = BackwardKeyBlock(a.shape.head_dim);
  const std::vector<HeadVisibility> group = GroupOf(a, sequence, kv_head);
  std::vector<int64_t> costs;
  for (int64_t begin = 0; begin < a.shape.keys; begin += block) {
    const Span keys = {begin, std::min(begin + block, a.shape.keys)};
    int64_t pairs = 0;
    for (const HeadVisibility& head : group) pairs += PairsOfKeys(head, keys);
    costs.push_back(pairs);
  }
  return costs;
}

// Cuts one (sequence, key/value head) into segments of about `wanted` pairs.
void AppendSegments(const Arguments& a, int64_t sequence, int64_t kv_head,
                    std::span<const int64_t> costs, int64_t wanted,
                    std::vector<Segment>& segments) {
  const int64_t block = BackwardKeyBlock(a.shape.head_dim);
  const int64_t total = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  const int64_t count =
      std::clamp<int64_t>((total + wanted / 2) / std::max<int64_t>(wanted, 1), 1, kMostSegments);
  const std::vector<HeadVisibility> group = GroupOf(a, sequence, kv_head);
  std::vector<int64_t> seen_until(group.size(), 0);  // queries before see an earlier segment
  int64_t done = 0;
  size_t begin = 0;
  for (int64_t n = 0; n < count && begin < costs.size(); ++n) {
    Segment segment;
    segment.sequence = sequence;
    segment.kv_head = kv_head;
    size_t end = begin;
    // The last one takes what is left, also blocks that nobody sees: their gradients are zero.
    while (end < costs.size() && (n == count - 1 || done * count < total * (n + 1))) {
      segment.pairs += costs[end];
      done += costs[end];
      ++end;
    }
    if (end == begin) continue;
    segment.keys = {static_cast<int64_t>(begin) * block,
                    std::min(static_cast<int64_t>(end) * block, a.shape.keys)};
    for (size_t head = 0; head < group.size(); ++head) {
      const Span seeing = VisibleQueries(group[head], {0, a.shape.queries}, segment.keys);
      segment.shared.push_back({seeing.begin, std::min(seen_until[head], seeing.end)});
      const int64_t until = std::max(seen_until[head], seeing.end);
      segment.owned.push_back({seen_until[head], until});
      seen_until[head] = until;
    }
    segments.push_back(std::move(segment));
    begin = end;
  }
  // What no segment sees has to be zeroed by one.
  for (Span& queries : segments.back().owned) queries.end = a.shape.queries;
}

std::vector<Segment> CutIntoSegments(const Arguments& a) {
  std::vector<std::vector<int64_t>> costs;
  int64_t total = 0;
  for (int64_t b = 0; b < a.shape.batch; ++b) {
    for (int64_t g = 0; g < a.shape.kv_heads; ++g) {
      costs.push_back(BlockCosts(a, b, g));
      total = std::accumulate(costs.back().begin(), costs.back().end(), total);
    }
  }
  std::vector<Segment> segments;
  for (int64_t b = 0; b < a.shape.batch; ++b) {
    for (int64_t g = 0; g < a.shape.kv_heads; ++g) {
      AppendSegments(a, b, g, costs[static_cast<size_t>(b * a.shape.kv_heads + g)], total / kTasks,
                     segments);
    }
  }
  return segments;
}

// Gives each segment its place in the buffers; returns their size in floats.
size_t PlaceBuffers(std::span<Segment> segments, int64_t head_dim) {
  size_t size = 0;
  for (Segment& segment : segments) {
    segment.buffer = size;
    for (const Span& rows : segment.shared) {
      if (!rows.empty()) size += static_cast<size_t>(rows.size() * head_dim);
    }
  }
  return size;
}

// The constants of each row, [batch, heads, queries].
struct Constants {
  RowConstants Of(const AttentionShape& shape, int64_t sequence, int64_t head) const {
    const int64_t offset = (sequence * shape.heads + head) * shape.queries;
    return {all.log2_sum_exp + offset, all.delta + offset};
  }

  RowConstants all;
};

// Calls work(sequence, head, begin, end) for every stretch of query rows.
template <typename Work>
void ForEachRowBlock(const AttentionShape& shape, Parallel& parallel, const Work& work) {
  const int64_t blocks = (shape.queries + kRowsPerTask - 1) / kRowsPerTask;
  ForEachTask(parallel, shape.batch * shape.heads * blocks, [&](int64_t index, int) {
    const int64_t begin = index % blocks * kRowsPerTask;
    const int64_t head = index / blocks;
    work(head / shape.heads, head % shape.heads, begin,
         std::min(begin + kRowsPerTask, shape.queries));
  });
}

void RunSegment(const Arguments& a, const Constants& constants, const Segment& segment,
                float* buffers, float* scratch) {
  const AttentionShape& shape = a.shape;
  float* buffer = buffers + segment.buffer;
  std::vector<BackwardHead> heads;
  NestedBands bands;
  for (int64_t n = 0; n < shape.group(); ++n) {
    const int64_t h = segment.kv_head * shape.group() + n;
    BackwardHead head;
    head.member = static_cast<size_t>(n);
    head.visibility = VisibilityOf(a.visibility, shape, segment.sequence, h);
    head.query = RowsOf(a.query, segment.sequence, h);
    head.grad_out = RowsOf(a.grad_out, segment.sequence, h);
    head.grad_query = RowsOf(a.grad_query, segment.sequence, h);
    head.owned = segment.owned[static_cast<size_t>(n)];
    head.shared = segment.shared[static_cast<size_t>(n)];
    if (!head.shared.empty()) {
      const int64_t size = head.shared.size() * shape.head_dim;
      std::fill_n(buffer, size, 0.0F);
      head.shared_grad_query = {buffer, shape.head_dim};
      buffer += size;
    }
    if (a.nested == nullptr) {
      head.constants = constants.Of(shape, segment.sequence, h);
      heads.push_back(head);
    } else {
      bands.Append(*a.nested, segment.sequence, h, head, heads);
    }
  }
  BackwardTask task;
  task.heads = heads;
  task.key = RowsOf(a.key, segment.sequence, segment.kv_head);
  task.value = RowsOf(a.value, segment.sequence, segment.kv_head);
  task.grad_key = RowsOf(a.grad_key, segment.sequence, segment.kv_head);
  task.grad_value = RowsOf(a.grad_value, segment.sequence, segment.kv_head);
  task.keys = segment.keys;
  task.head_dim = shape.head_dim;
  task.scale = shape.scale;
  task.softcap = shape.softcap;
  RunBackwardTask(task, scratch);
}

// Adds what the later segments hold of grad_query rows [begin, end), segment by segment.
void AddBuffers(const Arguments& a, std::span<const Segment> segments, const float* buffers,
                int64_t sequence, int64_t head, int64_t begin, int64_t end) {
  const int64_t head_dim = a.shape.head_dim;
  const int64_t in_group = head % a.shape.group();
  for (const Segment& segment : segments) {
    if (segment.sequence != sequence || segment.kv_head != head / a.shape.group()) continue;
    const float* buffer = buffers + segment.buffer;
    for (int64_t n = 0; n < in_group; ++n) {
      const Span& before = segment.shared[static_cast<size_t>(n)];
      if (!before.empty()) buffer += before.size() * head_dim;
    }
    const Span rows = segment.shared[static_cast<size_t>(in_group)];
    for (int64_t row = std::max(begin, rows.begin); row < std::min(end, rows.end); ++row) {
      float* to = a.grad_query.At(sequence, head, row);
      const float* from = buffer + (row - rows.begin) * head_dim;
      for (int64_t d = 0; d < head_dim; ++d) to[d] += from[d];
    }
  }
}

// Fills the constants, which `memory` holds.
Constants Prepare(const Arguments& a, Parallel& parallel, float* memory) {
  const AttentionShape& shape = a.shape;
  const Constants constants = {{memory, memory + shape.batch * shape.heads * shape.queries}};
  ForEachRowBlock(shape, parallel, [&](int64_t b, int64_t h, int64_t begin, int64_t end) {
    const Rows<const float> log_sum_exp = {a.log_sum_exp.At(b, h), a.log_sum_exp.strides[2]};
    PrepareBackwardRows({RowsOf(a.out, b, h), RowsOf(a.grad_out, b, h), log_sum_exp,
                         constants.Of(shape, b, h), shape.head_dim, shape.scale},
                        begin, end);
  });
  return constants;
}

}  // namespace

void RunBackward(const BackwardCall& a, Parallel& parallel) {
  const AttentionShape& shape = a.shape;
  const int64_t constant_count =
      a.nested != nullptr ? 0 : 2 * shape.batch * shape.heads * shape.queries;
  const Scratch constants_memory(static_cast<size_t>(constant_count) * sizeof(float));
  Constants constants;
  if (a.nested == nullptr) constants = Prepare(a, parallel, constants_memory.As<float>());

  std::vector<Segment> segments = CutIntoSegments(a);
  std::vector<size_t> order(segments.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&segments](size_t x, size_t y) {
    return segments[x].pairs != segments[y].pairs ? segments[x].pairs > segments[y].pairs : x < y;
  });
  const size_t buffer_size = PlaceBuffers(segments, shape.head_dim);
  const Scratch buffers(buffer_size * sizeof(float));
  const size_t per_worker = BackwardScratch(shape.head_dim);
  const Scratch workspace(per_worker * static_cast<size_t>(parallel.worker_count()) *
                          sizeof(float));
  ForEachTask(parallel, static_cast<int64_t>(segments.size()), [&](int64_t index, int worker) {
    RunSegment(a, constants, segments[order[static_cast<size_t>(index)]], buffers.As<float>(),
               workspace.As<float>() + static_cast<size_t>(worker) * per_worker);
  });
  if (buffer_size == 0) return;
  ForEachRowBlock(shape, parallel, [&](int64_t b, int64_t h, int64_t begin, int64_t end) {
    AddBuffers(a, segments, buffers.As<float>(), b, h, begin, end);
  });
}

void AttentionBackward(ConstView4<float> query, ConstView4<float> key, ConstView4<float> value,
                       ConstView4<float> out, ConstView3<float> log_sum_exp,
                       ConstView4<float> grad_out, const Visibility& visibility,
                       const AttentionOptions& options, View4<float> grad_query,
                       View4<float> grad_key, View4<float> grad_value, Parallel& parallel) {
  const AttentionShape shape =
      CheckAttention(Named("query", query), Named("key", key), Named("value", value), visibility,
                     options, HeadDims::kKernels);
  CheckLikeQuery(shape, Named("out", out));
  CheckLikeLogSumExp(shape, Named("log_sum_exp", log_sum_exp));
  CheckLikeQuery(shape, Named("grad_out", grad_out));
  CheckLikeQuery(shape, Named("grad_query", grad_query));
  CheckLikeKey(shape, Named("grad_key", grad_key));
  CheckLikeKey(shape, Named("grad_value", grad_value));
  RunBackward({.shape = shape,
               .query = query,
               .key = key,
               .value = value,
               .out = out,
               .log_sum_exp = log_sum_exp,
               .grad_out = grad_out,
               .visibility = visibility,
               .grad_query = grad_query,
               .grad_key = grad_key,
               .grad_value = grad_value},
              parallel);
}

}  // namespace aah
