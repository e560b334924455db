#include "aah/attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "aah/float16.h"
#include "aah/parallel.h"
#include "aah/scratch.h"
#include "attention/checks.h"
#include "attention/cpu/forward.h"
#include "attention/forward_call.h"
#include "attention/key_packing.h"
#include "attention/tile_walk.h"

namespace aah {
namespace {

// A block of queries of one head.
struct BlockTask {
  int64_t sequence;
  int64_t head;
  int64_t query_begin;
  int64_t query_end;
  int64_t visible_pairs;
};

// What one worker holds while it runs a block, in floats from the start of its share of scratch.
struct WorkerLayout {
  size_t query = 0;
  size_t out;
  size_t log_sum_exp;
  size_t mixed;
  size_t workspace;
  size_t total;

  WorkerLayout(int64_t head_dim, bool nested) {
    const auto rows = static_cast<size_t>(cpu::kQueryBlock);
    const auto dim = static_cast<size_t>(head_dim);
    out = query + rows * dim;
    log_sum_exp = out + rows * dim;
    mixed = log_sum_exp + rows;
    workspace = mixed + (nested ? rows * dim : 0);
    total = (workspace + cpu::ForwardWorkspace() + 15) / 16 * 16;
  }
};

// Blocks of the heads that read pairs [pairs.begin, pairs.end), longest first, so that the workers
// finish together although windows differ.
template <typename Storage>
std::vector<BlockTask> TasksOf(const ForwardCall<Storage>& call, Span pairs) {
  const AttentionShape& shape = call.shape;
  std::vector<BlockTask> tasks;
  for (int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    const int64_t sequence = pair / shape.kv_heads;
    for (int64_t member = 0; member < shape.group(); ++member) {
      const int64_t head = pair % shape.kv_heads * shape.group() + member;
      const HeadVisibility visibility = call.VisibilityOf(sequence, head);
      for (int64_t begin = 0; begin < shape.queries; begin += cpu::kQueryBlock) {
        const int64_t end = std::min(shape.queries, begin + cpu::kQueryBlock);
        tasks.push_back({sequence, head, begin, end, VisiblePairsOf(visibility, begin, end)});
      }
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const BlockTask& a, const BlockTask& b) {
    return a.visible_pairs > b.visible_pairs;
  });
  return tasks;
}

template <typename Storage>
void RunTask(const ForwardCall<Storage>& call, const BlockTask& task, const cpu::PackedKeys& keys,
             const WorkerLayout& layout, float* scratch, cpu::BlockStatistics* statistics) {
  const int64_t head_dim = call.shape.head_dim;
  const int64_t rows = task.query_end - task.query_begin;
  cpu::LoadRows<Storage>(
      {call.query.At(task.sequence, task.head, task.query_begin), call.query.strides[2]}, rows,
      head_dim, call.score_scale.query_factor, scratch + layout.query);
  const cpu::ForwardBlock block = {.visibility = call.VisibilityOf(task.sequence, task.head),
                                   .query_begin = task.query_begin,
                                   .query_end = task.query_end,
                                   .head_dim = head_dim,
                                   .score_cap = call.score_scale.cap,
                                   .query = scratch + layout.query,
                                   .keys = keys,
                                   .out = scratch + layout.out,
                                   .log_sum_exp = scratch + layout.log_sum_exp,
                                   .statistics = statistics,
                                   .workspace = scratch + layout.workspace};
  const cpu::Rows<Storage> out = {call.out.At(task.sequence, task.head, task.query_begin),
                                  call.out.strides[2]};
  if (call.nested != nullptr) {
    RunNestedBlock(*call.nested, task.sequence, task.head, block, scratch + layout.mixed);
    cpu::StoreRows<Storage>(scratch + layout.mixed, rows, head_dim, out);
    return;
  }
  cpu::RunForwardBlock(block);
  cpu::StoreRows<Storage>(block.out, rows, head_dim, out);
  for (int64_t row = 0; row < rows; ++row) {
    *call.log_sum_exp.At(task.sequence, task.head, task.query_begin + row) = block.log_sum_exp[row];
  }
}

// Statistics of every block, added up in an order of their own, whoever computed them when.
class BlockSums {
 public:
  BlockSums(const AttentionShape& shape, bool wanted)
      : shape_(shape), blocks_((shape.queries + cpu::kQueryBlock - 1) / cpu::kQueryBlock) {
    if (wanted) sums_.resize(static_cast<size_t>(shape.batch * shape.heads * blocks_));
  }

