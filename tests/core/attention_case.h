#ifndef AAH_TESTS_CORE_ATTENTION_CASE_H_
#define AAH_TESTS_CORE_ATTENTION_CASE_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aah/attention.h"
#include "aah/random.h"
#include "aah/tensor_view.h"

namespace aah {

// How a [batch, head, token, dim] tensor lies in memory. What lies between its rows is NaN, so that
// a kernel which reads or sums it is found out.
enum class Layout : int {
  kHeadMajor,   // contiguous
  kTokenMajor,  // [batch, token, head, dim], as a projection leaves it
  kOddRows,     // rows 3 elements apart, so that no row is aligned
};

// A float tensor that owns its memory.
class CaseTensor {
 public:
  CaseTensor() = default;
  CaseTensor(const std::array<int64_t, 4>& shape, Layout layout);  // all NaN

  View4<float> view() { return {memory_.data(), shape_, strides_}; }
  ConstView4<float> view() const { return {memory_.data(), shape_, strides_}; }
  std::span<float> memory() { return memory_; }
  std::span<const float> memory() const { return memory_; }

  void FillNormal(Random& random, double deviation);
  // The elements in the order of a contiguous tensor.
  std::vector<double> Dense() const;

 private:
  std::vector<float> memory_;
  std::array<int64_t, 4> shape_ = {};
  std::array<int64_t, 4> strides_ = {};
};

struct CaseShape {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t head_dim = 8;
};

// One call of attention: arguments, tensors drawn from a seed, and enough words to run it again.
struct AttentionCase {
  // Normal tensors; everything else can be set afterwards.
  AttentionCase(const CaseShape& shape, std::vector<int32_t> windows, uint64_t seed = 1,
                Layout layout = Layout::kHeadMajor);

  // The first kNamedEdges seeds are the edges every kernel must pass (one token, a window of one, a
  // window over the length, ragged batches, ...), the rest are drawn.
  static constexpr uint64_t kNamedEdges = 16;
  static AttentionCase Draw(uint64_t seed);

  std::string Describe() const;
  Visibility visibility() const { return {windows, sinks, key_begin, key_length}; }
  bool Sees(int64_t batch, int64_t head, int64_t query_index, int64_t key_index) const;
  // Overwrites the key and value rows that no query sees.
  void PoisonHiddenKeys(float poison);

  std::array<int64_t, 4> QueryShape() const;
  std::array<int64_t, 4> KeyShape() const;

  uint64_t seed;
  CaseShape shape;
  Layout layout;
  std::vector<int32_t> windows;
  int32_t sinks = 0;
  std::vector<int32_t> key_begin;
  std::vector<int32_t> key_length;
  AttentionOptions options;
  CaseTensor query;
  CaseTensor key;
  CaseTensor value;
  CaseTensor grad_out;
};

// What the definition gives for a case; tensors are contiguous.
struct AttentionReference {
  std::vector<double> out;
  std::vector<double> log_sum_exp;
  std::vector<double> entropy;
  std::vector<double> norm;
  std::vector<double> usage;
  std::vector<double> grad_query;
  std::vector<double> grad_key;
  std::vector<double> grad_value;
};
AttentionReference ReferenceOf(const AttentionCase& c);

// Bounds on the absolute error of an fp32 kernel, from the case's sizes and magnitudes: rounding
// errors of a sum of n terms grow as sqrt(n) (Higham and Mary, 2019), the rest is first order.
struct AttentionTolerance {
  double out = 0;
  double log_sum_exp = 0;
  double entropy = 0;
  double norm = 0;
  double usage = 0;
  double grad_query = 0;
  double grad_key = 0;
  double grad_value = 0;
};
AttentionTolerance ToleranceOf(const AttentionCase& c, const AttentionReference& reference);

// Infinity where one of the two is not finite and they differ.
double MaxAbsDifference(ConstView4<float> actual, std::span<const double> expected);
double MaxAbsDifference(std::span<const float> actual, std::span<const double> expected);

}  // namespace aah

#endif  // AAH_TESTS_CORE_ATTENTION_CASE_H_
