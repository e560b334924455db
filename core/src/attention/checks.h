#ifndef AAH_SRC_ATTENTION_CHECKS_H_
#define AAH_SRC_ATTENTION_CHECKS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "aah/attention.h"
#include "aah/error.h"
#include "attention/tile_walk.h"

namespace aah {

// The sizes of one attention call, and its options with their defaults filled in.
struct AttentionShape {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_dim = 0;
  float scale = 1;
  float softcap = 0;

  int64_t group() const { return heads / kv_heads; }  // query heads per key/value head
};

// A tensor argument by its name in messages.
struct NamedShape {
  std::string_view name;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;
};

template <typename Element, size_t N>
NamedShape Named(std::string_view name, const TensorView<Element, N>& view) {
  return {name, view.shape, view.strides};
}

// Whether head_dim is held to what the kernels take, or free as in the reference.
enum class HeadDims { kKernels, kAny };

// Checks everything a forward or backward call shares: shapes of query, key, value against each
// other, `visibility` against them, the options. Throws aah::Error, one line.
AttentionShape CheckAttention(const NamedShape& query, const NamedShape& key,
                              const NamedShape& value, const Visibility& visibility,
                              const AttentionOptions& options, HeadDims head_dims);

// A further tensor of the shape of query / of key / of log_sum_exp.
void CheckLikeQuery(const AttentionShape& shape, const NamedShape& tensor);
void CheckLikeKey(const AttentionShape& shape, const NamedShape& tensor);
void CheckLikeLogSumExp(const AttentionShape& shape, const NamedShape& tensor);

// One of the statistics' arrays: [heads].
void CheckStatistic(const AttentionShape& shape, std::string_view name, size_t size);

// What head `head` of sequence `sequence` sees. For arguments that CheckAttention accepted.
HeadVisibility VisibilityOf(const Visibility& visibility, const AttentionShape& shape,
                            int64_t sequence, int64_t head);

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_CHECKS_H_
