#ifndef AAH_IO_WINDOW_PLAN_FILE_H_
#define AAH_IO_WINDOW_PLAN_FILE_H_

#include <filesystem>
#include <string>
#include <string_view>

#include "aah/window_plan.h"

// Window plans as JSON:
//
//   { "format": "aah-window-plan", "version": 1,
//     "model": { "architecture": "gpt2", "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 64,
//                "fingerprint": "..." },
//     "sinks": 4,
//     "windows": [[16, 16, 128, 0], [64, 16, 16, 16]],      0: sees everything, in files only
//     "budget": { "kind": "pairs", "value": 0.25, "length": 1024 },
//     "predicted": { "pairs": 0.248 },
//     "provenance": { "data": "...", "tokens": 1048576, "method": "learned", "seed": 0,
//                     "versions": { "aah": "0.1" } } }
//
// `budget`, `predicted`, `provenance` and its members may be absent; a budget of kind kv_bytes may
// say "element": fp32, fp16 (where absent), bf16 or q8_0. Other keys are refused.

namespace aah {

inline constexpr int64_t kWindowPlanVersion = 1;

// Throws aah::Error(kBadInput), one line that begins with `name`: text that is not JSON, another
// format or version, absent or unknown keys, wrong types, shapes that disagree, windows below 0.
WindowPlan ParseWindowPlan(std::string_view text, std::string_view name);

// Refuses files over 64 MiB.
WindowPlan ReadWindowPlan(const std::filesystem::path& path);

// The same, for `model`: CheckPlanFits.
WindowPlan ReadWindowPlan(const std::filesystem::path& path, const PlanModel& model);

// The file's text, one line per layer. Parses to the same plan. Throws where CheckWindowPlan does.
std::string WindowPlanText(const WindowPlan& plan);

// Whole or not at all, over what was there.
void WriteWindowPlan(const std::filesystem::path& path, const WindowPlan& plan);

}  // namespace aah

#endif  // AAH_IO_WINDOW_PLAN_FILE_H_
