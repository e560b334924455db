#include "data_set.h"

#include <filesystem>
#include <system_error>

#include "aah/error.h"

namespace aah {

void CheckOutputFree(const std::string& output, bool overwrite) {
  AAH_CHECK(!output.empty(), "name the folder the data set goes to");
  std::error_code ignored;
  const auto token_path = std::filesystem::path(output) / "tokens.bin";
  AAH_CHECK(overwrite || !std::filesystem::exists(token_path, ignored), output,
            ": there is a data set already; name another folder or ask to overwrite it");
}

nlohmann::ordered_json DescribeSplits(const TokenFileInfo& info) {
  nlohmann::ordered_json splits = nlohmann::ordered_json::object();
  for (int i = 0; i < kSplitCount; ++i) {
    const SplitInfo& split = info.splits[i];
    splits[std::string(SplitName(static_cast<Split>(i)))] = {{"tokens", split.tokens.size()},
                                                             {"documents", split.documents.size()},
                                                             {"text_bytes", split.text_bytes}};
  }
  return splits;
}

}  // namespace aah
