#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "aah/error.h"
#include "aah/model/selection_logits.h"

namespace aah {
namespace {

class FreeLogits final : public SelectionLogits {
 public:
  FreeLogits(int64_t layers, int64_t items, int64_t candidates, double learning_rate)
      : logits_(at::zeros({layers, items, candidates}).requires_grad_()),
        learning_rate_(learning_rate) {}

  const char* name() const override { return "learned"; }

  at::Tensor Layer(int64_t layer) const override { return logits_.select(0, layer); }

  std::vector<OwnParameter> parameters() override {
    return {{.name = "logits", .value = logits_, .learning_rate = learning_rate_}};
  }

  PolicyState Save() const override { return {{{"logits", logits_.detach()}}, ""}; }

  void Restore(const PolicyState& state) override {
    const auto found = state.tensors.find("logits");
    AAH_CHECK(state.tensors.size() == 1 && found != state.tensors.end() &&
                  found->second.sizes() == logits_.sizes() &&
                  found->second.scalar_type() == at::kFloat,
              "the attention's state in the checkpoint: expected float32 logits of ",
              logits_.size(0), " layers, ", logits_.size(1), " heads and ", logits_.size(2),
              " candidates, got others; resume with the config it was written by");
    const c10::NoGradGuard no_grad;
    logits_.copy_(found->second);
  }

 private:
  at::Tensor logits_;  // [layers, items, candidates]
  double learning_rate_;
};

}  // namespace

std::unique_ptr<SelectionLogits> MakeFreeLogits(int64_t layers, int64_t items, int64_t candidates,
                                                double learning_rate) {
  return std::make_unique<FreeLogits>(layers, items, candidates, learning_rate);
}

}  // namespace aah
