#ifndef AAH_SRC_ATTENTION_FORWARD_CALL_H_
#define AAH_SRC_ATTENTION_FORWARD_CALL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "aah/attention.h"
#include "attention/checks.h"
#include "attention/cpu/forward.h"
#include "attention/nested.h"

namespace aah {

// The arguments of one AttentionForward, checked.
template <typename Storage>
struct ForwardCall {
  ConstView4<Storage> query;
  ConstView4<Storage> key;
  ConstView4<Storage> value;
  View4<Storage> out;
  View3<float> log_sum_exp;
  const Visibility& visibility;
  const HeadStatistics& statistics;
  AttentionShape shape;
  cpu::ScoreScale score_scale;
  Parallel& parallel;
  // Null for plain attention. Otherwise `visibility` is the widest, log_sum_exp is not written.
  const NestedOutputs* nested = nullptr;

  HeadVisibility VisibilityOf(int64_t sequence, int64_t head) const {
    return aah::VisibilityOf(visibility, shape, sequence, head);
  }

  // Sums over all rows of a head, as the averages that statistics are defined as.
  void WriteStatistics(int64_t head, const cpu::BlockStatistics& sum) const {
    const auto h = static_cast<size_t>(head);
    const auto rows = static_cast<double>(shape.batch * shape.queries);
    const double entropy_unit = std::max(1.0, std::log(static_cast<double>(shape.keys)));
    statistics.entropy[h] = static_cast<float>(sum.entropy / entropy_unit / rows);
    statistics.norm[h] = static_cast<float>(sum.norm / rows);
    statistics.usage[h] = static_cast<float>(sum.usage / rows);
  }
};

// The path of blocks of queries.
template <typename Storage>
void BlockForward(const ForwardCall<Storage>& call);

// The path of a single query per sequence.
template <typename Storage>
void DecodeForward(const ForwardCall<Storage>& call);

}  // namespace aah

#endif  // AAH_SRC_ATTENTION_FORWARD_CALL_H_
