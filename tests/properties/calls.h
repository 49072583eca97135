// The cases of the property tests: every primitive of the catalog, at each dtype of its record, on each of its samples.
#pragma once

#include <capibara/config.h>
#include <capibara/primitive.h>

#include "core/array/element.h"
#include "program/ir/build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace capibara::properties {

// One call of a primitive.
struct Call {
  Primitive primitive;
  DType dtype;
  std::size_t number;  // index among the samples of this dtype
  Sample sample;
  FlatFunction body = {};  // a function that contains the primitive; empty: the primitive itself
  std::string name = {};   // of that function

  FlatFunction function() const {
    if (body) return body;
    return [*this](std::span<const Array> inputs) { return capibara::bind(primitive, inputs, sample.attrs); };
  }
  bool takes(bool (*accepts)(DType)) const {
    return std::any_of(sample.inputs.begin(), sample.inputs.end(),
                       [&](const ArrayType& t) { return accepts(t.dtype); });
  }
};

inline std::string print_attr(const Attr& attr) {
  struct Printer {
    std::string operator()(Attr::None) const { return "None"; }
    std::string operator()(bool value) const { return value ? "True" : "False"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return concat(value); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(DType dtype) const { return to_string(dtype); }
    std::string operator()(const Ints& ints) const {
      std::string text = "(";
      for (int64_t i : ints) text += std::to_string(i) + ",";
      return text + ")";
    }
    std::string all(std::initializer_list<const Ints*> lists) const {
      std::string text = "[";
      for (const Ints* ints : lists) text += (*this)(*ints);
      return text + "]";
    }
    std::string operator()(const DotDimensionNumbers& d) const {
      return all({&d.lhs_contracting, &d.rhs_contracting, &d.lhs_batch, &d.rhs_batch});
    }
    std::string operator()(const ConvDimensionNumbers& d) const { return all({&d.lhs_spec, &d.rhs_spec, &d.out_spec}); }
    std::string operator()(const GatherDimensionNumbers& d) const {
      return all({&d.offset_dims, &d.collapsed_slice_dims, &d.start_index_map, &d.operand_batching_dims,
                  &d.start_indices_batching_dims});
    }
    std::string operator()(const ScatterDimensionNumbers& d) const {
      return all({&d.update_window_dims, &d.inserted_window_dims, &d.scatter_dims_to_operand_dims,
                  &d.operand_batching_dims, &d.scatter_indices_batching_dims});
    }
    std::string operator()(const ArrayType& type) const { return to_string(type); }
    std::string operator()(const Array& array) const { return array.to_string(); }
    std::string operator()(const std::shared_ptr<const Program>& program) const { return program->to_string(); }
    std::string operator()(const std::shared_ptr<const Opaque>& opaque) const {
      return opaque ? opaque->print() : "null";
    }
    std::string operator()(const std::shared_ptr<const Attr::List>& list) const {
      std::string text = "(";
      for (const Attr& entry : *list) text += print_attr(entry) + ",";
      return text + ")";
    }
  };
  return std::visit(Printer{}, attr.value());
}

// The call in full, for messages.
inline std::string describe(const Call& call) {
  std::string text = call.primitive.name() + "[";
  for (const auto& [name, attr] : call.sample.attrs.entries()) text += " " + name + "=" + print_attr(attr);
  text += " ]" + (call.name.empty() ? "" : " " + call.name);
  for (const ArrayType& type : call.sample.inputs) text += " " + to_string(type);
  return text + concat(" (dtype ", to_string(call.dtype), ", sample ", call.number, ")");
}

inline bool is_wide(DType dtype) {
  return dtype == DType::int64 || dtype == DType::uint64 || dtype == DType::float64 || dtype == DType::complex128;
}

inline std::vector<DType> dtypes_of(const PrimitiveRecord& record) {
  if (!record.dtypes.empty()) return record.dtypes;
  return {DType::bool_,    DType::int8,    DType::int32,   DType::uint32,
          DType::bfloat16, DType::float32, DType::float64, DType::complex64};
}

std::vector<Call> composed_calls(const Primitive& primitive);  // see compositions_test.cpp

inline std::vector<Call> calls_of(const Primitive& primitive) {
  std::vector<Call> calls = composed_calls(primitive);
  // rng_uniform draws from a stateful generator: no two calls agree.
  if (!primitive->samples || primitive.is("rng_uniform")) return calls;
  for (DType dtype : dtypes_of(primitive.record())) {
    std::size_t number = 0;
    for (Sample& sample : primitive->samples(dtype)) calls.push_back({primitive, dtype, number++, std::move(sample)});
  }
  return calls;
}

// 64-bit numbers exist only with x64; other dtypes are tested with the default settings.
inline ConfigScope config_for(const Call& call) {
  Config settings = config();
  settings.enable_x64 = is_wide(call.dtype) || call.takes(is_wide);
  for (const auto& [name, attr] : call.sample.attrs.entries()) {
    if (const DType* dtype = attr.get_if<DType>()) settings.enable_x64 |= is_wide(*dtype);
  }
  return ConfigScope(settings);
}

// ---- values -----------------------------------------------------------------------------------------------------

// Hard points: ties, both zeros, NaN, infinities, the ends of the range. `gentle` leaves out the ends of the range.
enum class Points { plain, hard, gentle };

class Values {
 public:
  explicit Values(unsigned seed) : random_(seed) {}

  Array operand(const ArrayType& type, const Sample& sample, Points points = Points::plain) {
    if (is_key(type.dtype)) return key(type);
    std::vector<std::complex<double>> values(static_cast<std::size_t>(type.size()));
    for (auto& value : values) {
      value = part(type.dtype, sample, points);
      if (is_complex(type.dtype)) value = {value.real(), part(type.dtype, sample, points)};
    }
    return from(type, values);
  }
  Arrays operands(const Sample& sample, Points points = Points::plain) {
    Arrays inputs;
    for (const ArrayType& type : sample.inputs) inputs.push_back(operand(type, sample, points));
    return inputs;
  }
  // A direction: entries of magnitude about 1, away from zero.
  Array direction(const ArrayType& type) {
    std::uniform_real_distribution<double> size(0.25, 1.0);
    auto entry = [&] { return size(random_) * (random_() % 2 ? 1 : -1); };
    std::vector<std::complex<double>> values(static_cast<std::size_t>(type.size()));
    for (auto& value : values) value = {entry(), is_complex(type.dtype) ? entry() : 0.0};
    return from(type, values);
  }

  static Array from(const ArrayType& type, const std::vector<std::complex<double>>& values) {
    Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type.size() * storage_size(type.dtype)));
    if (is_complex(type.dtype)) {
      convert_elements(DType::complex128, values.data(), type.dtype, buffer.mutable_data(), type.size());
    } else {
      std::vector<double> reals;
      for (const auto& value : values) reals.push_back(value.real());
      convert_elements(DType::float64, reals.data(), type.dtype, buffer.mutable_data(), type.size());
    }
    return Array::from_buffer(type, std::move(buffer));
  }

 private:
  double part(DType dtype, const Sample& sample, Points points) {
    if (!is_inexact(dtype)) return integer(dtype, sample, points);
    if (points != Points::plain) {
      FloatInfo info = finfo(dtype);
      const double inf = std::numeric_limits<double>::infinity();
      const double list[] = {0.0,  -0.0,         1.0, 1.0,      -1.0,      0.5,      inf,
                             -inf, std::nan(""), 2.0, info.max, -info.max, info.tiny};
      return list[random_() % (std::size(list) - (points == Points::gentle ? 3 : 0))];
    }
    return std::uniform_real_distribution<double>(sample.low, sample.high)(random_);
  }
  double integer(DType dtype, const Sample& sample, Points points) {
    if (dtype == DType::bool_) return static_cast<double>(random_() % 2);
    if (dtype == DType::float0) return 0;
    IntInfo info = iinfo(dtype);
    double least = static_cast<double>(info.min), greatest = static_cast<double>(info.max);
    if (sample.integers_are_indices) {
      // Before the start, repeated, and past the end.
      int low = sample.low < 0 && is_signed(dtype) ? -2 : 0;
      return std::clamp<double>(std::uniform_int_distribution<int>(low, 5)(random_), least, greatest);
    }
    if (points != Points::plain) {
      // A double cannot represent the largest 64-bit integers; conversion saturates.
      const double list[] = {0, 1, 1, 2, least, greatest, is_signed(dtype) ? -1.0 : 3.0};
      return list[random_() % std::size(list)];
    }
    double low = std::max(std::floor(sample.low), least), high = std::min(std::floor(sample.high), greatest);
    return static_cast<double>(std::uniform_int_distribution<int64_t>(
        static_cast<int64_t>(low), static_cast<int64_t>(std::max(low, high)))(random_));
  }
  Array key(const ArrayType& type) {
    std::size_t bytes = static_cast<std::size_t>(type.size() * storage_size(type.dtype));
    Buffer buffer = Buffer::allocate(bytes);
    for (std::size_t i = 0; i < bytes; ++i) buffer.mutable_data()[i] = static_cast<std::byte>(random_());
    return Array::from_buffer(type, std::move(buffer));
  }

  std::mt19937 random_;
};

