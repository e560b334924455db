#include "aah/model/checkpoint.h"

#include <torch/torch.h>

#include <filesystem>
#include <string>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/io/safetensors.h"
#include "aah/model/run_folder.h"
#include "aah/text/sha256.h"
#include "train/tensor_files.h"

namespace aah {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "aah-checkpoint";
constexpr int64_t kVersion = 1;
constexpr const char* kRandomState = "random.torch_cpu";
const std::string kAttentionPrefix = "attention.";

const std::string kModelFile = "model.safetensors";
const std::string kOptimizerFile = "optimizer.safetensors";

std::string StateFile(const std::string& path) { return path + "/state.json"; }

std::string MomentName(const char* moment, const std::string& parameter) {
  return std::string("optimizer.") + moment + "." + parameter;
}

NamedTensors ModelTensors(Gpt& model) {
  NamedTensors tensors;
  for (const auto& item : model->named_parameters()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

NamedTensors TrainingTensors(const AdamW& optimizer, const PolicyState& attention) {
  NamedTensors tensors;
  for (const AdamW::Parameter& parameter : optimizer.parameters()) {
    tensors.emplace_back(MomentName("exp_avg", parameter.name), parameter.exp_avg);
    tensors.emplace_back(MomentName("exp_avg_sq", parameter.name), parameter.exp_avg_sq);
    tensors.emplace_back(MomentName("steps", parameter.name), parameter.steps);
  }
  tensors.emplace_back(kRandomState, at::detail::getDefaultCPUGenerator().get_state());
  for (const auto& [name, tensor] : attention.tensors) {
    tensors.emplace_back(kAttentionPrefix + name, tensor);
  }
  return tensors;
}

std::string HashOf(const MappedFile& file) { return ToHex(Sha256Of(file.bytes())); }

// `files` holds the hash of each file of tensors.
Json StateJson(const CheckpointState& state, const std::string& attention, const Json& files) {
  return {
      {"format", kFormat},
      {"version", kVersion},
      {"step", state.step},
      {"samples", state.samples},
      {"config", state.config},
      {"data", {{"content_hash", state.content_hash}, {"tokenizer_hash", state.tokenizer_hash}}},
      {"logs",
       {{"metrics", state.logs.metrics},
        {"windows", state.logs.windows},
        {"groups", state.logs.groups},
        {"selection", state.logs.selection},
        {"events", state.logs.events}}},
      {"files", files},
      {"attention", attention}};
}

Json ReadStateJson(const std::string& path) {
  const std::string file = StateFile(path);
  Json json = ReadJsonFile(file);
  const auto format = JsonMember<std::string>(json, "format", file);
  AAH_CHECK(format == kFormat, file, ": expected format '", kFormat, "', got '", format, "'");
  const auto version = JsonMember<int64_t>(json, "version", file);
  AAH_CHECK(version == kVersion, file, ": expected version ", kVersion, ", got ", version,
            "; read it with the release that wrote it");
  return json;
}

int64_t NonNegative(const Json& object, const char* key, const std::string& file) {
  const auto value = JsonMember<int64_t>(object, key, file);
  AAH_CHECK(value >= 0, file, ": ", key, ": expected at least 0, got ", value);
  return value;
}

// A file of tensors whose bytes are those that were saved: safetensors itself would notice no
// changed bit between the header and the end. `state` is the checkpoint's state.json.
class CheckedTensors {
 public:
  CheckedTensors(const std::string& path, const std::string& name, const Json& state)
      : file_(path + "/" + name), tensors_(file_.bytes(), file_.name()) {
    if (!state.contains("files")) return;  // from before checkpoints kept hashes
    const auto expected =
        JsonMember<std::string>(JsonAt(state, "files", StateFile(path)), name, StateFile(path));
    const std::string found = HashOf(file_);
    AAH_CHECK(found == expected, file_.name(), ": the file is damaged: expected SHA-256 ", expected,
              ", got ", found, "; copy the checkpoint again or take another one");
  }

  const SafetensorsFile& operator*() const { return tensors_; }

 private:
  MappedFile file_;
  SafetensorsFile tensors_;
};

void SetModelWeights(const SafetensorsFile& file, Gpt& model) {
  auto parameters = model->named_parameters();
  for (const StoredTensor& stored : file.tensors()) {
    AAH_CHECK(parameters.contains(stored.name), file.name(), ": holds a tensor '", stored.name,
              "' that this model does not have; load it into a model of the same `model` settings");
  }
  for (auto& item : parameters) ReadTensorInto(file, item.key(), item.value());
}

void SetAttentionState(const SafetensorsFile& file, const std::string& json, Gpt& model) {
  PolicyState attention{.tensors = {}, .json = json};
  for (const StoredTensor& stored : file.tensors()) {
    if (stored.name.starts_with(kAttentionPrefix)) {
      attention.tensors[stored.name.substr(kAttentionPrefix.size())] =
          ReadTensor(file, stored.name);
    }
  }
  model->attention().Restore(attention);
}

}  // namespace

void SaveCheckpoint(const std::string& path, Gpt& model, const AdamW& optimizer,
                    const CheckpointState& state) {
  const PolicyState attention = model->attention().Save();
  AtomicFolderWriter folder(path);
  const std::string temporary = folder.temporary_path().string();
  WriteTensors(temporary + "/" + kModelFile, ModelTensors(model));
  WriteTensors(temporary + "/" + kOptimizerFile, TrainingTensors(optimizer, attention));
  Json files;
  for (const std::string& name : {kModelFile, kOptimizerFile}) {
    files[name] = HashOf(MappedFile(folder.temporary_path() / name));
  }
  WriteFileAtomically(StateFile(temporary), StateJson(state, attention.json, files).dump(2) + "\n");
  folder.Commit();
}

CheckpointState ReadCheckpointState(const std::string& path) {
  const std::string file = StateFile(path);
  const Json json = ReadStateJson(path);
  CheckpointState state;
  state.step = NonNegative(json, "step", file);
  state.samples = NonNegative(json, "samples", file);
  state.config = JsonMember<std::string>(json, "config", file);
  const Json& data = JsonAt(json, "data", file);
  state.content_hash = JsonMember<std::string>(data, "content_hash", file);
  state.tokenizer_hash = JsonMember<std::string>(data, "tokenizer_hash", file);
  const Json& logs = JsonAt(json, "logs", file);
  state.logs = {.metrics = NonNegative(logs, "metrics", file),
                .windows = NonNegative(logs, "windows", file),
                // Absent in older checkpoints: nothing of the kind was logged.
                .groups = logs.contains("groups") ? NonNegative(logs, "groups", file) : 0,
                .selection = logs.contains("selection") ? NonNegative(logs, "selection", file) : 0,
                .events = NonNegative(logs, "events", file)};
  return state;
}

void LoadModelWeights(const std::string& path, Gpt& model) {
  SetModelWeights(*CheckedTensors(path, kModelFile, ReadStateJson(path)), model);
}

void LoadAttentionState(const std::string& path, Gpt& model) {
  const Json state = ReadStateJson(path);
  const auto attention = JsonMember<std::string>(state, "attention", StateFile(path));
  SetAttentionState(*CheckedTensors(path, kOptimizerFile, state), attention, model);
}

void LoadCheckpoint(const std::string& path, Gpt& model, AdamW& optimizer) {
  const Json state = ReadStateJson(path);
  const auto attention = JsonMember<std::string>(state, "attention", StateFile(path));
  const CheckedTensors weights(path, kModelFile, state);
  const CheckedTensors training(path, kOptimizerFile, state);
  SetModelWeights(*weights, model);
  const SafetensorsFile& file = *training;
  for (AdamW::Parameter& parameter : optimizer.parameters()) {
    ReadTensorInto(file, MomentName("exp_avg", parameter.name), parameter.exp_avg);
    ReadTensorInto(file, MomentName("exp_avg_sq", parameter.name), parameter.exp_avg_sq);
    ReadTensorInto(file, MomentName("steps", parameter.name), parameter.steps);
  }
  at::Tensor random = at::detail::getDefaultCPUGenerator().get_state();
  ReadTensorInto(file, kRandomState, random);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(random);
  SetAttentionState(file, attention, model);
}

std::string FindCheckpoint(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(StateFile(path), error)) return path;
  AAH_CHECK(IsRunFolder(path), path, ": expected a run folder or a checkpoint in one, got ",
            fs::exists(path, error) ? "something else" : "a path that does not exist");
  const std::vector<int64_t> steps = CheckpointSteps(path);
  AAH_CHECK(!steps.empty(), path, ": the run has no checkpoint yet; train it further first");
  return CheckpointPath(path, steps.back());
}

}  // namespace aah
