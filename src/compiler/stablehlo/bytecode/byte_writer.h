// Writes the numbers of MLIR's bytecode.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace capibara::stablehlo {

class ByteWriter {
 public:
  const std::string& bytes() const { return bytes_; }

  void byte(std::uint8_t value) { bytes_ += static_cast<char>(value); }
  void append(std::string_view bytes) { bytes_ += bytes; }

  // Seven bits of the value for each byte; the zero bits at the end of the first one count those that follow.
  void number(std::uint64_t value) {
    const int bits = 64 - std::countl_zero(value | 1);
    const int more = (bits - 1) / 7;
    if (more >= 8) {
      byte(0);
      return little(value, 8);
    }
    little((value << 1 | 1) << more, more + 1);
  }
  void signed_number(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void flagged(std::uint64_t value, bool flag) { number(value << 1 | (flag ? 1 : 0)); }

  void section(std::uint8_t id, std::string_view content) {
    byte(id);
    number(content.size());
    append(content);
  }

 private:
  void little(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  std::string bytes_;
};

}  // namespace capibara::stablehlo
