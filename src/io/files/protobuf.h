// The wire format of protocol buffers: fields written in sequence, and read from untrusted bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capibara {

// Appends fields to a text.
class ProtobufWriter {
 public:
  void integer(int field, uint64_t value) {  // int64, uint64, bool and enumerations
    key(field, 0);
    varint(value);
  }
  void real(int field, double value) {
    key(field, 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  }
  void text(int field, std::string_view value) {  // strings, bytes, and serialized messages
    key(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const ProtobufWriter& value) { text(field, value.bytes_); }
  void packed(int field, const std::vector<uint64_t>& values) {
    ProtobufWriter list;
    for (const uint64_t value : values) list.varint(value);
    message(field, list);
  }

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void key(int field, unsigned type) { varint(static_cast<uint64_t>(field) << 3 | type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// The fields of one message. `next` moves to the next field and returns whether there is one; after malformed bytes it
// returns false and `failed` is true. Every read is within the bytes.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) : bytes_(bytes) {}

  bool next() {
    if (failed_ || at_ == bytes_.size()) return false;
    return read_field(0);
  }
  bool failed() const { return failed_; }

  // True if the field is the given one, of the expected type; fields of another type count as unknown.
  bool is_integer(uint32_t field) const { return field_ == field && type_ == 0; }
  bool is_real(uint32_t field) const { return field_ == field && type_ == 1; }
  bool is_text(uint32_t field) const { return field_ == field && type_ == 2; }

  uint64_t integer() const { return number_; }
  int64_t signed_integer() const { return static_cast<int64_t>(number_); }
  double real() const { return std::bit_cast<double>(number_); }
  std::string_view text() const { return text_; }
  // The integers of a packed field; empty if its bytes end within one.
  std::optional<std::vector<uint64_t>> packed() const {
    ProtobufReader list(text_);
    std::vector<uint64_t> values;
    while (list.at_ < list.bytes_.size()) {
      if (!list.varint(values.emplace_back())) return std::nullopt;
    }
    return values;
  }

 private:
  static constexpr int max_groups = 100;

  bool fail() {
    failed_ = true;
    return false;
  }
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == bytes_.size()) return false;
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(uint64_t count, std::string_view& out) {
    if (count > bytes_.size() - at_) return false;
    out = bytes_.substr(at_, count);
    at_ += count;
    return true;
  }
  bool read_field(int depth) {
    uint64_t key = 0;
    if (!varint(key) || key >> 32 != 0 || key >> 3 == 0) return fail();
    field_ = static_cast<uint32_t>(key >> 3);
    type_ = static_cast<int>(key & 7);
    std::string_view raw;
    switch (type_) {
      case 0:
        return varint(number_) || fail();
      case 1:
        if (!take(8, raw)) return fail();
        std::memcpy(&number_, raw.data(), 8);
        return true;
      case 2:
        return (varint(number_) && take(number_, text_)) || fail();
      case 3:
        return skip_group(depth) || fail();
      case 5:
        return take(4, raw) || fail();
      default:
        return fail();
    }
  }
  // Skips the fields of a group up to its end: an old form that no message here has.
  bool skip_group(int depth) {
    const uint32_t group = field_;
    if (depth == max_groups) return false;
    while (at_ < bytes_.size()) {
      const std::size_t start = at_;
      uint64_t key = 0;
      if (!varint(key)) return false;
      if ((key & 7) == 4) {
        field_ = group;
        type_ = 3;
        return key >> 3 == group;
      }
      at_ = start;
      if (!read_field(depth + 1)) return false;
    }
    return false;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  uint32_t field_ = 0;
  int type_ = 0;
  uint64_t number_ = 0;
  std::string_view text_;
  bool failed_ = false;
};

}  // namespace capibara
