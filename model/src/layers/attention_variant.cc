#include "aah/model/attention_variant.h"

#include "aah/error.h"
#include "aah/nearest_name.h"
#include "layers/variants.h"

namespace aah {

const std::vector<AttentionVariantEntry>& AttentionVariants() {
  static const std::vector<AttentionVariantEntry> table = {
      {"full", "full causal attention by our kernel", &MakeFullAttention},
      {"sdpa", "full causal attention by torch's fused kernel", &MakeSdpaAttention},
      {"window", "one window for all heads (attention.window)", &MakeUniformWindowAttention},
      {"windows", "a window per layer and head (attention.windows)", &MakeWindowTableAttention},
      {"aah", "windows by the AAH controller (attention.regime, attention.control)",
       &MakeAahAttention},
      {"learned", "windows that gradients choose within a budget (attention.learned)",
       &MakeLearnedAttention},
      {"aah_learned",
       "AAH's scorers trained by gradients within a budget (attention.learned, attention.control)",
       &MakeAahLearnedAttention},
  };
  return table;
}

std::unique_ptr<AttentionVariant> MakeAttentionVariant(const AttentionConfig& attention,
                                                       const ModelConfig& model) {
  std::vector<std::string> names;
  for (const AttentionVariantEntry& entry : AttentionVariants()) {
    if (entry.name == attention.variant) return entry.make(attention, model);
    names.emplace_back(entry.name);
  }
  ThrowError(ErrorKind::kBadInput, "unknown attention variant '", attention.variant, "'",
             NearestNameHint(attention.variant, names));
}

void AttentionVariant::Restore(const PolicyState& state) {
  AAH_CHECK(state.tensors.empty() && state.json.empty(),
            "the checkpoint holds the state of another attention variant; resume with the variant "
            "it was written by, or start a new run from its weights");
}

void WindowPolicy::Restore(const PolicyState& state) {
  AAH_CHECK(state.tensors.empty() && state.json.empty(),
            "the checkpoint holds the state of another window policy; resume with the policy it "
            "was written by, or start a new run from its weights");
}

}  // namespace aah
