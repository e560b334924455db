#include "aah/regime.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "aah/error.h"
#include "aah/nearest_name.h"
#include "aah/window_decision.h"

namespace aah {
namespace {

using enum WindowSource;
using enum GroupSource;

constexpr UpperLevels kPass = UpperLevels::kPassThrough;
constexpr SiblingScoring kAlone = SiblingScoring::kNone;

// What a row does not name is full_adaptive's.
constexpr std::array kRegimes = {
    Regime{.name = "full_attention", .windows = kFull, .groups = kNone},
    Regime{.name = "grouping_off", .groups = kSingletons, .max_depth = 1, .siblings = kAlone},
    Regime{.name = "full_adaptive"},
    Regime{.name = "shallow_freeze", .groups = kFirstDecision, .max_depth = 1},
    Regime{.name = "deep_practical_reuse", .groups = kFirstForward},
    Regime{.name = "control_off", .windows = kFull},
    Regime{.name = "fixed_random", .groups = kRandomHalves, .upper = kPass},
    Regime{.name = "fixed_deterministic", .groups = kAlternating, .upper = kPass},
    Regime{.name = "freeze_after_warmup", .groups = kFirstForward, .upper = kPass},
    Regime{.name = "independent_scoring", .siblings = kAlone},
    Regime{.name = "no_parent_constraint", .parent_constraint = false},
    Regime{.name = "no_feature_ema", .feature_average = false},
    Regime{.name = "random_uniform", .windows = kRandomUniform, .groups = kNone},
};

constexpr std::string_view kFixedPrefix = "fixed:";
constexpr std::string_view kShuffle = "shuffle_post_select";

Regime FixedWindow(std::string_view text) {
  Regime regime{.name = "fixed", .windows = kFixed, .groups = kNone};
  const std::string digits(text);
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, regime.fixed_window);
  AAH_CHECK(error == std::errc() && rest == end && regime.fixed_window >= 1,
            "expected fixed:<w> with a window of at least 1, got 'fixed:", text, "'");
  return regime;
}

}  // namespace

std::span<const Regime> Regimes() { return kRegimes; }

Regime FindRegime(std::string_view name) {
  for (const Regime& regime : kRegimes) {
    if (regime.name == name) return regime;
  }
  if (name.starts_with(kFixedPrefix)) return FixedWindow(name.substr(kFixedPrefix.size()));
  if (name.starts_with(kShuffle)) {
    std::string_view rest = name.substr(kShuffle.size());
    const bool named = rest.starts_with(':');
    if (rest.empty() || named) {
      Regime regime = FindRegime(named ? rest.substr(1) : "shallow_freeze");
      AAH_CHECK(regime.windows == kScorer && !regime.shuffled,
                "shuffle_post_select permutes windows that a scorer decided; '", rest.substr(1),
                "' decides none");
      regime.shuffled = true;
      return regime;
    }
  }
  std::vector<std::string> known;
  known.reserve(kRegimes.size() + 2);
  for (const Regime& regime : kRegimes) known.emplace_back(regime.name);
  known.insert(known.end(), {"fixed:<w>", std::string(kShuffle)});
  ThrowError(ErrorKind::kBadInput, "unknown regime '", name, "'", NearestNameHint(name, known));
}

}  // namespace aah
