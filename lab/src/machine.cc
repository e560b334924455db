#include "aah/lab/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/instruction_set.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/lab/table.h"

namespace aah {
namespace {

constexpr char kUnknown[] = "unknown";

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    const bool names_it = line.starts_with("model name") || line.starts_with("Model");
    if (names_it && colon != std::string::npos) return line.substr(colon + 2);
  }
  return kUnknown;
}

int64_t UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return sysconf(_SC_NPROCESSORS_ONLN);
}

std::string SystemName() {
  utsname name = {};
  if (uname(&name) != 0) return kUnknown;
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

std::string FactsPath(const std::string& run_folder) { return run_folder + "/machine.json"; }

}  // namespace

MachineFacts ThisMachine() {
  MachineFacts facts;
  facts.processor = ProcessorName();
  facts.cores = UsableCores();
  facts.memory_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  facts.system = SystemName();
  facts.instruction_set = CurrentInstructionSet();
#ifdef __clang__
  facts.compiler = "clang " __clang_version__;
#else
  facts.compiler = "gcc " __VERSION__;
#endif
  facts.torch = AAH_TORCH_VERSION;
  facts.aah = AAH_VERSION;
  return facts;
}

std::vector<std::pair<std::string, std::string>> Describe(const MachineFacts& facts) {
  return {
      {"processor", facts.processor},
      {"cores", std::to_string(facts.cores)},
      {"memory", FormatFixed(static_cast<double>(facts.memory_bytes) / 0x1p30, 1) + " GiB"},
      {"system", facts.system},
      {"instruction set", facts.instruction_set},
      {"compiler", facts.compiler},
      {"torch", facts.torch},
      {"aah", facts.aah},
  };
}

void WriteMachineFacts(const std::string& run_folder, const MachineFacts& facts) {
  const Json json = {
      {"processor", facts.processor},
      {"cores", facts.cores},
      {"memory_bytes", facts.memory_bytes},
      {"system", facts.system},
      {"instruction_set", facts.instruction_set},
      {"compiler", facts.compiler},
      {"torch", facts.torch},
      {"aah", facts.aah},
  };
  WriteFileAtomically(FactsPath(run_folder),
                      json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<MachineFacts> ReadMachineFacts(const std::string& run_folder) {
  const std::string path = FactsPath(run_folder);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const Json json = ReadJsonFile(path, 1 << 20);
  MachineFacts facts;
  facts.processor = JsonMember<std::string>(json, "processor", path);
  facts.cores = JsonMember<int64_t>(json, "cores", path);
  facts.memory_bytes = JsonMember<int64_t>(json, "memory_bytes", path);
  facts.system = JsonMember<std::string>(json, "system", path);
  facts.instruction_set = JsonMember<std::string>(json, "instruction_set", path);
  facts.compiler = JsonMember<std::string>(json, "compiler", path);
  facts.torch = JsonMember<std::string>(json, "torch", path);
  facts.aah = JsonMember<std::string>(json, "aah", path);
  return facts;
}

}  // namespace aah
