#ifndef AAH_TEXT_SHA256_H_
#define AAH_TEXT_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace aah {

// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  using Digest = std::array<std::byte, 32>;

  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::span<const std::byte> bytes);
  void Add(std::string_view text);
  // Eight little-endian bytes.
  void Add(uint64_t number);
  // The length, then the text: so that neighbouring texts cannot run together.
  void AddSized(std::string_view text);

  // To be called once, last.
  Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256::Digest Sha256Of(std::span<const std::byte> bytes);
Sha256::Digest Sha256Of(std::string_view text);

// 64 lower-case hexadecimal digits, and back. The way back throws aah::Error on anything else.
std::string ToHex(const Sha256::Digest& digest);
Sha256::Digest FromHex(std::string_view hex);

}  // namespace aah

#endif  // AAH_TEXT_SHA256_H_
