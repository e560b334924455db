// Any text read as a config, and as an override: refused with aah::Error, or resolved to YAML that
// reads back to the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"
#include "aah/io/config.h"

namespace {

using aah::ConfigReader;

// Whether the function went through without aah::Error.
template <typename Function>
bool Try(Function function) {
  try {
    function();
    return true;
  } catch (const aah::Error&) {
    return false;
  }
}

// Reads every type; what does not fit is refused, and the rest goes on. Whether all did fit.
bool ReadAll(ConfigReader& config) {
  bool fits = true;
  fits &= Try([&] { config.Get<int64_t>("i", 1, aah::kAtLeastOne); });
  fits &= Try([&] { config.Get<double>("d", 0.5); });
  fits &= Try([&] { config.Get<bool>("b", true); });
  fits &= Try([&] { config.Get<std::string>("s", "text"); });
  fits &= Try([&] { config.Get<std::vector<std::string>>("l", {"x"}); });
  fits &= Try([&] { config.Get<std::vector<std::vector<int32_t>>>("w", {{1, 2}}); });
  fits &= Try([&] { config.Section("t").Get<std::string>("s.u", "deep"); });
  fits &= Try([&] {
    for (ConfigReader& item : config.List("a")) item.Get<std::string>("s", "item");
  });
  fits &= Try([&] {
    ConfigReader map = config.Section("m");
    for (const std::string& key : map.Keys()) map.Get<std::string>(key, "");
  });
  Try([&] { config.MergedWith(config.Section("t")).Finish(); });
  Try([&] { config.Finish(); });
  return fits;
}

// What is accepted and fits is written, and reads back to the same.
void CheckReadsBack(ConfigReader config) {
  if (!ReadAll(config)) return;
  const bool reads_back = Try([&] {
    const std::string yaml = config.ToYaml();  // inputs are too small to be refused for their size
    ConfigReader again = ConfigReader::FromText(yaml, "resolved");
    if (!ReadAll(again) || again.Flatten() != config.Flatten()) std::abort();
  });
  if (!reads_back) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Try([&] {
    CheckReadsBack(ConfigReader::FromText("t: {s: {u: 1}}\na: [{s: x}]\nm: {k: v}", "base",
                                          std::vector{text}));
  });
  Try([&] { CheckReadsBack(ConfigReader::FromText(text, "fuzz")); });
  return 0;
}
