// CRC-32C by the processor's instruction, or by tables if it has none.
//
// One stream is bound by the latency of the instruction (three cycles for eight bytes): three blocks advance side by
// side, and their checksums are joined by shifting the earlier ones over the length of the later ones, which is linear
// over GF(2).
#include "io/files/crc32c.h"

#include <array>
#include <cstring>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace capibara {

namespace {

constexpr uint32_t polynomial = 0x82F63B78;  // bits reversed

using CrcTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t slice = 1; slice < 8; ++slice) {
    for (std::size_t i = 0; i < 256; ++i) {
      const uint32_t before = tables[slice - 1][i];
      tables[slice][i] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}
constexpr CrcTables crc_tables = make_crc_tables();

uint64_t eight_bytes(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint32_t crc_by_tables(const std::byte* at, std::size_t size, uint32_t crc) {
  for (; size >= 8; at += 8, size -= 8) {
    const uint64_t word = eight_bytes(at) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= crc_tables[7 - i][word >> (8 * i) & 0xFF];
  }
  for (; size > 0; ++at, --size) crc = crc >> 8 ^ crc_tables[0][(crc ^ static_cast<uint32_t>(*at)) & 0xFF];
  return crc;
}

constexpr std::size_t crc_block = 4096;  // bytes of each of the three streams

// crc_shift[i][b]: the checksum whose i-th byte is b, after another crc_block zero bytes.
using ShiftTables = std::array<std::array<uint32_t, 256>, 4>;
ShiftTables make_shift_tables() {
  ShiftTables tables{};
  for (std::size_t i = 0; i < 4; ++i) {
    for (uint32_t b = 0; b < 256; ++b) {
      uint32_t crc = b << (8 * i);
      for (std::size_t zero = 0; zero < crc_block; ++zero) crc = crc >> 8 ^ crc_tables[0][crc & 0xFF];
      tables[i][b] = crc;
    }
  }
  return tables;
}

uint32_t over_one_block(const ShiftTables& tables, uint32_t crc) {
  return tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24];
}

#if defined(__x86_64__)
#define CAPIBARA_CRC_TARGET __attribute__((target("sse4.2")))
#define CAPIBARA_CRC_WORD(crc, word) static_cast<uint32_t>(__builtin_ia32_crc32di(crc, word))
bool has_crc_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__aarch64__)
#if defined(__clang__)
#define CAPIBARA_CRC_TARGET __attribute__((target("crc")))
#define CAPIBARA_CRC_WORD(crc, word) __builtin_arm_crc32cd(crc, word)
#else
#define CAPIBARA_CRC_TARGET __attribute__((target("+crc")))
#define CAPIBARA_CRC_WORD(crc, word) __builtin_aarch64_crc32cx(crc, word)
#endif
bool has_crc_instruction() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif

#if defined(CAPIBARA_CRC_TARGET)
CAPIBARA_CRC_TARGET uint32_t crc_by_instruction(const std::byte* at, std::size_t size, uint32_t crc) {
  static const ShiftTables tables = make_shift_tables();
  for (; size >= 3 * crc_block; at += 3 * crc_block, size -= 3 * crc_block) {
    uint32_t second = 0, third = 0;
    for (std::size_t i = 0; i < crc_block; i += 8) {
      crc = CAPIBARA_CRC_WORD(crc, eight_bytes(at + i));
      second = CAPIBARA_CRC_WORD(second, eight_bytes(at + crc_block + i));
      third = CAPIBARA_CRC_WORD(third, eight_bytes(at + 2 * crc_block + i));
    }
    crc = over_one_block(tables, over_one_block(tables, crc) ^ second) ^ third;
  }
  for (; size >= 8; at += 8, size -= 8) crc = CAPIBARA_CRC_WORD(crc, eight_bytes(at));
  return crc_by_tables(at, size, crc);
}
#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(CAPIBARA_CRC_TARGET)
  static const bool has_instruction = has_crc_instruction();
  if (has_instruction) return ~crc_by_instruction(bytes.data(), bytes.size(), ~before);
#endif
  return ~crc_by_tables(bytes.data(), bytes.size(), ~before);
}

}  // namespace capibara
