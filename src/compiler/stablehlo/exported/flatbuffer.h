// Flatbuffers without a schema compiler: tables whose slots are read within bounds, and trees of values to write.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace capibara::stablehlo {

// Limits what a file may expand to: parts may be shared or contain themselves, and are copied when they are read.
class FlatBudget {
 public:
  explicit FlatBudget(std::size_t file_size) : left_(16 * file_size + 65536) {}
  void spend(std::size_t bytes);  // ParseError if the budget is exhausted

 private:
  std::size_t left_;
};

class FlatTable {
 public:
  static FlatTable root(std::string_view file, FlatBudget& budget);

  bool has(std::size_t slot) const { return field(slot) != 0; }
  template <class T>
  T number(std::size_t slot, T otherwise) const {
    const std::size_t at = field(slot);
    return at ? load<T>(at) : otherwise;
  }
  std::string text(std::size_t slot) const;
  std::optional<FlatTable> table(std::size_t slot) const;
  std::vector<FlatTable> tables(std::size_t slot) const;
  std::vector<std::string> texts(std::size_t slot) const;
  template <class T>
  std::vector<T> numbers(std::size_t slot) const {
    const Elements list = elements(slot, sizeof(T));
    std::vector<T> out(list.count);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = load<T>(list.begin + i * sizeof(T));
    return out;
  }

 private:
  struct Elements {
    std::size_t begin = 0, count = 0;
  };

  FlatTable(std::string_view file, FlatBudget& budget, std::size_t at);

  template <class T>
  T load(std::size_t at) const {
    T value;
    std::memcpy(&value, checked(at, sizeof(T)), sizeof(T));
    return value;
  }
  const char* checked(std::size_t at, std::size_t size) const;
  std::size_t field(std::size_t slot) const;  // offset of its value; 0: absent
  std::size_t target(std::size_t at) const;   // of the offset stored there
  Elements elements(std::size_t slot, std::size_t width) const;
  std::string text_at(std::size_t at) const;

  std::string_view file_;
  FlatBudget* budget_;
  std::size_t at_ = 0, slots_at_ = 0, slots_end_ = 0;
};

// ---- writing -----------------------------------------------------------------------------------------------------

class FlatValue;
// Indexed by slot.
using FlatFields = std::map<std::size_t, FlatValue>;

// A number of 1 to 4 bytes, a text, a table, or a vector of one of these.
class FlatValue {
 public:
  struct Number {
    std::uint32_t value;
    std::size_t width;
  };
  struct Numbers {
    std::string bytes;
    std::size_t width;
  };

  static FlatValue byte(std::int64_t value) { return FlatValue(Number{static_cast<std::uint32_t>(value), 1}); }
  static FlatValue half(std::int64_t value) { return FlatValue(Number{static_cast<std::uint32_t>(value), 2}); }
  static FlatValue word(std::int64_t value) { return FlatValue(Number{static_cast<std::uint32_t>(value), 4}); }
  static FlatValue text(std::string value) { return FlatValue(std::move(value)); }
  static FlatValue table(FlatFields fields) { return FlatValue(std::make_shared<const FlatFields>(std::move(fields))); }
  static FlatValue list(std::vector<FlatValue> values) { return FlatValue(std::move(values)); }
  static FlatValue texts(const std::vector<std::string>& values);
  static FlatValue bytes(std::string values) { return FlatValue(Numbers{std::move(values), 1}); }
  static FlatValue halves(const std::vector<std::int64_t>& values) { return numbers(values, 2); }
  static FlatValue words(const std::vector<std::int64_t>& values) { return numbers(values, 4); }
  static FlatValue small(const std::vector<std::int64_t>& values) { return numbers(values, 1); }

 private:
  friend class FlatWriter;
  using Content = std::variant<Number, Numbers, std::string, std::shared_ptr<const FlatFields>, std::vector<FlatValue>>;
  explicit FlatValue(Content content) : content_(std::move(content)) {}
  static FlatValue numbers(const std::vector<std::int64_t>& values, std::size_t width);

  Content content_;
};

std::string write_flatbuffer(const FlatFields& root);

}  // namespace capibara::stablehlo
