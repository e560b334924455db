#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "aah/error.h"
#include "aah/text/batches.h"
#include "aah/text/sha256.h"
#include "aah/text/token_file.h"
#include "text/src/token_file_format.h"

namespace {

// With its header's hash made right: it would keep every change from the checks behind it.
std::vector<std::byte> WithValidHash(const uint8_t* data, size_t size) {
  using aah::token_file_format::kHashedHeaderBytes;
  using aah::token_file_format::kHeaderBytes;
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), data, size);
  if (size >= kHeaderBytes) {
    const auto digest = aah::Sha256Of(std::span(bytes).first(kHashedHeaderBytes));
    std::ranges::copy(digest, bytes.begin() + kHashedHeaderBytes);
  }
  return bytes;
}

void UseAll(const aah::TokenFile& file) {
  for (int64_t i = 0; i < file.info().document_count; ++i) {
    std::vector<int32_t> ids(static_cast<size_t>(file.Document(i).size()));
    file.Read(file.Document(i).begin, std::span(ids));
  }
  const aah::TrainingBatches batches(file, 2, 1);
  std::vector<int64_t> rows(4 * 3);
  batches.Fill(0, 4, std::span(rows));
  const aah::EvaluationStretches stretches(file, aah::Split::kValidation, 2, 4);
  rows.resize(static_cast<size_t>(stretches.count()) * 3);
  stretches.Fill(0, stretches.count(), std::span(rows));
  file.VerifyContent();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<std::byte> bytes = WithValidHash(data, size);
  try {
    UseAll(aah::TokenFile::FromMemory(bytes, "input"));
  } catch (const aah::Error&) {
    // What a reader owes to bad input.
  }
  return 0;
}
