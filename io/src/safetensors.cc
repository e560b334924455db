#include "aah/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/nearest_name.h"

namespace aah {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are stored little-endian");

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int64_t byte_size;
};

constexpr std::array<DTypeRow, 15> kDTypes = {{
    {DType::kBool, "BOOL", 1},
    {DType::kU8, "U8", 1},
    {DType::kI8, "I8", 1},
    {DType::kF8E5M2, "F8_E5M2", 1},
    {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kI16, "I16", 2},
    {DType::kU16, "U16", 2},
    {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},
    {DType::kI32, "I32", 4},
    {DType::kU32, "U32", 4},
    {DType::kF32, "F32", 4},
    {DType::kF64, "F64", 8},
    {DType::kI64, "I64", 8},
    {DType::kU64, "U64", 8},
}};

constexpr size_t kSizeBytes = 8;                   // the header's size comes first
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the bound of the reference implementation
constexpr size_t kMaxRank = 64;
constexpr size_t kAlignment = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

const DTypeRow& RowOf(DType dtype) { return kDTypes.at(static_cast<size_t>(dtype)); }

std::string ShapeText(std::span<const int64_t> shape, const char* separator = ", ") {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i > 0 ? separator : "") + std::to_string(shape[i]);
  return text + "]";
}

// Bytes of a tensor, or -1 where the shape is negative or the product overflows.
int64_t ByteCount(DType dtype, std::span<const int64_t> shape) {
  int64_t bytes = ByteSize(dtype);
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return -1;
  }
  return bytes;
}

// A list of integers that are not negative.
std::vector<int64_t> Counts(const Json& list, std::string_view key, const std::string& where) {
  AAH_CHECK(list.is_array() && list.size() <= kMaxRank, where, ": '", key,
            "': expected a list of at most ", kMaxRank, " integers, got ", DescribeJson(list));
  std::vector<int64_t> values;
  for (const Json& item : list) {
    AAH_CHECK(item.is_number_unsigned() && item.get<uint64_t>() <= INT64_MAX, where, ": '", key,
              "': expected integers of at least 0, got ", DescribeJson(item));
    values.push_back(item.get<int64_t>());
  }
  return values;
}

DType ParseDType(const std::string& name, const std::string& where) {
  std::vector<std::string> known;
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
    known.emplace_back(row.name);
  }
  ThrowError(ErrorKind::kBadInput, where, ": unknown dtype '", name.substr(0, 40), "'",
             NearestNameHint(name.substr(0, 40), known));
}

// One entry of the header; its bytes are still to be checked against those of the others.
StoredTensor ParseEntry(const std::string& tensor_name, const Json& entry,
                        std::span<const std::byte> data, const std::string& where) {
  StoredTensor tensor;
  tensor.name = tensor_name;
  tensor.dtype = ParseDType(JsonMember<std::string>(entry, "dtype", where), where);
  tensor.shape = Counts(JsonAt(entry, "shape", where), "shape", where);
  const std::vector<int64_t> offsets =
      Counts(JsonAt(entry, "data_offsets", where), "data_offsets", where);
  AAH_CHECK(entry.size() == 3, where, ": expected dtype, shape and data_offsets, got ",
            entry.size(), " keys");
  const auto data_size = static_cast<int64_t>(data.size());
  AAH_CHECK(offsets.size() == 2 && offsets[0] <= offsets[1] && offsets[1] <= data_size, where,
            ": data_offsets ", ShapeText(offsets), " do not lie within the ", data_size,
            " bytes of data: the file is cut short or damaged");
  const int64_t expected = ByteCount(tensor.dtype, tensor.shape);
  AAH_CHECK(expected == offsets[1] - offsets[0], where, ": ", DTypeName(tensor.dtype), " of shape ",
            ShapeText(tensor.shape), " does not fill the ", offsets[1] - offsets[0],
            " bytes of its data_offsets");
  tensor.bytes = data.subspan(offsets[0], expected);
  return tensor;
}

// The header as the reference implementation writes it, padded with spaces so that data is aligned.
std::string MakeHeader(std::span<const StoredTensor* const> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += Json(std::string(kMetadataKey)).dump() + ":" + Json(metadata).dump();
  }
  int64_t offset = 0;
  for (const StoredTensor* tensor : tensors) {
    const int64_t end = offset + static_cast<int64_t>(tensor->bytes.size());
    if (text.size() > 1) text += ",";
    text += Json(tensor->name).dump() + ":" +
            internal::Concatenate("{\"dtype\":\"", DTypeName(tensor->dtype),
                                  "\",\"shape\":", ShapeText(tensor->shape, ","),
                                  ",\"data_offsets\":[", offset, ",", end, "]}");
    offset = end;
  }
  text += "}";
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

void CheckWritable(std::span<const StoredTensor* const> tensors, const std::string& name) {
  std::map<std::string_view, int> count;
  for (const StoredTensor* tensor : tensors) {
    AAH_CHECK(IsUtf8(tensor->name) && tensor->name != kMetadataKey, name,
              ": a tensor cannot have the name '", tensor->name, "'");
    AAH_CHECK(++count[tensor->name] == 1, name, ": two tensors have the name '", tensor->name, "'");
    const int64_t expected = ByteCount(tensor->dtype, tensor->shape);
    AAH_CHECK(expected == static_cast<int64_t>(tensor->bytes.size()), name, ": tensor '",
              tensor->name, "': ", DTypeName(tensor->dtype), " of shape ", ShapeText(tensor->shape),
              " needs ", expected, " bytes, got ", tensor->bytes.size());
  }
}

}  // namespace

