#include "aah/lab/suite.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aah/error.h"
#include "aah/io/config.h"
#include "aah/io/file.h"
#include "aah/model/run_folder.h"
#include "aah/model/train_config.h"

namespace aah {
namespace {

// Names become folders: letters, digits, '-', '_' and '.', not first.
bool IsFolderName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), allowed);
}

// Whether a finished run of this arm is there. Throws where it was made with other settings that
// matter to its figures.
bool IsDone(const SuiteArm& arm) {
  const std::string& folder = arm.config.out;
  if (!IsRunFolder(folder) || !IsFinished(folder)) return false;
  const RunConfig was = ReadRunConfig(ConfigPath(folder), {});
  RunConfig is = arm.config;
  if (is.model.vocabulary == 0) is.model.vocabulary = was.model.vocabulary;
  for (const ConfigDifference& difference : CompareRunConfigs(was, is)) {
    const bool harmless = difference.key == "out" || difference.key.starts_with("checkpoint.");
    AAH_CHECK(harmless, folder, " holds a finished run with ", difference.key, " = ",
              difference.was, ", this suite has ", difference.is,
              ": choose another folder with --out, or remove that one");
  }
  return true;
}

}  // namespace

Suite ReadSuite(const std::string& path, std::span<const std::string> overrides,
                const std::string& out) {
  ConfigReader file = ConfigReader::FromFile(path);
  Suite suite;
  suite.out = file.Get<std::string>("out", "runs/" + std::filesystem::path(path).stem().string());
  if (!out.empty()) suite.out = out;
  std::filesystem::path folder = std::filesystem::absolute(suite.out).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  suite.name = folder.filename().string();

  ConfigReader base = file.Section("base");
  base.Check(!base.Has("out"), "out", "each arm's folder is the suite's `out` and its name");
  std::set<std::string> names;
  for (ConfigReader arm : file.List("arms")) {
    const auto name = arm.Require<std::string>("name");
    arm.Check(IsFolderName(name), "name", "expected letters, digits, '-', '_' or '.', got '", name,
              "'");
    arm.Check(names.insert(name).second, "name", "'", name, "' is the name of two arms");
    arm.Check(!arm.Has("out"), "out", "each arm's folder is the suite's `out` and its name");
    std::vector<std::string> final_overrides(overrides.begin(), overrides.end());
    final_overrides.push_back("out=" + suite.out + "/" + name);
    ConfigReader merged = base.MergedWith(arm).WithOverrides(final_overrides);
    merged.Get<std::string>("name", name);
    suite.arms.push_back({name, ReadRunConfig(merged)});
  }
  AAH_CHECK(!suite.arms.empty(), path, ": expected a list of runs under `arms`, found none");
  file.Finish();
  return suite;
}

int RunSuite(const Suite& suite, const ArmRunner& run, const ArmAnnouncer& announce) {
  std::vector<bool> done;
  for (const SuiteArm& arm : suite.arms) {
    done.push_back(IsDone(arm));
    if (!done.back()) CheckTrainingMemory(arm.config);
  }
  CreateFolder(suite.out);
  for (size_t i = 0; i < suite.arms.size(); ++i) {
    const SuiteArm& arm = suite.arms[i];
    announce(i, done[i]);
    if (done[i]) continue;
    const std::string recipe = suite.out + "/" + arm.name + ".yaml";
    WriteFileAtomically(recipe, RunConfigYaml(arm.config));
    const int exit_code = run(recipe);
    if (exit_code != 0) return exit_code;
  }
  return 0;
}

std::vector<std::string> RunFolders(const Suite& suite) {
  std::vector<std::string> folders;
  for (const SuiteArm& arm : suite.arms) folders.push_back(arm.config.out);
  return folders;
}

}  // namespace aah
