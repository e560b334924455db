#include "train/tensor_files.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

constexpr std::array<std::pair<DType, torch::ScalarType>, 8> kDTypes = {{
    {DType::kF32, torch::kFloat},
    {DType::kF64, torch::kDouble},
    {DType::kBF16, torch::kBFloat16},
    {DType::kF16, torch::kHalf},
    {DType::kBool, torch::kBool},
    {DType::kU8, torch::kByte},
    {DType::kI32, torch::kInt},
    {DType::kI64, torch::kLong},
}};

DType ToDType(torch::ScalarType type, const std::string& name) {
  for (const auto& [stored, held] : kDTypes) {
    if (held == type) return stored;
  }
  ThrowError(ErrorKind::kBadInput, "tensor ", name,
             ": expected a dtype that safetensors holds, got ", c10::toString(type));
}

torch::ScalarType ToScalarType(DType type, const std::string& file, const std::string& name) {
  for (const auto& [stored, held] : kDTypes) {
    if (stored == type) return held;
  }
  ThrowError(ErrorKind::kBadInput, file, ": tensor ", name,
             ": expected a dtype of F64, F32, F16, BF16, I64, I32, U8 or BOOL, got ",
             DTypeName(type));
}

}  // namespace

void WriteTensors(const std::filesystem::path& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<torch::Tensor> contiguous;  // owns what `stored` points to
  std::vector<StoredTensor> stored;
  for (const auto& [name, tensor] : tensors) {
    contiguous.push_back(tensor.detach().contiguous());
    const torch::Tensor& held = contiguous.back();
    stored.push_back(
        {.name = name,
         .dtype = ToDType(held.scalar_type(), name),
         .shape = held.sizes().vec(),
         .bytes = {static_cast<const std::byte*>(held.const_data_ptr()), held.nbytes()}});
  }
  WriteSafetensors(path, stored, metadata);
}

void ReadTensorInto(const SafetensorsFile& file, const std::string& name, torch::Tensor& target) {
  const torch::NoGradGuard no_grad;
  const StoredTensor& stored =
      file.Get(name, ToDType(target.scalar_type(), name), target.sizes().vec());
  torch::Tensor copy = torch::empty(target.sizes(), target.options().requires_grad(false));
  if (!stored.bytes.empty()) {
    std::memcpy(copy.mutable_data_ptr(), stored.bytes.data(), stored.bytes.size());
  }
  target.copy_(copy);
}

torch::Tensor ReadTensor(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& stored = file.Get(name);
  torch::Tensor tensor = torch::empty(stored.shape, ToScalarType(stored.dtype, file.name(), name));
  if (!stored.bytes.empty()) {
    std::memcpy(tensor.mutable_data_ptr(), stored.bytes.data(), stored.bytes.size());
  }
  return tensor;
}

}  // namespace aah
