// Variants whose windows never change: `full`, `window` and `windows`.
#include <algorithm>

#include "aah/error.h"
#include "layers/variants.h"

namespace aah {
namespace {

class FixedWindows final : public WindowPolicy {
 public:
  explicit FixedWindows(std::vector<std::vector<int32_t>> windows) : windows_(std::move(windows)) {}

  std::span<const int32_t> Decide(const AttentionInputs& inputs) override {
    return windows_[static_cast<size_t>(inputs.layer)];
  }
  std::vector<std::vector<int32_t>> windows() const override { return windows_; }

 private:
  std::vector<std::vector<int32_t>> windows_;
};

std::unique_ptr<AttentionVariant> MakeFixed(std::vector<std::vector<int32_t>> windows,
                                            const AttentionConfig& attention,
                                            const ModelConfig& model) {
  for (std::vector<int32_t>& layer : windows) {
    for (int32_t& window : layer) {
      window = static_cast<int32_t>(std::min<int64_t>(window, model.context));
    }
  }
  return MakeWindowedAttention(std::make_unique<FixedWindows>(std::move(windows)), attention.sinks);
}

std::vector<std::vector<int32_t>> Uniform(int64_t window, const ModelConfig& model) {
  return std::vector(static_cast<size_t>(model.layers),
                     std::vector(static_cast<size_t>(model.heads), static_cast<int32_t>(window)));
}

}  // namespace

void RefuseUnusedSettings(const AttentionConfig& attention, bool uses_window, bool uses_windows,
                          bool uses_sinks) {
  const auto refuse = [&](const char* key) {
    ThrowError(ErrorKind::kBadInput, "attention.", key, " is set, but attention.variant '",
               attention.variant, "' has no use for it; remove it or choose another variant");
  };
  if (attention.window != 0 && !uses_window) refuse("window");
  if (!attention.windows.empty() && !uses_windows) refuse("windows");
  if (attention.sinks != 0 && !uses_sinks) refuse("sinks");
}

std::unique_ptr<AttentionVariant> MakeFullAttention(const AttentionConfig& attention,
                                                    const ModelConfig& model) {
  RefuseUnusedSettings(attention, false, false, false);
  return MakeFixed(Uniform(model.context, model), attention, model);
}

std::unique_ptr<AttentionVariant> MakeUniformWindowAttention(const AttentionConfig& attention,
                                                             const ModelConfig& model) {
  RefuseUnusedSettings(attention, true, false, true);
  AAH_CHECK(attention.window >= 1,
            "attention.window must be at least 1 (a window counts the query's own key), got ",
            attention.window);
  return MakeFixed(Uniform(attention.window, model), attention, model);
}

std::unique_ptr<AttentionVariant> MakeWindowTableAttention(const AttentionConfig& attention,
                                                           const ModelConfig& model) {
  RefuseUnusedSettings(attention, false, true, true);
  const auto rows = static_cast<int64_t>(attention.windows.size());
  AAH_CHECK(rows >= 1 && model.layers % rows == 0,
            "attention.windows must have a number of rows that divides model.layers, ",
            model.layers, " (they repeat over the layers), got ", rows);
  std::vector<std::vector<int32_t>> windows;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    const int64_t row = layer % rows;
    const std::vector<int32_t>& heads = attention.windows[static_cast<size_t>(row)];
    AAH_CHECK(static_cast<int64_t>(heads.size()) == model.heads, "row ", row,
              " of attention.windows must have model.heads, ", model.heads, ", windows, got ",
              heads.size());
    for (const int32_t window : heads) {
      AAH_CHECK(window >= 1, "row ", row, " of attention.windows must hold windows of at least 1 ",
                "(a window counts the query's own key), got ", window);
    }
    windows.push_back(heads);
  }
  return MakeFixed(std::move(windows), attention, model);
}

}  // namespace aah
