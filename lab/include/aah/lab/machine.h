#ifndef AAH_LAB_MACHINE_H_
#define AAH_LAB_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace aah {

// What a measured time depends on.
struct MachineFacts {
  std::string processor;  // as /proc/cpuinfo names it
  int64_t cores = 0;      // that this process may use
  int64_t memory_bytes = 0;
  std::string system;           // kernel name, release and architecture
  std::string instruction_set;  // that the attention kernels run on
  std::string compiler;
  std::string torch;
  std::string aah;
};

// Of the machine and the program that run now; unknown texts are "unknown".
MachineFacts ThisMachine();

// For people: ("processor", "..."), in the order above.
std::vector<std::pair<std::string, std::string>> Describe(const MachineFacts& facts);

// machine.json in a run folder: where that run was measured. Reading gives nothing where the file
// is absent and throws aah::Error where it is malformed.
void WriteMachineFacts(const std::string& run_folder, const MachineFacts& facts);
std::optional<MachineFacts> ReadMachineFacts(const std::string& run_folder);

}  // namespace aah

#endif  // AAH_LAB_MACHINE_H_