// Operands with requirements that a range of values cannot express.
inline Arrays prepared(const Call& call, Arrays inputs) {
  if (call.primitive.is("clamp") && is_floating(call.dtype)) {
    // The bounds must not cross.
    auto bound = [](const Array& x, double sign) {
      std::vector<std::complex<double>> values;
      for (double value : x.to_vector<double>()) values.push_back(sign * std::abs(value));
      return Values::from(x.type(), values);
    };
    inputs[0] = bound(inputs[0], -1);
    inputs[2] = bound(inputs[2], 1);
  }
  if (call.primitive.is("moe_dispatch") || call.primitive.is("moe_combine")) {
    // A permutation of the copies and its inverse: here the reversal, which is its own inverse.
    Array& order = inputs[inputs.size() - 2];
    std::vector<std::complex<double>> backwards;
    for (int64_t i = order.size(); i-- > 0;) backwards.push_back(static_cast<double>(i % order.shape(-1)));
    inputs.back() = order = Values::from(order.type(), backwards);
  }
  return inputs;
}

inline unsigned seed_of(const Call& call) {
  return static_cast<unsigned>(std::hash<std::string>{}(call.primitive.name()) * 31 +
                               static_cast<unsigned>(call.dtype) * 101 + call.number);
}

// ---- comparison -------------------------------------------------------------------------------------------------

