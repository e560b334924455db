#include "train/prepare_run.h"

#include <filesystem>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/model/run_folder.h"

namespace aah {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRemovedSuffix = ".removed";

bool MayDiffer(const ConfigDifference& difference, const RunConfig& was, const RunConfig& is) {
  if (difference.key == "training.steps") return is.training.steps >= was.training.steps;
  // Paths may be spelled otherwise; that the data is the same is checked by its hash.
  return difference.key == "out" || difference.key == "data" || difference.key == "threads" ||
         difference.key.starts_with("checkpoint.");
}

}  // namespace

RunConfig ResolveAgainstData(const RunConfig& config, const TokenFile& data) {
  RunConfig resolved = config;
  const int64_t vocabulary = data.info().vocabulary_size;
  if (resolved.model.vocabulary == 0) resolved.model.vocabulary = vocabulary;
  AAH_CHECK(resolved.model.vocabulary >= vocabulary, "model.vocabulary: expected at least the ",
            vocabulary, " of ", data.path(), ", got ", resolved.model.vocabulary,
            "; leave the key out to take the data's");
  if (resolved.attention.variant == "aah" && resolved.attention.control.windows.empty()) {
    resolved.attention.control.windows = DefaultWindows(resolved.model.context);
  }
  return resolved;
}

bool OpenRunFolder(const RunConfig& config) {
  const bool exists = IsRunFolder(config.out);
  std::error_code error;
  AAH_CHECK(exists || !fs::exists(config.out, error) || fs::is_empty(config.out, error), config.out,
            ": expected a new folder or that of an earlier run, got ",
            fs::is_directory(config.out, error) ? "a folder that holds something else" : "a file",
            "; choose another `out`");
  CreateFolder(config.out);
  if (!exists) WriteConfig(config);
  CreateFolder(config.out + "/checkpoints");
  return exists;
}

void CheckResumable(const RunConfig& config) {
  const RunConfig earlier = ReadRunConfig(ConfigPath(config.out), {});
  for (const ConfigDifference& difference : CompareRunConfigs(earlier, config)) {
    AAH_CHECK(MayDiffer(difference, earlier, config), config.out,
              ": holds a run with another config: ", difference.key, " was ", difference.was,
              ", is ", difference.is, "; set it back to resume, or choose another `out`");
  }
  AAH_CHECK(!IsFinished(config.out) || config.training.steps > earlier.training.steps, config.out,
            ": holds a finished run of ", earlier.training.steps,
            " steps; choose another `out`, or raise training.steps to train it further");
}

void WriteConfig(const RunConfig& config) {
  WriteFileAtomically(ConfigPath(config.out), std::string_view(RunConfigYaml(config)));
}

void RemoveOldCheckpoints(const std::string& run_folder, int64_t keep) {
  const std::vector<int64_t> steps = CheckpointSteps(run_folder);
  std::error_code ignored;  // what cannot be removed costs space only
  for (size_t i = 0; i + static_cast<size_t>(keep) < steps.size(); ++i) {
    // Renamed first, so that a checkpoint is never there in part.
    const std::string path = CheckpointPath(run_folder, steps[i]);
    const std::string leaving = path + std::string(kRemovedSuffix);
    fs::rename(path, leaving, ignored);
    fs::remove_all(leaving, ignored);
  }
}

void RemoveRemains(const std::string& run_folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run_folder + "/checkpoints", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kRemovedSuffix) || name.starts_with(".step-")) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

std::string LastCheckpointHint(const RunConfig& config) {
  const std::vector<int64_t> steps = CheckpointSteps(config.out);
  if (steps.empty()) return "no checkpoint was written before it";
  return "the last good checkpoint is " + CheckpointPath(config.out, steps.back());
}

}  // namespace aah
