#ifndef AAH_CLI_PROGRESS_H_
#define AAH_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "aah/model/trainer.h"
#include "cli/terminal.h"

namespace aah {

// Shows a training run on stderr: one line that changes in place on a terminal, else a line every
// ten seconds and at each validation.
class TrainProgress final : public TrainObserver {
 public:
  void OnStart(const RunStart& start) override;
  void OnStep(const StepRecord& record) override;
  void OnValidation(const ValidationRecord& record) override;
  void OnFinish(const SummaryRecord& summary) override;

  // Ends the live line, before anything else is printed.
  void Close() { line_.Clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::string Line(const StepRecord& record) const;
  // "  accuracy 0.9876" where the data is that of a task, else nothing.
  std::string Accuracy(const ValidationRecord& record) const;

  LiveLine line_;
  RunStart start_;
  Clock::time_point began_;
  Clock::time_point printed_;
  std::optional<ValidationRecord> validation_;  // the last one
};

}  // namespace aah

#endif  // AAH_CLI_PROGRESS_H_