inline bool same_bytes(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.size() * storage_size(a.dtype()))) == 0;
}

inline double precision(DType dtype) {
  if (!is_inexact(dtype)) return 0;
  return finfo(real_dtype(dtype)).eps;
}

// The distance from a number to the next one of its type.
inline double spacing(const FloatInfo& info, double value) {
  const double size = std::abs(value);
  if (size < info.tiny) return info.tiny * info.eps;
  return std::ldexp(info.eps, std::ilogb(size));
}

// The maximum difference of two results of one operation. Up to two units are units of the value itself, which was
// rounded once. More are units of the largest magnitude involved, at least one: sums and series. Numbers of 16 bits
// and fewer are computed in float32 and rounded once: two units, plus the error of float32.
inline double allowed_difference(const FloatInfo& info, bool small, double units, double size) {
  constexpr double single = std::numeric_limits<float>::epsilon();
  if (small) return 2 * spacing(info, size) + units * single * std::max(size, 1.0);
  return units <= 2 ? units * spacing(info, size) : units * info.eps * std::max(size, 1.0);
}

// True for operations whose elements are single, correctly rounded arithmetic operations.
inline bool rounds_once(const Call& call) {
  static const std::string_view names[] = {
      "add", "add_any", "sub", "mul", "div", "sqrt", "square", "convert_element_type", "reduce_precision"};
  const bool complex = call.takes([](DType dtype) { return is_complex(dtype); });
  return !complex && !call.body &&
         std::find(std::begin(names), std::end(names), call.primitive.name()) != std::end(names);
}

// Empty if two arrays agree: exactly for integers, within allowed_difference for inexact types; NaN equals NaN.
inline std::string difference(const Array& got, const Array& want, double units) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return concat("got ", to_string(got.type()), ", want ", to_string(want.type()));
  }
  if (same_bytes(got, want)) return "";
  DType dtype = got.dtype();
  if (!is_inexact(dtype)) return concat("got ", got.repr(), ", want ", want.repr());
  std::size_t parts = is_complex(dtype) ? 2 : 1;
  std::size_t count = static_cast<std::size_t>(got.size()) * parts;
  std::vector<double> a(count), b(count);
  DType element = real_dtype(dtype);
  convert_elements(element, got.raw_data(), DType::float64, a.data(), static_cast<int64_t>(count));
  convert_elements(element, want.raw_data(), DType::float64, b.data(), static_cast<int64_t>(count));
  FloatInfo info = finfo(element);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    // Parts of one complex number share an error.
    double size = std::abs(b[i]);
    if (parts == 2) size = std::hypot(b[i - i % 2], b[i - i % 2 + 1]);
    if (!std::isfinite(size)) size = 1;
    const double allowed = allowed_difference(info, bits(element) <= 16, units, size);
    if (std::isfinite(a[i]) && std::isfinite(b[i]) && std::abs(a[i] - b[i]) <= allowed) continue;
    return concat("element ", i / parts, ": got ", a[i], ", want ", b[i], "\n    got ", got.repr(), "\n    want ",
                  want.repr());
  }
  return "";
}

