#ifndef AAH_MODEL_TRAINER_H_
#define AAH_MODEL_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "aah/model/run_folder.h"
#include "aah/model/train_config.h"

namespace aah {

// Sets what torch and MKL must know before their first operation for results that are the same to
// the bit in every run (MKL_CBWR in the environment, deterministic algorithms). Call it first in
// main; `TrainRun` calls it too. A value of MKL_CBWR that the user has set stays.
void InitialiseDeterminism();

struct RunStart {
  std::string run_folder;
  int64_t step = 0;  // 0, or that of the checkpoint the run goes on from
  int64_t steps = 0;
  int64_t parameters = 0;
  int64_t tokens_per_step = 0;
  std::string attention;  // AttentionName
  bool scored = false;    // the data names the predictions that count, as that of a task does
  bool resumed = false;
};

// Told what happens while a run goes on, on the training thread, in order. What it throws ends the
// run.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void OnStart(const RunStart& /*start*/) {}
  virtual void OnStep(const StepRecord& /*record*/) {}
  virtual void OnValidation(const ValidationRecord& /*record*/) {}
  virtual void OnCheckpoint(int64_t /*step*/, const std::string& /*path*/) {}
  virtual void OnFinish(const SummaryRecord& /*summary*/) {}
};

enum class RunEnd {
  kFinished,  // all steps done, summary written
  kStopped,   // on request, after a checkpoint
};

struct TrainOutcome {
  RunEnd end = RunEnd::kFinished;
  int64_t step = 0;        // finished steps
  std::string checkpoint;  // the last one's folder
};

// Trains until all steps are done or `stop` becomes true (a signal handler may set it): then the
// step that runs is finished and a checkpoint written.
//
// A run folder that exists is never written over. If it holds an unfinished run of the same config,
// that run goes on from its newest whole checkpoint and ends bit-identical to one that was never
// interrupted (same threads, instruction set and torch); its logs are cut back to the checkpoint.
// `threads`, `checkpoint.*` may differ and `training.steps` may grow (the cosine then follows the
// new number, and a finished run goes on). Any other difference throws aah::Error(kBadInput) that
// names the key with both values; so does a finished run, and a folder that holds something else.
//
// A loss or gradient that is not finite throws aah::Error(kMachine) with the step and the first
// tensor concerned; the parameters of that step are not saved, earlier checkpoints stay.
//
// Randomness: initial weights, dropout and the order of the data each come from `seed` by a stream
// of their own, so that neither the attention variant nor the micro-batch size changes the others.
TrainOutcome TrainRun(const RunConfig& config, TrainObserver& observer,
                      const std::atomic<bool>& stop);

}  // namespace aah

#endif  // AAH_MODEL_TRAINER_H_
