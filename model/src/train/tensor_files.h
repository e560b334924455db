#ifndef AAH_MODEL_SRC_TRAIN_TENSOR_FILES_H_
#define AAH_MODEL_SRC_TRAIN_TENSOR_FILES_H_

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "aah/io/safetensors.h"

namespace aah {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Writes CPU tensors under their names. Dtypes: float, double, bfloat16, half, bool, uint8, int32,
// int64.
void WriteTensors(const std::filesystem::path& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata = {});

// Copies the stored tensor `name` into `target`. Throws aah::Error(kBadInput) unless it is there
// with target's dtype and shape.
void ReadTensorInto(const SafetensorsFile& file, const std::string& name, torch::Tensor& target);

// A tensor of its own with the stored one's dtype and shape.
torch::Tensor ReadTensor(const SafetensorsFile& file, const std::string& name);

}  // namespace aah

#endif  // AAH_MODEL_SRC_TRAIN_TENSOR_FILES_H_
