#include "aah/model/gpt.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>
#include <string>

#include "aah/error.h"
#include "layers/chunked_cross_entropy.h"

namespace aah {
namespace {

void CheckIds(const at::Tensor& ids, int64_t vocabulary, const char* what) {
  AAH_CHECK(ids.dim() == 2 && ids.scalar_type() == at::kLong && ids.numel() > 0, what,
            " must be a non-empty int64 tensor [batch, tokens], got ",
            c10::toString(ids.scalar_type()), " of ", ids.dim(), " dimensions and ", ids.numel(),
            " elements");
  auto [least, greatest] = ids.aminmax();
  AAH_CHECK(least.item<int64_t>() >= 0 && greatest.item<int64_t>() < vocabulary, what,
            " must lie in [0, ", vocabulary, "), the model's vocabulary, got ids from ",
            least.item<int64_t>(), " to ", greatest.item<int64_t>(),
            "; use data made with this model's tokenizer");
}

// [batch, n, ...] -> [batch * n, ...], of the positions `scored` where it is defined.
at::Tensor ScoredRows(const at::Tensor& all, const at::Tensor& scored) {
  return (scored.defined() ? all.index_select(1, scored) : all).flatten(0, 1);
}

bool EndsWith(const std::string& text, const char* ending) {
  return std::string_view(text).ends_with(ending);
}

}  // namespace

GptImpl::GptImpl(const ModelConfig& config, std::unique_ptr<AttentionVariant> attention,
                 uint64_t seed)
    : config_(config), attention_(std::move(attention)) {
  CheckModelConfig(config_);
  wte_ = register_module("wte", torch::nn::Embedding(config_.vocabulary, config_.width));
  std::shared_ptr<RotaryAngles> rotary;
  if (config_.positions == Positions::kLearned) {
    wpe_ = register_module("wpe", torch::nn::Embedding(config_.context, config_.width));
  } else {
    rotary =
        std::make_shared<RotaryAngles>(config_.context, config_.head_dim(), config_.rope_theta);
  }
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    blocks_->push_back(Block(config_, layer, attention_.get(), rotary));
  }
  register_module("blocks", blocks_);
  ln_f_ = register_module(
      "ln_f",
      torch::nn::LayerNorm(torch::nn::LayerNormOptions({config_.width}).eps(config_.norm_epsilon)));
  if (!config_.tied_head) {
    lm_head_ = register_module(
        "lm_head",
        torch::nn::Linear(torch::nn::LinearOptions(config_.width, config_.vocabulary).bias(false)));
  }
  Initialise(seed);
}

void GptImpl::Initialise(uint64_t seed) {
  const at::NoGradGuard no_grad;
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const bool paper = config_.initialisation == Initialisation::kPaper;
  const double residual_std = 0.02 / std::sqrt(2.0 * static_cast<double>(config_.layers));
  for (auto& module : named_modules("", /*include_self=*/false)) {
    if (auto* linear = module.value()->as<torch::nn::Linear>()) {
      const bool residual = EndsWith(module.key(), ".proj") || EndsWith(module.key(), ".fc2");
      const double bound = 1.0 / std::sqrt(static_cast<double>(linear->weight.size(1)));
      if (paper) {
        linear->weight.uniform_(-bound, bound, generator);
        if (linear->bias.defined()) linear->bias.uniform_(-bound, bound, generator);
      } else {
        linear->weight.normal_(0, residual ? residual_std : 0.02, generator);
        if (linear->bias.defined()) linear->bias.zero_();
      }
    } else if (auto* embedding = module.value()->as<torch::nn::Embedding>()) {
      embedding->weight.normal_(0, paper ? 1.0 : 0.02, generator);
    }
  }
}

at::Tensor GptImpl::Hidden(const at::Tensor& tokens) {
  CheckIds(tokens, config_.vocabulary, "token ids");
  AAH_CHECK(tokens.size(1) <= config_.context, "a sequence must have at most model.context, ",
            config_.context, ", tokens, got ", tokens.size(1));
  at::Tensor x = wte_->forward(tokens);
  if (wpe_) x = x + wpe_->weight.narrow(0, 0, tokens.size(1));
  x = torch::dropout(x, config_.dropout, is_training());
  for (const auto& block : *blocks_) x = block->as<Block>()->forward(x);
  return ln_f_->forward(x);
}

const at::Tensor& GptImpl::HeadWeight() const {
  return config_.tied_head ? wte_->weight : lm_head_->weight;
}

at::Tensor GptImpl::forward(const at::Tensor& tokens) {
  return torch::linear(Hidden(tokens), HeadWeight());
}

at::Tensor GptImpl::Loss(const at::Tensor& tokens, const at::Tensor& targets,
                         const at::Tensor& scored) {
  CheckIds(targets, config_.vocabulary, "target ids");
  AAH_CHECK(targets.sizes() == tokens.sizes(), "targets must have the shape of the tokens");
  return ChunkedCrossEntropy(ScoredRows(Hidden(tokens), scored), HeadWeight(),
                             ScoredRows(targets, scored));
}

PositionScores GptImpl::ScorePositions(const at::Tensor& tokens, const at::Tensor& targets,
                                       const at::Tensor& scored) {
  const at::NoGradGuard no_grad;
  CheckIds(targets, config_.vocabulary, "target ids");
  AAH_CHECK(targets.sizes() == tokens.sizes(), "targets must have the shape of the tokens");
  at::Tensor correct;
  const at::Tensor losses = RowCrossEntropy(ScoredRows(Hidden(tokens), scored), HeadWeight(),
                                            ScoredRows(targets, scored), &correct);
  return {.losses = losses.view({tokens.size(0), -1}),
          .correct = correct.view({tokens.size(0), -1})};
}

}  // namespace aah
