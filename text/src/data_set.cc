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

namespace {

bool CreateWhereMissing(const std::filesystem::path& folder) {
  std::error_code ignored;
  const bool missing = !std::filesystem::exists(folder, ignored);
  CreateFolder(folder);
  return missing;
}

}  // namespace

DataSetFolder::DataSetFolder(const std::string& output)
    : folder_(output), created_(CreateWhereMissing(folder_)), unfinished_(folder_ / "unfinished") {}

DataSetFolder::~DataSetFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(unfinished(), ignored);
  if (created_) std::filesystem::remove(folder_, ignored);  // only where it is empty
}

void DataSetFolder::Commit() {
  for (const char* name : {"tokenizer.json", "data.json", "tokens.bin"}) {
    std::error_code error;
    if (!std::filesystem::exists(unfinished() / name, error)) continue;  // tasks have no tokenizer
    std::filesystem::rename(unfinished() / name, folder_ / name, error);
    if (error) {
      ThrowError(ErrorKind::kMachine, "cannot move the new ", name, " to ", folder_.string(), ": ",
                 error.message());
    }
  }
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
