#ifndef AAH_MODEL_OPTIMIZER_H_
#define AAH_MODEL_OPTIMIZER_H_

#include <torch/torch.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aah/model/attention_variant.h"
#include "aah/model/train_config.h"

namespace aah {

// AdamW over named parameters, by torch's fused kernel, with its whole state in the open so that a
// checkpoint can hold it. Parameters of two or more dimensions are decayed, others (norms, biases)
// only with `decay_everything`. A parameter without a gradient is left alone. Not thread-safe.
class AdamW {
 public:
  struct Parameter {
    std::string name;
    torch::Tensor value;
    torch::Tensor exp_avg;     // running mean of the gradient, shape of value
    torch::Tensor exp_avg_sq;  // running mean of its square, shape of value
    torch::Tensor steps;       // float scalar: updates so far
    bool decayed = false;
    double learning_rate = 0;  // its own (OwnParameter); 0: that of the step
  };

  // Takes the parameters of `module` under their names there, and those of the attention variant
  // after them. Moments begin at zero.
  AdamW(const torch::nn::Module& module, const OptimizerConfig& config,
        std::span<const OwnParameter> own = {});

  // One update from the gradients that the parameters hold.
  void Step(double learning_rate);
  void ZeroGradients();

  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

 private:
  void Update(std::span<Parameter* const> parameters, double learning_rate, double weight_decay);

  OptimizerConfig config_;
  std::vector<Parameter> parameters_;
};

// Linear warm-up from learning_rate / warmup_steps to learning_rate, then half a cosine that ends
// at min_learning_rate with the last step. `step` counts from 0.
double LearningRate(const OptimizerConfig& config, int64_t step, int64_t steps);

// The global L2 norm of the gradients of the parameters without a learning rate of their own; they
// are scaled down to `bound` where it is exceeded (bound 0: never). Throws aah::Error(kMachine)
// that names the first parameter, of all, whose gradient is not finite, before anything is scaled.
double ClipGradients(AdamW& optimizer, double bound);

// Throws aah::Error(kMachine) that names the first parameter whose value is not finite.
void CheckParametersFinite(const AdamW& optimizer);

}  // namespace aah

#endif  // AAH_MODEL_OPTIMIZER_H_