  cpu::BlockStatistics* Of(int64_t sequence, int64_t head, int64_t query_begin) {
    if (sums_.empty()) return nullptr;
    const int64_t row = sequence * shape_.heads + head;
    return &sums_[static_cast<size_t>(row * blocks_ + query_begin / cpu::kQueryBlock)];
  }

  cpu::BlockStatistics TotalOf(int64_t head) {
    cpu::BlockStatistics total;
    for (int64_t sequence = 0; sequence < shape_.batch; ++sequence) {
      for (int64_t begin = 0; begin < shape_.queries; begin += cpu::kQueryBlock) {
        const cpu::BlockStatistics& block = *Of(sequence, head, begin);
        total.entropy += block.entropy;
        total.norm += block.norm;
        total.usage += block.usage;
      }
    }
    return total;
  }

 private:
  const AttentionShape& shape_;
  int64_t blocks_;
  std::vector<cpu::BlockStatistics> sums_;
};

}  // namespace

template <typename Storage>
void BlockForward(const ForwardCall<Storage>& call) {
  const WorkerLayout layout(call.shape.head_dim, call.nested != nullptr);
  const Scratch scratch(static_cast<size_t>(call.parallel.worker_count()) * layout.total *
                        sizeof(float));
  BlockSums sums(call.shape, call.statistics.wanted());
  const int64_t pair_count = call.shape.batch * call.shape.kv_heads;
  const int64_t step = PackedPairs<Storage>::PairsAtOnce(call);
  for (int64_t begin = 0; begin < pair_count; begin += step) {
    const Span pairs = {begin, std::min(pair_count, begin + step)};
    const PackedPairs<Storage> packed(call, pairs);
    const std::vector<BlockTask> tasks = TasksOf(call, pairs);
    ForEachTask(call.parallel, static_cast<int64_t>(tasks.size()), [&](int64_t index, int worker) {
      const BlockTask& task = tasks[static_cast<size_t>(index)];
      const int64_t pair = task.sequence * call.shape.kv_heads + task.head / call.shape.group();
      RunTask(call, task, packed.Of(pair), layout,
              scratch.As<float>() + static_cast<size_t>(worker) * layout.total,
              sums.Of(task.sequence, task.head, task.query_begin));
    });
  }
  if (!call.statistics.wanted()) return;
  for (int64_t head = 0; head < call.shape.heads; ++head) {
    call.WriteStatistics(head, sums.TotalOf(head));
  }
}

template <typename Storage>
void AttentionForward(ConstView4<Storage> query, ConstView4<Storage> key, ConstView4<Storage> value,
                      const Visibility& visibility, const AttentionOptions& options,
                      View4<Storage> out, View3<float> log_sum_exp,
                      const HeadStatistics& statistics, Parallel& parallel) {
  const AttentionShape shape =
      CheckAttention(Named("query", query), Named("key", key), Named("value", value), visibility,
                     options, HeadDims::kKernels);
  CheckLikeQuery(shape, Named("out", out));
  CheckLikeLogSumExp(shape, Named("log_sum_exp", log_sum_exp));
  if (!statistics.entropy.empty() || !statistics.norm.empty() || !statistics.usage.empty()) {
    CheckStatistic(shape, "entropy", statistics.entropy.size());
    CheckStatistic(shape, "norm", statistics.norm.size());
    CheckStatistic(shape, "usage", statistics.usage.size());
  }
  const ForwardCall<Storage> call = {
      query,      key,         value,
      out,        log_sum_exp, visibility,
      statistics, shape,       cpu::ScoreScale(shape.scale, shape.softcap),
      parallel};
  if (shape.queries == 1) {
    DecodeForward(call);
  } else {
    BlockForward(call);
  }
}

#define AAH_FOR_STORAGE(Storage)                                                        \
  template void BlockForward<Storage>(const ForwardCall<Storage>&);                     \
  template void AttentionForward<Storage>(                                              \
      ConstView4<Storage>, ConstView4<Storage>, ConstView4<Storage>, const Visibility&, \
      const AttentionOptions&, View4<Storage>, View3<float>, const HeadStatistics&, Parallel&);
AAH_FOR_STORAGE(float)
AAH_FOR_STORAGE(Bfloat16)
AAH_FOR_STORAGE(Float16)
#undef AAH_FOR_STORAGE

}  // namespace aah
