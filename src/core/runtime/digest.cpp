// SHA-256 as FIPS 180-4 defines it, and HMAC on top of it as in RFC 2104.
#include "core/runtime/digest.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace capibara {

namespace {

constexpr std::size_t block_bytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  void add(std::string_view text) {
    total_ += text.size();
    while (!text.empty()) {
      if (filled_ == 0 && text.size() >= block_bytes) {
        mix(reinterpret_cast<const uint8_t*>(text.data()));
        text.remove_prefix(block_bytes);
        continue;
      }
      const std::size_t taken = std::min(text.size(), block_bytes - filled_);
      std::memcpy(block_ + filled_, text.data(), taken);
      filled_ += taken;
      text.remove_prefix(taken);
      if (filled_ == block_bytes) {
        mix(block_);
        filled_ = 0;
      }
    }
  }

  // A bit, zeros, and the length in bits with its high byte first fill the last block.
  Digest finish() {
    const uint64_t bits = total_ * 8;
    const std::size_t zeros = (2 * block_bytes - 9 - filled_) % block_bytes;
    std::string tail(1 + zeros, '\0');
    tail[0] = static_cast<char>(0x80);
    for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bits >> shift & 0xff);
    add(tail);
    Digest result;
    for (std::size_t i = 0; i < result.bytes.size(); ++i)
      result.bytes[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return result;
  }

 private:
  void mix(const uint8_t* block) {
    uint32_t words[64];
    for (int i = 0; i < 16; ++i) {
      words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
                 block[4 * i + 3];
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t near = words[i - 2], far = words[i - 15];
      words[i] = words[i - 16] + words[i - 7] + (std::rotr(far, 7) ^ std::rotr(far, 18) ^ far >> 3) +
                 (std::rotr(near, 17) ^ std::rotr(near, 19) ^ near >> 10);
    }
    uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3], e = state_[4], f = state_[5], g = state_[6],
             h = state_[7];
    for (int i = 0; i < 64; ++i) {
      const uint32_t first =
          h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + words[i];
      const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const uint32_t added[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state_[i] += added[i];
  }

  // The first 32 bits of the fractional parts of the square roots of the first eight primes.
  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t block_[block_bytes];
  std::size_t filled_ = 0;
  uint64_t total_ = 0;  // bytes
};

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

}  // namespace

std::string Digest::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes) text += {digits[byte >> 4], digits[byte & 15]};
  return text;
}

Digest digest(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.finish();
}

Digest keyed_digest(std::string_view secret, std::string_view text) {
  std::string key(secret);
  if (key.size() > block_bytes) key = text_of(digest(key));
  key.resize(block_bytes, '\0');
  std::string inner = key, outer = key;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  Sha256 first, second;
  first.add(inner);
  first.add(text);
  second.add(outer);
  second.add(text_of(first.finish()));
  return second.finish();
}

}  // namespace capibara
