// ZIP archives (PKWARE's APPNOTE.TXT) and the compression of their files (RFC 1951). Nothing that an archive says is
// trusted before it is checked against the bytes that there are.
#include "io/files/zip.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <capibara/error.h>

namespace capibara {

namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void refuse_archive(const std::string& where, const std::string& message) {
  throw ValueError(concat(where, ": ", message));
}

uint64_t little_endian(Bytes bytes, std::size_t at, std::size_t count) {
  uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

uint32_t crc32(Bytes bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> rows{};
    for (uint32_t i = 0; i < rows.size(); ++i) {
      uint32_t row = i;
      for (int bit = 0; bit < 8; ++bit) row = (row >> 1) ^ ((row & 1) != 0 ? 0xEDB88320U : 0U);
      rows[i] = row;
    }
    return rows;
  }();
  uint32_t sum = 0xFFFFFFFFU;
  for (const std::byte byte : bytes) sum = (sum >> 8) ^ table[(sum ^ std::to_integer<uint32_t>(byte)) & 0xFFU];
  return ~sum;
}

// ---- inflating ---------------------------------------------------------------------------------------------------

constexpr int longest_code = 15;

// The bits of compressed data, lowest bit of a byte first.
class Bits {
 public:
  Bits(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  // The next bits without consuming them; zeros after the end.
  uint32_t peek(int count) {
    while (held_ < count) {
      const uint64_t next = at_ < bytes_.size() ? std::to_integer<uint64_t>(bytes_[at_]) : 0;
      buffer_ |= next << held_;
      held_ += 8;
      ++at_;
    }
    return static_cast<uint32_t>(buffer_ & ((uint64_t{1} << count) - 1));
  }
  void skip(int count) {
    buffer_ >>= count;
    held_ -= count;
    if (at_ > bytes_.size() && (at_ - bytes_.size()) * 8 > static_cast<std::size_t>(held_))
      refuse_archive(where_, "the compressed data ends too early");
  }
  uint32_t take(int count) {
    const uint32_t bits = peek(count);
    skip(count);
    return bits;
  }
  // Whole bytes, from the next boundary of one.
  Bytes take_bytes(std::size_t count) {
    skip(held_ % 8);
    const std::size_t begin = at_ - static_cast<std::size_t>(held_) / 8;
    if (begin > bytes_.size() || count > bytes_.size() - begin)
      refuse_archive(where_, "the compressed data ends too early");
    at_ = begin + count;
    buffer_ = 0;
    held_ = 0;
    return bytes_.subspan(begin, count);
  }

 private:
  Bytes bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
  uint64_t buffer_ = 0;
  int held_ = 0;
};

// A prefix code as a table over the next bits of the data.
class PrefixCode {
 public:
  PrefixCode(std::span<const uint8_t> lengths, const std::string& where) : where_(where) {
    std::array<uint32_t, longest_code + 1> count{};
    for (const uint8_t length : lengths) ++count[length];
    count[0] = 0;
    for (int length = 1; length <= longest_code; ++length) {
      if (count[static_cast<std::size_t>(length)] != 0) width_ = length;
    }
    std::array<uint32_t, longest_code + 2> next{};  // the first code of each length
    for (std::size_t length = 1; length <= longest_code; ++length) {
      next[length + 1] = (next[length] + count[length]) << 1;
      if (next[length] + count[length] > (1U << length))
        refuse_archive(where_, "the compressed data has a code of too many words");
    }
    table_.resize(std::size_t{1} << width_);
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      const uint8_t length = lengths[symbol];
      if (length == 0) continue;
      const uint32_t code = next[length]++;
      uint32_t reversed = 0;
      for (int bit = 0; bit < length; ++bit) reversed |= ((code >> bit) & 1U) << (length - 1 - bit);
      for (std::size_t at = reversed; at < table_.size(); at += std::size_t{1} << length)
        table_[at] = {static_cast<uint16_t>(symbol), length};
    }
  }

