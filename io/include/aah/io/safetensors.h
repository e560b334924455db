#ifndef AAH_IO_SAFETENSORS_H_
#define AAH_IO_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aah/io/file.h"

// The safetensors format (https://github.com/huggingface/safetensors): eight bytes of header size,
// a JSON header of names, dtypes, shapes and offsets, then the tensors' bytes, little-endian.

namespace aah {

// In the order of the reference implementation, which lays out files by it.
enum class DType {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64,
};

// Bytes of one element.
int64_t ByteSize(DType dtype);
// As in the file: "F32", "BF16", ...
std::string_view DTypeName(DType dtype);

// One tensor of a file: contiguous, row-major; the bytes belong to the file (or, when writing, to
// the caller). Foreign files may leave them unaligned: copy with memcpy.
struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // empty: a scalar
  std::span<const std::byte> bytes;

  int64_t element_count() const;
};

// Read access to a safetensors file. Opening checks everything before anything is handed out: the
// header's size and JSON, dtypes, shapes (no overflow), and that the offsets cover the data exactly
// once, without holes or overlap. Throws aah::Error(kBadInput) that names the file and the tensor.
class SafetensorsFile {
 public:
  // Maps the file; its bytes live as long as the object.
  explicit SafetensorsFile(const std::filesystem::path& path);
  // Reads from memory that must outlive the object.
  SafetensorsFile(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  // In the order of their bytes in the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // nullptr where there is none of that name.
  const StoredTensor* Find(std::string_view tensor_name) const;
  // Throws aah::Error(kBadInput) with the nearest name where there is none, or where dtype or shape
  // differ from what is expected.
  const StoredTensor& Get(std::string_view tensor_name) const;
  const StoredTensor& Get(std::string_view tensor_name, DType dtype,
                          std::span<const int64_t> shape) const;

 private:
  void Parse(std::span<const std::byte> bytes);

  std::optional<MappedFile> file_;
  std::string name_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

// Writes the tensors, whole or not at all. The bytes of the file depend on the arguments' content
// only, not on their order, and equal those that the reference implementation writes: tensors lie
// by falling dtype (so by falling element size, each aligned to its element), then by name; the
// data begins at a multiple of eight bytes. Throws aah::Error(kBadInput) on a name given twice or
// bytes that do not match dtype and shape, kMachine on a full disk.
void WriteSafetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace aah

#endif  // AAH_IO_SAFETENSORS_H_
