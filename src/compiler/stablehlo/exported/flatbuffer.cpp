// Reads and writes flatbuffers: offsets point forward to values, and back to the table of a table's slots.
#include "compiler/stablehlo/exported/flatbuffer.h"

#include <capibara/error.h>

namespace capibara::stablehlo {

namespace {

[[noreturn]] void bad_flatbuffer(std::size_t at, const std::string& message) {
  throw ParseError(concat("exported program: byte ", at, ": ", message));
}

}  // namespace

void FlatBudget::spend(std::size_t bytes) {
  if (bytes > left_) throw ParseError("exported program: its parts refer to one another too often");
  left_ -= bytes;
}

const char* FlatTable::checked(std::size_t at, std::size_t size) const {
  if (at > file_.size() || size > file_.size() - at) bad_flatbuffer(at, "names bytes beyond the end");
  return file_.data() + at;
}

FlatTable::FlatTable(std::string_view file, FlatBudget& budget, std::size_t at)
    : file_(file), budget_(&budget), at_(at) {
  budget.spend(8);
  const std::int64_t slots = static_cast<std::int64_t>(at) - load<std::int32_t>(at);
  if (slots < 0) bad_flatbuffer(at, "names slots before the beginning");
  slots_at_ = static_cast<std::size_t>(slots);
  const auto size = load<std::uint16_t>(slots_at_);
  if (size < 4) bad_flatbuffer(slots_at_, "has too few slots");
  checked(slots_at_, size);
  slots_end_ = slots_at_ + size;
}

FlatTable FlatTable::root(std::string_view file, FlatBudget& budget) {
  std::uint32_t at = 0;
  if (file.size() < 8) bad_flatbuffer(0, "is too short");
  std::memcpy(&at, file.data(), sizeof at);
  return FlatTable(file, budget, at);
}

std::size_t FlatTable::field(std::size_t slot) const {
  const std::size_t entry = slots_at_ + 4 + 2 * slot;
  if (entry + 2 > slots_end_) return 0;
  const auto offset = load<std::uint16_t>(entry);
  return offset == 0 ? 0 : at_ + offset;
}

std::size_t FlatTable::target(std::size_t at) const { return at + load<std::uint32_t>(at); }

FlatTable::Elements FlatTable::elements(std::size_t slot, std::size_t width) const {
  const std::size_t at = field(slot);
  if (at == 0) return {};
  const std::size_t begin = target(at);
  const std::size_t count = load<std::uint32_t>(begin);
  if (count > file_.size() / width) bad_flatbuffer(begin, "claims more entries than it has bytes");
  checked(begin + 4, count * width);
  budget_->spend(count * width);
  return {begin + 4, count};
}

std::string FlatTable::text_at(std::size_t at) const {
  const std::size_t size = load<std::uint32_t>(at);
  const char* begin = checked(at + 4, size);
  budget_->spend(size + 8);
  return std::string(begin, size);
}

std::string FlatTable::text(std::size_t slot) const {
  const std::size_t at = field(slot);
  return at ? text_at(target(at)) : std::string();
}

std::optional<FlatTable> FlatTable::table(std::size_t slot) const {
  const std::size_t at = field(slot);
  if (at == 0) return std::nullopt;
  return FlatTable(file_, *budget_, target(at));
}

std::vector<FlatTable> FlatTable::tables(std::size_t slot) const {
  const Elements list = elements(slot, 4);
  std::vector<FlatTable> out;
  for (std::size_t i = 0; i < list.count; ++i) out.push_back(FlatTable(file_, *budget_, target(list.begin + 4 * i)));
  return out;
}

std::vector<std::string> FlatTable::texts(std::size_t slot) const {
  const Elements list = elements(slot, 4);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list.count; ++i) out.push_back(text_at(target(list.begin + 4 * i)));
  return out;
}

// ---- writing -----------------------------------------------------------------------------------------------------

FlatValue FlatValue::texts(const std::vector<std::string>& values) {
  std::vector<FlatValue> list;
  for (const std::string& value : values) list.push_back(text(value));
  return FlatValue(std::move(list));
}

FlatValue FlatValue::numbers(const std::vector<std::int64_t>& values, std::size_t width) {
  std::string bytes;
  for (const std::int64_t value : values) {
    for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
  }
  return FlatValue(Numbers{std::move(bytes), width});
}

// Values come after references to them, so a reference is patched once its value is written.
class FlatWriter {
 public:
  std::string write(const FlatFields& root) {
    put(0, 4);
    const std::size_t at = write_table(root);
    patch(0, at, 4);
    return std::move(bytes_);
  }

 private:
  void put(std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void patch(std::size_t at, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) bytes_[at + i] = static_cast<char>(value >> (8 * i));
  }
  void align(std::size_t width) { bytes_.append((width - bytes_.size() % width) % width, '\0'); }

  static std::size_t width_of(const FlatValue& value) {
    const auto* number = std::get_if<FlatValue::Number>(&value.content_);
    return number ? number->width : 4;
  }

  // The slots, then the offset back to them and the values, widest first.
  std::size_t write_table(const FlatFields& fields) {
    const std::size_t slots = fields.empty() ? 0 : fields.rbegin()->first + 1;
    align(4);
    const std::size_t slots_at = bytes_.size();
    bytes_.append(4 + 2 * slots, '\0');
    align(4);
    const std::size_t at = bytes_.size();
    put(at - slots_at, 4);
    std::map<std::size_t, std::size_t> places;
    for (const std::size_t width : {4, 2, 1}) {
      for (const auto& [slot, value] : fields) {
        if (width_of(value) != width) continue;
        places[slot] = bytes_.size();
        const auto* number = std::get_if<FlatValue::Number>(&value.content_);
        put(number ? number->value : 0, width);
      }
    }
    patch(slots_at, 4 + 2 * slots, 2);
    patch(slots_at + 2, bytes_.size() - at, 2);
    for (const auto& [slot, place] : places) patch(slots_at + 4 + 2 * slot, place - at, 2);
    for (const auto& [slot, value] : fields) {
      if (!std::holds_alternative<FlatValue::Number>(value.content_)) refer(places[slot], value);
    }
    return at;
  }

  void refer(std::size_t place, const FlatValue& value) {
    const std::size_t at = write_value(value);
    patch(place, at - place, 4);
  }

  std::size_t write_value(const FlatValue& value) {
    if (const auto* fields = std::get_if<std::shared_ptr<const FlatFields>>(&value.content_))
      return write_table(**fields);
    align(4);
    const std::size_t at = bytes_.size();
    if (const auto* text = std::get_if<std::string>(&value.content_)) {
      put(text->size(), 4);
      bytes_ += *text;
      bytes_ += '\0';
    } else if (const auto* numbers = std::get_if<FlatValue::Numbers>(&value.content_)) {
      put(numbers->bytes.size() / numbers->width, 4);
      bytes_ += numbers->bytes;
    } else {
      const auto& list = std::get<std::vector<FlatValue>>(value.content_);
      put(list.size(), 4);
      bytes_.append(4 * list.size(), '\0');
      for (std::size_t i = 0; i < list.size(); ++i) refer(at + 4 + 4 * i, list[i]);
    }
    return at;
  }

  std::string bytes_;
};

std::string write_flatbuffer(const FlatFields& root) { return FlatWriter().write(root); }

}  // namespace capibara::stablehlo