  uint32_t take(Bits& bits) const {
    const Row row = table_[bits.peek(width_)];
    if (row.length == 0) refuse_archive(where_, "the compressed data holds a word that its code lacks");
    bits.skip(row.length);
    return row.symbol;
  }

 private:
  struct Row {
    uint16_t symbol = 0;
    uint8_t length = 0;
  };
  const std::string& where_;
  int width_ = 0;
  std::vector<Row> table_;
};

struct Step {
  uint16_t base;
  uint8_t extra;  // bits that are added
};
constexpr Step lengths_of_copies[] = {{3, 0},   {4, 0},   {5, 0},   {6, 0},   {7, 0},  {8, 0},  {9, 0},  {10, 0},
                                      {11, 1},  {13, 1},  {15, 1},  {17, 1},  {19, 2}, {23, 2}, {27, 2}, {31, 2},
                                      {35, 3},  {43, 3},  {51, 3},  {59, 3},  {67, 4}, {83, 4}, {99, 4}, {115, 4},
                                      {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
constexpr Step distances_of_copies[] = {{1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
                                        {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
                                        {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
                                        {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
                                        {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};

struct Codes {
  PrefixCode literals, distances;
};

Codes fixed_codes(const std::string& where) {
  std::array<uint8_t, 288> literals{};
  for (std::size_t i = 0; i < literals.size(); ++i) literals[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  std::array<uint8_t, 30> distances{};
  distances.fill(5);
  return {PrefixCode(literals, where), PrefixCode(distances, where)};
}

// The codes at the head of a block, whose lengths are themselves written in a code.
Codes read_codes(Bits& bits, const std::string& where) {
  constexpr std::size_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const std::size_t literals = bits.take(5) + 257, distances = bits.take(5) + 1, given = bits.take(4) + 4;
  std::array<uint8_t, 19> own{};
  for (std::size_t i = 0; i < given; ++i) own[order[i]] = static_cast<uint8_t>(bits.take(3));
  const PrefixCode code(own, where);
  std::vector<uint8_t> lengths;
  while (lengths.size() < literals + distances) {
    const uint32_t symbol = code.take(bits);
    if (symbol < 16) {
      lengths.push_back(static_cast<uint8_t>(symbol));
      continue;
    }
    if (symbol == 16 && lengths.empty()) refuse_archive(where, "the compressed data repeats a length before the first");
    const uint8_t repeated = symbol == 16 ? lengths.back() : 0;
    const std::size_t times = symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    lengths.insert(lengths.end(), times, repeated);
  }
  if (lengths.size() != literals + distances)
    refuse_archive(where, "the compressed data has too many lengths of codes");
  const std::span<const uint8_t> all(lengths);
  return {PrefixCode(all.first(literals), where), PrefixCode(all.subspan(literals), where)};
}

std::vector<std::byte> inflate(Bytes stored, uint64_t size, const std::string& where) {
  std::vector<std::byte> out;
  out.reserve(static_cast<std::size_t>(std::min<uint64_t>(size, 4 * stored.size())));
  auto require = [&](std::size_t more) {
    if (more > size - out.size())
      refuse_archive(where, concat("the compressed data has more than the stated ", size, " bytes"));
  };
  Bits bits(stored, where);
  for (bool last = false; !last;) {
    last = bits.take(1) != 0;
    const uint32_t kind = bits.take(2);
    if (kind == 3) refuse_archive(where, "the compressed data has a block of unknown kind");
    if (kind == 0) {
      const Bytes lengths = bits.take_bytes(4);
      const uint64_t length = little_endian(lengths, 0, 2);
      if ((length ^ little_endian(lengths, 2, 2)) != 0xFFFF)
        refuse_archive(where, "the compressed data has a damaged length");
      require(length);
      const Bytes block = bits.take_bytes(length);
      out.insert(out.end(), block.begin(), block.end());
      continue;
    }
    const Codes codes = kind == 1 ? fixed_codes(where) : read_codes(bits, where);
    for (uint32_t symbol = codes.literals.take(bits); symbol != 256; symbol = codes.literals.take(bits)) {
      if (symbol < 256) {
        require(1);
        out.push_back(static_cast<std::byte>(symbol));
        continue;
      }
      if (symbol - 257 >= std::size(lengths_of_copies))
        refuse_archive(where, "the compressed data has an unknown length");
      const Step length_step = lengths_of_copies[symbol - 257];
      const std::size_t length = length_step.base + bits.take(length_step.extra);
      const uint32_t far = codes.distances.take(bits);
      if (far >= std::size(distances_of_copies)) refuse_archive(where, "the compressed data has an unknown distance");
      const std::size_t distance = distances_of_copies[far].base + bits.take(distances_of_copies[far].extra);
      if (distance > out.size()) refuse_archive(where, "the compressed data copies what is before its beginning");
      require(length);
      for (std::size_t i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
    }
  }
  return out;
}

// ---- archives ----------------------------------------------------------------------------------------------------

constexpr uint32_t local_mark = 0x04034b50, entry_mark = 0x02014b50, end_mark = 0x06054b50;
constexpr std::size_t local_size = 30, entry_size = 46, end_size = 22, longest_comment = 65535;
constexpr uint64_t in_extra_field = 0xFFFFFFFF;  // the number has 64 bits and follows in an extra field
constexpr uint64_t largest_inflation = 1032;     // of a byte: a copy of 258 bytes takes at least two bits

// The 64-bit numbers of an entry, in place of those that are marked.
void read_wide(Bytes extra, std::span<uint64_t* const> numbers, const std::string& where) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const uint64_t kind = little_endian(extra, at, 2), length = little_endian(extra, at + 2, 2);
    at += 4;
    if (length > extra.size() - at) break;
    if (kind == 1) {
      std::size_t next = at;
      for (uint64_t* number : numbers) {
        if (*number != in_extra_field) continue;
        if (next + 8 > at + length) refuse_archive(where, "an entry lacks its 64-bit numbers");
        *number = little_endian(extra, next, 8);
        next += 8;
      }
      return;
    }
    at += static_cast<std::size_t>(length);
  }
}

std::optional<std::size_t> end_record(Bytes archive) {
  if (archive.size() < end_size) return std::nullopt;
  const std::size_t last = archive.size() - end_size, first = last - std::min(last, longest_comment);
  for (std::size_t at = last + 1; at-- > first;) {
    if (little_endian(archive, at, 4) == end_mark && little_endian(archive, at + 20, 2) == last - at) return at;
  }
  return std::nullopt;
}

void append(std::string& to, uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xFF);
}

}  // namespace

std::vector<ZipEntry> zip_entries(std::span<const std::byte> archive, const std::string& where) {
  const std::optional<std::size_t> end = end_record(archive);
  if (!end) refuse_archive(where, "is not a complete ZIP archive: the list of files at its end is missing");
  const uint64_t count = little_endian(archive, *end + 10, 2);
  uint64_t at = little_endian(archive, *end + 16, 4);
  if (count == 0xFFFF || at == in_extra_field)
    refuse_archive(where, "archives of 65535 files or 4 GiB are not supported");
  std::vector<ZipEntry> entries;
  uint64_t covered = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (at > *end || *end - at < entry_size || little_endian(archive, at, 4) != entry_mark)
      refuse_archive(where, concat("the list of files is damaged at entry ", i, " of ", count));
    const uint64_t flags = little_endian(archive, at + 8, 2), method = little_endian(archive, at + 10, 2);
    const std::size_t name = little_endian(archive, at + 28, 2), extra = little_endian(archive, at + 30, 2),
                      comment = little_endian(archive, at + 32, 2);
    uint64_t packed = little_endian(archive, at + 20, 4), size = little_endian(archive, at + 24, 4),
             begin = little_endian(archive, at + 42, 4);
    if (*end - at - entry_size < name + extra + comment)
      refuse_archive(where, concat("entry ", i, " of ", count, " is cut off"));
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(archive.data() + at + entry_size), name);
    const std::string here = concat(where, ": '", entry.name, "'");
    uint64_t* const numbers[] = {&size, &packed, &begin};
    read_wide(archive.subspan(at + entry_size + name, extra), numbers, here);
    if ((flags & 1) != 0) refuse_archive(here, "is encrypted");
    if (method != 0 && method != 8) {
      refuse_archive(
          here, concat("is compressed by method ", method, "; numpy.savez and numpy.savez_compressed write 0 and 8"));
    }
    if (begin > archive.size() || archive.size() - begin < local_size || little_endian(archive, begin, 4) != local_mark)
      refuse_archive(here, concat("does not begin at byte ", begin, " as the list of files says"));
    const uint64_t head = local_size + little_endian(archive, begin + 26, 2) + little_endian(archive, begin + 28, 2);
    if (head > archive.size() - begin || packed > archive.size() - begin - head) {
      refuse_archive(here,
                     concat("would have ", packed, " bytes at byte ", begin, " of an archive of ", archive.size()));
    }
    if (std::string_view(entry.name) !=
        std::string_view(reinterpret_cast<const char*>(archive.data()) + begin + local_size,
                         std::min<uint64_t>(head - local_size, name)))
      refuse_archive(here, "has another name where it begins");
    covered += head + packed;
    if (covered > archive.size()) refuse_archive(here, "overlaps another file of the archive");
    entry.stored = archive.subspan(begin + head, packed);
    entry.deflated = method == 8;
    if (entry.deflated ? size / largest_inflation > packed : size != packed)
      refuse_archive(here, concat("cannot have ", size, " bytes, of which ", packed, " are stored"));
    entry.size = size;
    entry.checksum = static_cast<uint32_t>(little_endian(archive, at + 16, 4));
    entries.push_back(std::move(entry));
    at += entry_size + name + extra + comment;
  }
  if (at != *end) refuse_archive(where, concat("the list of files goes on after entry ", count, " of ", count));
  return entries;
}

std::vector<std::byte> zip_contents(const ZipEntry& entry, const std::string& where) {
  std::vector<std::byte> bytes = entry.deflated ? inflate(entry.stored, entry.size, where)
                                                : std::vector<std::byte>(entry.stored.begin(), entry.stored.end());
  if (bytes.size() != entry.size) refuse_archive(where, concat("has ", bytes.size(), " bytes, expected ", entry.size));
  if (crc32(bytes) != entry.checksum) refuse_archive(where, "is damaged: its checksum does not fit its bytes");
  return bytes;
}

std::string zip_archive(const std::vector<std::pair<std::string, std::string>>& files, const std::string& where) {
  std::string archive, list;
  for (const auto& [name, bytes] : files) {
    if (archive.size() + bytes.size() >= in_extra_field || name.size() > 0xFFFF)
      refuse_archive(where, concat("'", name, "' would end beyond 4 GiB, where .npz files end; use save_safetensors"));
    // Version 2.0, names in UTF-8, stored, on 1 January 1980.
    std::string facts;
    for (const uint64_t number : {20U, 0x0800U, 0U, 0U, 0x21U}) append(facts, number, 2);
    append(facts, crc32(std::as_bytes(std::span(bytes))), 4);
    append(facts, bytes.size(), 4);
    append(facts, bytes.size(), 4);
    append(facts, name.size(), 2);
    append(facts, 0, 2);  // no extra field
    append(list, entry_mark, 4);
    append(list, 20, 2);
    list += facts;
    append(list, 0, 6);  // no comment, first disk
    append(list, 0, 4);  // no attributes
    append(list, archive.size(), 4);
    list += name;
    append(archive, local_mark, 4);
    archive += facts;
    archive += name;
    archive += bytes;
  }
  if (files.size() >= 0xFFFF || archive.size() + list.size() >= in_extra_field)
    refuse_archive(where, "the archive would have 65535 files or 4 GiB; use save_safetensors");
  const std::size_t begin = archive.size();
  archive += list;
  append(archive, end_mark, 4);
  append(archive, 0, 4);
  append(archive, files.size(), 2);
  append(archive, files.size(), 2);
  append(archive, list.size(), 4);
  append(archive, begin, 4);
  append(archive, 0, 2);
  return archive;
}

}  // namespace capibara