inline std::string difference(const Arrays& got, const Arrays& want, double units) {
  if (got.size() != want.size()) return concat("got ", got.size(), " outputs, want ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::string text = difference(got[i], want[i], units);
    if (!text.empty()) return concat("output ", i, ": ", text);
  }
  return "";
}

// ---- results ----------------------------------------------------------------------------------------------------

// The result of a check for a call to which the property does not apply.
inline const std::string not_applicable = "not applicable";

// The outcome of one property over all calls; printed at the end of the run.
class Tally {
 public:
  static Tally& of(const std::string& property) {
    for (auto& tally : all()) {
      if (tally->property_ == property) return *tally;
    }
    all().push_back(std::make_unique<Tally>(property));
    return *all().back();
  }
  explicit Tally(std::string property) : property_(std::move(property)) {}

  void pass() { ++passed_; }
  void except() { ++excepted_; }
  void note(const std::string& line) { reasons_.push_back(line); }
  void fail(const Call& call, const std::string& text) {
    ++failed_;
    ADD_FAILURE() << property_ << ": " << describe(call) << "\n  " << text;
  }
  void lack(const Call& call, const std::string& text) {
    ++missing_;
    std::string line = call.primitive.name() + ": " + text;
    if (std::find(reasons_.begin(), reasons_.end(), line) == reasons_.end()) reasons_.push_back(line);
  }

  static void print_all() {
    for (const auto& tally : all()) {
      std::printf("%s: %lld calls passed, %lld failed, %lld excepted, %lld without a rule\n", tally->property_.c_str(),
                  tally->passed_, tally->failed_, tally->excepted_, tally->missing_);
      for (const std::string& reason : tally->reasons_) std::printf("    %s\n", reason.c_str());
    }
  }

 private:
  static std::vector<std::unique_ptr<Tally>>& all() {
    static std::vector<std::unique_ptr<Tally>> tallies;
    return tallies;
  }
  std::string property_;
  long long passed_ = 0, failed_ = 0, excepted_ = 0, missing_ = 0;
  std::vector<std::string> reasons_;
};

// ---- programs ---------------------------------------------------------------------------------------------------

struct Size {
  int equations = 0, loops = 0;
};
void measure(const Attr& attr, Size& size);
inline void measure(const Program& program, Size& size) {
  for (const Equation& equation : program.equations()) {
    ++size.equations;
    if (equation.primitive.is("scan") || equation.primitive.is("while")) ++size.loops;
    for (const auto& [name, attr] : equation.attrs.entries()) measure(attr, size);
  }
}
inline void measure(const Attr& attr, Size& size) {
  if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) measure(**program, size);
  if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
    for (const Attr& entry : **list) measure(entry, size);
  }
}
inline Size size_of(const Program& program) {
  Size size;
  measure(program, size);
  return size;
}

// The program without weak types, which StableHLO does not have.
Program strengthened(const Program& program);
inline Attr strengthened(const Attr& attr) {
  if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) return Attr(strengthened(**program));
  if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
    Attr::List copy;
    for (const Attr& entry : **list) copy.push_back(strengthened(entry));
    return Attr(std::move(copy));
  }
  return attr;
}
inline Array strengthened(const Array& array) {
  return array.weak_type() ? Array::from_buffer(array.type().strong(), array.buffer(), array.committed()) : array;
}
inline Program strengthened(const Program& program) {
  Program::Body body = program.body();
  for (ArrayType& type : body.var_types) type = type.strong();
  for (Array& array : body.constants) array = strengthened(array);
  for (Array& array : body.literals) array = strengthened(array);
  for (Equation& equation : body.equations) {
    std::vector<Attrs::Entry> entries;
    for (const auto& [name, attr] : equation.attrs.entries()) {
      entries.emplace_back(name, name == "weak_type" ? Attr(false) : strengthened(attr));
    }
    equation.attrs = Attrs(std::move(entries));
  }
  return Program(std::move(body));
}

}  // namespace capibara::properties
