// Attributes: the static parameters of an equation, immutable and comparable.
#pragma once

#include <capibara/array.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capibara {

class Program;
class Attr;

using Ints = std::vector<int64_t>;

// The dimensions that dot_general contracts, and its batch dimensions.
struct DotDimensionNumbers {
  Ints lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
  friend bool operator==(const DotDimensionNumbers&, const DotDimensionNumbers&) = default;
};

// Dimension order of a convolution's operands: positions of [batch, feature, space...].
struct ConvDimensionNumbers {
  Ints lhs_spec, rhs_spec, out_spec;  // rhs: [out feature, in feature, space...]
  friend bool operator==(const ConvDimensionNumbers&, const ConvDimensionNumbers&) = default;
};

struct GatherDimensionNumbers {
  Ints offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims;
  friend bool operator==(const GatherDimensionNumbers&, const GatherDimensionNumbers&) = default;
};

struct ScatterDimensionNumbers {
  Ints update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, operand_batching_dims,
      scatter_indices_batching_dims;
  friend bool operator==(const ScatterDimensionNumbers&, const ScatterDimensionNumbers&) = default;
};

// An opaque object, compared by identity, that a program carries: custom rules, callbacks, foreign objects.
class Opaque {
 public:
  virtual ~Opaque() = default;
  virtual bool equals(const Opaque& other) const { return this == &other; }
  virtual std::size_t hash() const { return std::hash<const void*>{}(this); }
  virtual std::string print() const = 0;
};

// One attribute value. None is JAX's None.
class Attr {
 public:
  struct None {
    friend bool operator==(None, None) = default;
  };
  using List = std::vector<Attr>;
  using Value =
      std::variant<None, bool, int64_t, double, std::string, DType, Ints, DotDimensionNumbers, ConvDimensionNumbers,
                   GatherDimensionNumbers, ScatterDimensionNumbers, ArrayType, Array, std::shared_ptr<const Program>,
                   std::shared_ptr<const Opaque>, std::shared_ptr<const List>>;

  Attr() : value_(None{}) {}
  template <class T>
  requires std::is_arithmetic_v<T> Attr(T value) {
    if constexpr (std::is_same_v<T, bool>)
      value_ = value;
    else if constexpr (std::is_floating_point_v<T>)
      value_ = static_cast<double>(value);
    else
      value_ = static_cast<int64_t>(value);
  }
  Attr(const char* text) : value_(std::string(text)) {}
  Attr(std::string text) : value_(std::move(text)) {}
  Attr(DType dtype) : value_(dtype) {}
  Attr(Ints ints) : value_(std::move(ints)) {}
  Attr(DotDimensionNumbers d) : value_(std::move(d)) {}
  Attr(ConvDimensionNumbers d) : value_(std::move(d)) {}
  Attr(GatherDimensionNumbers d) : value_(std::move(d)) {}
  Attr(ScatterDimensionNumbers d) : value_(std::move(d)) {}
  Attr(ArrayType type) : value_(std::move(type)) {}
  Attr(Array constant) : value_(std::move(constant)) {}
  Attr(const Program& program);
  Attr(std::shared_ptr<const Opaque> opaque) : value_(std::move(opaque)) {}
  Attr(List list) : value_(std::make_shared<const List>(std::move(list))) {}
  static Attr programs(std::span<const Program> programs);
  static Attr bools(const std::vector<bool>& values);  // a list of bool

  const Value& value() const { return value_; }
  bool is_none() const { return std::holds_alternative<None>(value_); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }

  friend bool operator==(const Attr& a, const Attr& b);
  std::size_t hash() const;

 private:
  Value value_;
};

// The named attributes of one equation, sorted by name; copies share storage.
class Attrs {
 public:
  using Entry = std::pair<std::string, Attr>;

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries);
  explicit Attrs(std::vector<Entry> entries);

  bool empty() const { return !entries_ || entries_->empty(); }
  std::span<const Entry> entries() const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Attr* find(std::string_view name) const;

  // Each raises InternalError if the attribute is absent or of another type.
  const Attr& operator[](std::string_view name) const;
  bool boolean(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const Ints& ints(std::string_view name) const;
  const Program& program(std::string_view name) const;
  std::vector<Program> programs(std::string_view name) const;
  std::vector<bool> booleans(std::string_view name) const;
  const Attr::List& list(std::string_view name) const;
  template <class T>
  const T& get(std::string_view name) const {
    const T* value = (*this)[name].template get_if<T>();
    if (!value) throw_wrong_type(name);
    return *value;
  }
  template <class T>
  std::shared_ptr<const T> opaque(std::string_view name) const {
    return std::dynamic_pointer_cast<const T>(get<std::shared_ptr<const Opaque>>(name));
  }

  // Copies with one attribute set or removed.
  Attrs with(std::string name, Attr value) const;
  Attrs without(std::string_view name) const;

  friend bool operator==(const Attrs& a, const Attrs& b);
  std::size_t hash() const;

 private:
  [[noreturn]] static void throw_wrong_type(std::string_view name);
  std::shared_ptr<const std::vector<Entry>> entries_;
};

}  // namespace capibara
