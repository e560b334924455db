#include "aah/text/sha256.h"

#include <openssl/evp.h>

#include "aah/error.h"

namespace aah {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() {
    if (evp == nullptr || EVP_DigestInit_ex(evp, EVP_sha256(), nullptr) != 1) {
      ThrowError(ErrorKind::kMachine, "libcrypto offers no SHA-256 on this machine");
    }
  }
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;

void Sha256::Add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) != 1) {
    ThrowError(ErrorKind::kMachine, "libcrypto failed while hashing");
  }
}

void Sha256::Add(std::string_view text) { Add(std::as_bytes(std::span(text))); }

void Sha256::Add(uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(number & 0xffU);
    number >>= 8U;
  }
  Add(bytes);
}

void Sha256::AddSized(std::string_view text) {
  Add(static_cast<uint64_t>(text.size()));
  Add(text);
}

Sha256::Digest Sha256::Finish() {
  Digest digest;
  if (EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(digest.data()), nullptr) !=
      1) {
    ThrowError(ErrorKind::kMachine, "libcrypto failed while hashing");
  }
  return digest;
}

Sha256::Digest Sha256Of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Finish();
}

Sha256::Digest Sha256Of(std::string_view text) { return Sha256Of(std::as_bytes(std::span(text))); }

std::string ToHex(const Sha256::Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::byte byte : digest) {
    hex += kDigits[std::to_integer<size_t>(byte >> 4U)];
    hex += kDigits[std::to_integer<size_t>(byte & std::byte{15})];
  }
  return hex;
}

Sha256::Digest FromHex(std::string_view hex) {
  Sha256::Digest digest{};
  AAH_CHECK(hex.size() == 2 * digest.size(), "a hash is 64 hexadecimal digits, not '", hex, "'");
  for (size_t i = 0; i < hex.size(); ++i) {
    const char digit = hex[i];
    const bool decimal = digit >= '0' && digit <= '9';
    AAH_CHECK(decimal || (digit >= 'a' && digit <= 'f'), "a hash is 64 hexadecimal digits, not '",
              hex, "'");
    const int value = decimal ? digit - '0' : digit - 'a' + 10;
    digest[i / 2] = digest[i / 2] << 4U | static_cast<std::byte>(value);
  }
  return digest;
}

}  // namespace aah
