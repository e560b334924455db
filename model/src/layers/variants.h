#ifndef AAH_MODEL_SRC_LAYERS_VARIANTS_H_
#define AAH_MODEL_SRC_LAYERS_VARIANTS_H_

#include <memory>

#include "aah/model/attention_variant.h"

namespace aah {

// The `make` functions of the table in attention_variant.cc, one file of variants each.

// fixed_windows.cc
std::unique_ptr<AttentionVariant> MakeFullAttention(const AttentionConfig& attention,
                                                    const ModelConfig& model);
std::unique_ptr<AttentionVariant> MakeUniformWindowAttention(const AttentionConfig& attention,
                                                             const ModelConfig& model);
std::unique_ptr<AttentionVariant> MakeWindowTableAttention(const AttentionConfig& attention,
                                                           const ModelConfig& model);

// aah_policy.cc
std::unique_ptr<AttentionVariant> MakeAahAttention(const AttentionConfig& attention,
                                                   const ModelConfig& model);

// learned/learned_attention.cc
std::unique_ptr<AttentionVariant> MakeLearnedAttention(const AttentionConfig& attention,
                                                       const ModelConfig& model);

// learned/scorer_logits.cc
std::unique_ptr<AttentionVariant> MakeAahLearnedAttention(const AttentionConfig& attention,
                                                          const ModelConfig& model);

// sdpa.cc
std::unique_ptr<AttentionVariant> MakeSdpaAttention(const AttentionConfig& attention,
                                                    const ModelConfig& model);

// Throws aah::Error for a setting that `attention.variant` has no use for.
void RefuseUnusedSettings(const AttentionConfig& attention, bool uses_window, bool uses_windows,
                          bool uses_sinks);

}  // namespace aah

#endif  // AAH_MODEL_SRC_LAYERS_VARIANTS_H_
