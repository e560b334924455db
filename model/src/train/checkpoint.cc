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
#include "train/tensor_files.h"

namespace aah {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "aah-checkpoint";
constexpr int64_t kVersion = 1;
constexpr const char* kRandomState = "random.torch_cpu";
const std::string kAttentionPrefix = "attention.";

std::string ModelFile(const std::string& path) { return path + "/model.safetensors"; }
std::string OptimizerFile(const std::string& path) { return path + "/optimizer.safetensors"; }
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

Json StateJson(const CheckpointState& state, const std::string& attention) {
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
        {"events", state.logs.events}}},
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

}  // namespace

void SaveCheckpoint(const std::string& path, Gpt& model, const AdamW& optimizer,
                    const CheckpointState& state) {
  const PolicyState attention = model->attention().Save();
  AtomicFolderWriter folder(path);
  const std::string temporary = folder.temporary_path().string();
  WriteTensors(ModelFile(temporary), ModelTensors(model));
  WriteTensors(OptimizerFile(temporary), TrainingTensors(optimizer, attention));
  WriteFileAtomically(StateFile(temporary), StateJson(state, attention.json).dump(2) + "\n");
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
                // Absent in checkpoints from before controllers: no groups were logged.
                .groups = logs.contains("groups") ? NonNegative(logs, "groups", file) : 0,
                .events = NonNegative(logs, "events", file)};
  return state;
}

void LoadModelWeights(const std::string& path, Gpt& model) {
  const SafetensorsFile file(ModelFile(path));
  auto parameters = model->named_parameters();
  for (const StoredTensor& stored : file.tensors()) {
    AAH_CHECK(parameters.contains(stored.name), file.name(), ": holds a tensor '", stored.name,
              "' that this model does not have; load it into a model of the same `model` settings");
  }
  for (auto& item : parameters) ReadTensorInto(file, item.key(), item.value());
}

void LoadAttentionState(const std::string& path, Gpt& model) {
  const SafetensorsFile file(OptimizerFile(path));
  PolicyState attention;
  attention.json = JsonMember<std::string>(ReadStateJson(path), "attention", StateFile(path));
  for (const StoredTensor& stored : file.tensors()) {
    if (stored.name.starts_with(kAttentionPrefix)) {
      attention.tensors[stored.name.substr(kAttentionPrefix.size())] =
          ReadTensor(file, stored.name);
    }
  }
  model->attention().Restore(attention);
}

void LoadCheckpoint(const std::string& path, Gpt& model, AdamW& optimizer) {
  LoadModelWeights(path, model);
  const SafetensorsFile file(OptimizerFile(path));
  for (AdamW::Parameter& parameter : optimizer.parameters()) {
    ReadTensorInto(file, MomentName("exp_avg", parameter.name), parameter.exp_avg);
    ReadTensorInto(file, MomentName("exp_avg_sq", parameter.name), parameter.exp_avg_sq);
    ReadTensorInto(file, MomentName("steps", parameter.name), parameter.steps);
  }
  at::Tensor random = at::detail::getDefaultCPUGenerator().get_state();
  ReadTensorInto(file, kRandomState, random);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(random);
  LoadAttentionState(path, model);
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