int64_t ByteSize(DType dtype) { return RowOf(dtype).byte_size; }

std::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

int64_t StoredTensor::element_count() const {
  return static_cast<int64_t>(bytes.size()) / ByteSize(dtype);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(path), name_(path.string()) {
  Parse(file_->bytes());
}

SafetensorsFile::SafetensorsFile(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)) {
  Parse(bytes);
}

void SafetensorsFile::Parse(std::span<const std::byte> bytes) {
  AAH_CHECK(bytes.size() >= kSizeBytes, name_, ": ", bytes.size(),
            " bytes are too few for a safetensors file");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kSizeBytes);
  AAH_CHECK(header_bytes <= std::min<uint64_t>(bytes.size() - kSizeBytes, kMaxHeaderBytes), name_,
            ": the header is said to have ", header_bytes, " bytes, the file has ", bytes.size(),
            ": not a safetensors file, or cut short");
  const std::string_view header_text(reinterpret_cast<const char*>(bytes.data()) + kSizeBytes,
                                     header_bytes);
  const Json header = ParseJson(header_text, name_ + " (header)");
  AAH_CHECK(header.is_object(), name_, ": the header: expected an object, got ",
            DescribeJson(header));
  const std::span<const std::byte> data = bytes.subspan(kSizeBytes + header_bytes);
  for (const auto& [key, value] : header.items()) {
    if (key != kMetadataKey) {
      tensors_.push_back(
          ParseEntry(key, value, data, name_ + ": tensor '" + key.substr(0, 200) + "'"));
      continue;
    }
    AAH_CHECK(value.is_object(), name_, ": ", kMetadataKey, ": expected an object, got ",
              DescribeJson(value));
    for (const auto& [entry, text] : value.items()) {
      metadata_[entry] = JsonMember<std::string>(value, entry, name_ + ": metadata");
      (void)text;
    }
  }
  // Empty tensors share their offset with the next one, so the end decides among equal begins.
  std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    if (a.bytes.data() != b.bytes.data()) return a.bytes.data() < b.bytes.data();
    if (a.bytes.size() != b.bytes.size()) return a.bytes.size() < b.bytes.size();
    return a.name < b.name;
  });
  const std::byte* end = data.data();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const StoredTensor& tensor = tensors_[i];
    AAH_CHECK(tensor.bytes.data() == end, name_, ": tensor '", tensor.name, "' begins at byte ",
              tensor.bytes.data() - data.data(), " of the data, expected ", end - data.data(),
              ": the file is damaged");
    end = tensor.bytes.data() + tensor.bytes.size();
    index_[tensor.name] = i;
  }
  AAH_CHECK(end == data.data() + data.size(), name_, ": ", data.size(),
            " bytes of data, but the tensors fill ", end - data.data(), ": the file is damaged");
}

const StoredTensor* SafetensorsFile::Find(std::string_view tensor_name) const {
  const auto found = index_.find(tensor_name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& SafetensorsFile::Get(std::string_view tensor_name) const {
  const StoredTensor* tensor = Find(tensor_name);
  if (tensor != nullptr) return *tensor;
  constexpr size_t kMaxListed = 1000;
  std::vector<std::string> known;
  for (const StoredTensor& other : tensors_) {
    if (known.size() < kMaxListed) known.push_back(other.name);
  }
  const std::string nearest = NearestName(tensor_name, known);
  ThrowError(ErrorKind::kBadInput, name_, ": there is no tensor '", tensor_name, "' among its ",
             tensors_.size(), nearest.empty() ? "" : "; the nearest name is '" + nearest + "'");
}

const StoredTensor& SafetensorsFile::Get(std::string_view tensor_name, DType dtype,
                                         std::span<const int64_t> shape) const {
  const StoredTensor& tensor = Get(tensor_name);
  AAH_CHECK(tensor.dtype == dtype && std::ranges::equal(tensor.shape, shape), name_, ": tensor '",
            tensor_name, "': expected ", DTypeName(dtype), " of shape ", ShapeText(shape), ", got ",
            DTypeName(tensor.dtype), " of shape ", ShapeText(tensor.shape));
  return tensor;
}

void WriteSafetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return a->dtype != b->dtype ? a->dtype > b->dtype : a->name < b->name;
  });
  CheckWritable(order, path.string());
  for (const auto& [key, value] : metadata) {
    AAH_CHECK(IsUtf8(key) && IsUtf8(value), path.string(), ": metadata must be UTF-8 text");
  }
  const std::string header = MakeHeader(order, metadata);
  const uint64_t header_bytes = header.size();
  AtomicFileWriter writer(path);
  writer.Write(std::as_bytes(std::span(&header_bytes, 1)));
  writer.Write(header);
  for (const StoredTensor* tensor : order) writer.Write(tensor->bytes);
  writer.Commit();
}

}  // namespace aah
