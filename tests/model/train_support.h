#ifndef AAH_TESTS_MODEL_TRAIN_SUPPORT_H_
#define AAH_TESTS_MODEL_TRAIN_SUPPORT_H_

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/model/train_config.h"
#include "aah/model/trainer.h"

namespace aah {

// A folder of its own that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Writes a token file of bytes: made-up words that a small model can learn, in all three splits.
// `test_seed` changes the test split alone.
void WriteTokens(const std::string& path, uint64_t test_seed = 3);

// Two layers, two heads of 8, context 32; 12 steps of 4 stretches, validation every 4 steps, a
// checkpoint every 5.
RunConfig TinyRun(const std::string& out, const std::string& data);

// Collects what happens; `at_step`, if given, is called after each step's record.
struct Recorder : TrainObserver {
  void OnStart(const RunStart& start) override { starts.push_back(start); }
  void OnStep(const StepRecord& record) override {
    steps.push_back(record);
    if (at_step) at_step(record.step);
  }
  void OnValidation(const ValidationRecord& record) override { validations.push_back(record); }
  void OnCheckpoint(int64_t step, const std::string& /*path*/) override {
    checkpoints.push_back(step);
  }
  void OnFinish(const SummaryRecord& record) override { summaries.push_back(record); }

  std::function<void(int64_t)> at_step;
  std::vector<RunStart> starts;
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> validations;
  std::vector<int64_t> checkpoints;
  std::vector<SummaryRecord> summaries;
};

// Trains to the end.
Recorder Train(const RunConfig& config);

// Trains until `step` steps are done and stops there, saved.
Recorder TrainUntil(int64_t step, const RunConfig& config);

// What two equal runs of `steps` steps must have in common: all but speeds and times.
void ExpectSameRun(const std::string& run, const std::string& other, int64_t steps);

// Stops a run of `whole`'s config after `stop_after` steps, goes on to the end and compares it with
// `whole`, which has finished.
void ExpectResumesAs(const RunConfig& whole, int64_t stop_after);

// Trains `config`'s run validated in every step, and again only at its end, in folders beside
// config.out, and expects the same windows, weights of selections and checkpoints of both.
void ExpectValidationChangesNothing(const RunConfig& config);

// The message of the aah::Error that `work` throws, and its kind; fails the test where none comes.
std::pair<std::string, ErrorKind> ErrorOf(const std::function<void()>& work);

std::string FileText(const std::string& path);

}  // namespace aah

#endif  // AAH_TESTS_MODEL_TRAIN_SUPPORT_H_
