#include <filesystem>
#include <string>

#include "aah/error.h"
#include "aah/io/file.h"
#include "aah/text/tokenizer.h"
#include "bpe_tokenizer.h"

namespace aah {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  int32_t vocabulary_size() const override { return 256; }

  std::vector<int32_t> Encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }

  std::string Decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      AAH_CHECK(id >= 0 && id < 256, "token id ", id, " is not in a vocabulary of 256");
      text += static_cast<char>(id);
    }
    return text;
  }

  std::optional<int32_t> FindToken(std::string_view text) const override {
    if (text.size() != 1) return std::nullopt;
    return static_cast<unsigned char>(text[0]);
  }

  std::optional<int32_t> end_of_document() const override { return 0; }
  std::string name() const override { return "bytes"; }
  std::string hash() const override { return hash_; }

  void Save(const std::string& folder) const override {
    WriteFileAtomically(std::filesystem::path(folder) / "tokenizer.json",
                        DescribeByteTokenizer().ToJson());
  }

 private:
  std::string hash_ = DescribeByteTokenizer().Hash();
};

}  // namespace

std::unique_ptr<Tokenizer> MakeByteTokenizer() { return std::make_unique<ByteTokenizer>(); }

}  // namespace aah
