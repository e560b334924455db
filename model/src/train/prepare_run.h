#ifndef AAH_MODEL_SRC_TRAIN_PREPARE_RUN_H_
#define AAH_MODEL_SRC_TRAIN_PREPARE_RUN_H_

#include <string>

#include "aah/model/train_config.h"
#include "aah/text/token_file.h"

namespace aah {

// What stands between a config and the first step: trainer.h tells the rules.

// The config with the vocabulary of the data where it names none. Throws aah::Error where the
// model's is smaller.
RunConfig ResolveAgainstData(const RunConfig& config, const TokenFile& data);

// Makes the run folder with its config.yaml, or finds one of an earlier call and returns true.
// Throws aah::Error for a folder that holds something else than a run.
bool OpenRunFolder(const RunConfig& config);

// Throws aah::Error unless the run that the folder holds may go on with this config.
void CheckResumable(const RunConfig& config);

void WriteConfig(const RunConfig& config);

// Removes all but the newest `keep` checkpoints.
void RemoveOldCheckpoints(const std::string& run_folder, int64_t keep);

// Removes what a killed process left of checkpoints that it was writing or removing.
void RemoveRemains(const std::string& run_folder);

// Ends a message about a run that broke: which checkpoint is there.
std::string LastCheckpointHint(const RunConfig& config);

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_PREPARE_RUN_H_
