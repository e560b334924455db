#include "attention/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "aah/attention.h"
#include "aah/error.h"
#include "attention/tile_walk.h"

namespace aah {
namespace {

std::string Text(std::span<const int64_t> shape) {
  std::ostringstream text;
  text << "[";
  for (size_t axis = 0; axis < shape.size(); ++axis) text << (axis > 0 ? ", " : "") << shape[axis];
  text << "]";
  return text.str();
}

void CheckShape(const NamedShape& tensor, std::span<const int64_t> expected) {
  AAH_CHECK(std::equal(expected.begin(), expected.end(), tensor.shape.begin(), tensor.shape.end()),
            tensor.name, " has shape ", Text(tensor.shape), ": expected ", Text(expected));
}

// Kernels load whole rows, so the elements of a row must be neighbours.
void CheckUnitStride(const NamedShape& tensor) {
  AAH_CHECK(tensor.strides.back() == 1 || tensor.shape.back() <= 1, tensor.name,
            "'s last stride is ", tensor.strides.back(),
            ": the elements of a row must be neighbours, so make the tensor contiguous");
}

void CheckPerSequence(std::string_view name, std::span<const int32_t> values,
                      const AttentionShape& shape) {
  AAH_CHECK(values.empty() || static_cast<int64_t>(values.size()) == shape.batch, name, " has ",
            values.size(), " entries: expected one per sequence, ", shape.batch, ", or none");
  for (size_t sequence = 0; sequence < values.size(); ++sequence) {
    AAH_CHECK(values[sequence] >= 0 && values[sequence] <= shape.keys, name, "[", sequence, "] is ",
              values[sequence], ": expected 0 to the number of keys, ", shape.keys);
  }
}

void CheckVisibility(const Visibility& visibility, const AttentionShape& shape) {
  AAH_CHECK(static_cast<int64_t>(visibility.windows.size()) == shape.heads, "windows has ",
            visibility.windows.size(), " entries: expected one per query head, ", shape.heads);
  for (size_t head = 0; head < visibility.windows.size(); ++head) {
    AAH_CHECK(visibility.windows[head] >= 1, "windows[", head, "] is ", visibility.windows[head],
              ": a window counts the query's own key, so it is at least 1");
  }
  AAH_CHECK(visibility.sinks >= 0, "sinks is ", visibility.sinks, ": expected 0 or more");
  CheckPerSequence("key_begin", visibility.key_begin, shape);
  CheckPerSequence("key_length", visibility.key_length, shape);
}

void CheckOptions(const AttentionOptions& options) {
  AAH_CHECK(std::isfinite(options.scale), "scale is ", options.scale,
            ": expected a finite number, or 0 for head_dim^-1/2");
  AAH_CHECK(std::isfinite(options.softcap) && options.softcap >= 0, "softcap is ", options.softcap,
            ": expected a finite number above 0, or 0 for none");
}

}  // namespace

AttentionShape CheckAttention(const NamedShape& query, const NamedShape& key,
                              const NamedShape& value, const Visibility& visibility,
                              const AttentionOptions& options, HeadDims head_dims) {
  for (const NamedShape* tensor : {&query, &key, &value}) {
    for (const int64_t size : tensor->shape) {
      AAH_CHECK(size >= 1, tensor->name, " has shape ", Text(tensor->shape),
                ": expected every size to be at least 1");
    }
    CheckUnitStride(*tensor);
  }
  AttentionShape shape;
  shape.batch = query.shape[0];
  shape.heads = query.shape[1];
  shape.kv_heads = key.shape[1];
  shape.queries = query.shape[2];
  shape.keys = key.shape[2];
  shape.head_dim = query.shape[3];
  CheckLikeKey(shape, key);
  CheckLikeKey(shape, value);
  AAH_CHECK(shape.heads % shape.kv_heads == 0, "query has ", shape.heads, " heads, key has ",
            shape.kv_heads, ": the key/value heads must divide the query heads");
  AAH_CHECK(shape.queries <= shape.keys, "query has ", shape.queries, " tokens, key has ",
            shape.keys,
            ": the queries are the last ones of the keys, so give at least as many keys");
  AAH_CHECK(head_dims == HeadDims::kAny || (shape.head_dim % 8 == 0 && shape.head_dim <= 256),
            "head_dim is ", shape.head_dim, ": expected a multiple of 8 from 8 to 256");
  CheckVisibility(visibility, shape);
  CheckOptions(options);
  shape.scale = options.scale != 0
                    ? options.scale
                    : static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim)));
  shape.softcap = options.softcap;
  return shape;
}

void CheckLikeQuery(const AttentionShape& shape, const NamedShape& tensor) {
  CheckShape(tensor, std::array{shape.batch, shape.heads, shape.queries, shape.head_dim});
  CheckUnitStride(tensor);
}

void CheckLikeKey(const AttentionShape& shape, const NamedShape& tensor) {
  CheckShape(tensor, std::array{shape.batch, shape.kv_heads, shape.keys, shape.head_dim});
  CheckUnitStride(tensor);
}

void CheckLikeLogSumExp(const AttentionShape& shape, const NamedShape& tensor) {
  CheckShape(tensor, std::array{shape.batch, shape.heads, shape.queries});
}

void CheckStatistic(const AttentionShape& shape, std::string_view name, size_t size) {
  AAH_CHECK(static_cast<int64_t>(size) == shape.heads, "statistics.", name, " has ", size,
            " entries: expected one per query head, ", shape.heads);
}

HeadVisibility VisibilityOf(const Visibility& visibility, const AttentionShape& shape,
                            int64_t sequence, int64_t head) {
  const auto batch = static_cast<size_t>(sequence);
  HeadVisibility result;
  result.queries = shape.queries;
  result.key_begin = visibility.key_begin.empty() ? 0 : visibility.key_begin[batch];
  result.key_end = visibility.key_length.empty() ? shape.keys : visibility.key_length[batch];
  result.window = visibility.windows[static_cast<size_t>(head)];
  result.sinks = visibility.sinks;
  return result;
}

}  // namespace aah
