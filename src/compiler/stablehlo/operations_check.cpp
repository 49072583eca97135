// The primitives behind the check and interpreter dialects: expectations and probes, with StableHLO's tolerances.
#include "compiler/stablehlo/operations_check.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include <capibara/error.h>

#include "compiler/stablehlo/operations.h"
#include "core/array/element.h"

namespace capibara::stablehlo {

namespace {

thread_local CheckLog* current_log = nullptr;

// ---- distances ---------------------------------------------------------------------------------------------------

uint64_t bits_of(DType dtype, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<std::size_t>(storage_size(dtype)));
  return bits;
}

// Distance in representable numbers. All subnormal numbers together count as one step: they round to zero or to the
// smallest normal number. Infinities are close only to themselves, NaNs to any NaN.
uint64_t ulp_distance(DType dtype, const std::byte* x, const std::byte* y) {
  const double first = load_as<double>(dtype, x, 0), second = load_as<double>(dtype, y, 0);
  if (std::isnan(first) && std::isnan(second)) return 0;
  const uint64_t first_bits = bits_of(dtype, x), second_bits = bits_of(dtype, y);
  if (first_bits == second_bits) return 0;
  if (!std::isfinite(first) || !std::isfinite(second)) return std::numeric_limits<uint64_t>::max();
  const DTypeRow& row = dtype_row(dtype);
  const uint64_t sign = uint64_t{1} << (bits(dtype) - 1);
  const uint64_t greatest_subnormal = (uint64_t{1} << row.mantissa_bits) - 1;
  auto steps = [&](uint64_t pattern) {
    const uint64_t magnitude = pattern & ~sign;
    if (magnitude > greatest_subnormal) return magnitude - greatest_subnormal;
    return uint64_t{2 * magnitude < greatest_subnormal ? 0U : 1U};
  };
  const uint64_t a = steps(first_bits), b = steps(second_bits);
  if (std::signbit(first) != std::signbit(second)) return a + b;
  return a > b ? a - b : b - a;
}

// True if equal, or both finite, of the same sign and at most `tolerance` apart.
bool almost_equal(double actual, double expected, double tolerance) {
  if (actual == expected) return true;
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (!std::isfinite(actual) || !std::isfinite(expected)) return false;
  if (std::signbit(actual) != std::signbit(expected)) return false;
  return std::fabs(actual - expected) <= tolerance;
}

struct Expectation {
  std::string kind, place;
  double tolerance;
  uint64_t min_ulp, max_ulp;

  explicit Expectation(const Attrs& attrs)
      : kind(attrs.text("kind")),
        place(attrs.text("place")),
        tolerance(attrs.real("tolerance")),
        min_ulp(static_cast<uint64_t>(attrs.integer("min_ulp"))),
        max_ulp(static_cast<uint64_t>(attrs.integer("max_ulp"))) {}

  // One element, or one part of a complex one.
  bool holds(DType dtype, const std::byte* actual, const std::byte* expected) const {
    if (!is_floating(dtype)) return bits_of(dtype, actual) == bits_of(dtype, expected);
    if (kind == "close") {
      const uint64_t distance = ulp_distance(dtype, actual, expected);
      return distance >= min_ulp && distance <= max_ulp;
    }
    const double a = load_as<double>(dtype, actual, 0), e = load_as<double>(dtype, expected, 0);
    return kind == "almost_eq" ? almost_equal(a, e, tolerance) : a == e || (std::isnan(a) && std::isnan(e));
  }

  // Compares both parts of a finite complex number relative to its magnitude: one part of a sum may cancel.
  bool shares_error(DType dtype, const std::byte* actual, const std::byte* expected) const {
    const bool almost = kind == "almost_eq";
    if (!almost && (kind != "close" || min_ulp != 0 || !current_log || !current_log->parts_share_error)) return false;
    const double real = load_as<double>(dtype, expected, 0), imaginary = load_as<double>(dtype, expected, 1);
    const double magnitude = std::hypot(real, imaginary);
    if (!std::isnormal(magnitude)) return false;
    const double allowed =
        almost ? tolerance : static_cast<double>(max_ulp) * std::ldexp(finfo(dtype).eps, std::ilogb(magnitude));
    return std::fabs(load_as<double>(dtype, actual, 0) - real) <= allowed &&
           std::fabs(load_as<double>(dtype, actual, 1) - imaginary) <= allowed;
  }
};

// ---- comparing ---------------------------------------------------------------------------------------------------

std::string printed_element(DType dtype, const std::byte* element) {
  ArrayType type;
  type.dtype = dtype;
  return NdArray::from_host(dtype, {}, element).to_string();
}

std::string index_text(int64_t flat, const Shape& shape) {
  std::string out;
  for (std::size_t i = shape.size(); i-- > 0;) {
    out = concat(flat % shape[i], out.empty() ? "" : ", ", out);
    flat /= shape[i];
  }
  return "[" + out + "]";
}

// Moves an element so far from the expected value that no result within the tolerance matches it.
void perturb(DType dtype, std::byte* element, double tolerance) {
  if (is_complex(dtype)) dtype = real_dtype(dtype);
  if (!is_floating(dtype)) {
    *element = is_bool(dtype) ? (*element == std::byte{0} ? std::byte{1} : std::byte{0}) : *element ^ std::byte{1};
    return;
  }
  const double value = load_as<double>(dtype, element, 0);
  double other = std::isfinite(value) ? (std::fabs(value) < 1 ? value + 2 : -value) : 1;
  if (std::fabs(other - value) <= 4 * tolerance) other = value + 8 * tolerance;
  store_as<double>(dtype, element, 0, other);
  if (load_as<double>(dtype, element, 0) == value) store_as<double>(dtype, element, 0, value * 4);  // no negatives
}

void report(const std::string& failure) {
  if (!current_log) throw RuntimeError(failure);
  current_log->failures.push_back(failure);
}

void compare(const Expectation& expectation, const NdArray& actual, const NdArray& given) {
  if (actual.shape() != given.shape() || actual.dtype() != given.dtype()) {
    report(concat(expectation.place, ": got ", to_string(actual.type()), ", expected ", to_string(given.type())));
    return;
  }
  if (actual.size() == 0) return;
  const DType dtype = given.dtype();
  const auto width = static_cast<std::size_t>(storage_size(dtype));
  std::vector<std::byte> expected(given.raw_data(), given.raw_data() + width * static_cast<std::size_t>(given.size()));
  if (current_log) {
    if (current_log->perturb && current_log->expectations == 0) perturb(dtype, expected.data(), expectation.tolerance);
    ++current_log->expectations;
  }
  const DType part = real_dtype(dtype);
  const std::size_t parts = is_complex(dtype) ? 2 : 1, part_width = width / parts;
  int64_t differing = 0, first = -1;
  for (int64_t i = 0; i < given.size(); ++i) {
    const std::size_t offset = static_cast<std::size_t>(i) * width;
    bool same = true;
    for (std::size_t p = 0; p < parts && same; ++p) {
      same = expectation.holds(part, actual.raw_data() + offset + p * part_width,
                               expected.data() + offset + p * part_width);
    }
    if (same || (parts == 2 && expectation.shares_error(part, actual.raw_data() + offset, expected.data() + offset)))
      continue;
    if (differing++ == 0) first = i;
  }
  if (differing == 0) return;
  const std::size_t offset = static_cast<std::size_t>(first) * width;
  std::string distance;
  if (expectation.kind == "close") {
    uint64_t most = 0;
    for (std::size_t p = 0; p < parts; ++p) {
      most = std::max(most, ulp_distance(part, actual.raw_data() + offset + p * part_width,
                                         expected.data() + offset + p * part_width));
    }
    if (most != std::numeric_limits<uint64_t>::max()) distance = concat(" (", most, " ULP)");
  }
  report(concat(expectation.place, " ", to_string(given.type()), ": ", differing, " of ", given.size(),
                " elements differ, first at ", index_text(first, given.shape()), ": got ",
                printed_element(dtype, actual.raw_data() + offset), ", expected ",
                printed_element(dtype, expected.data() + offset), distance));
}

Primitive make(const char* name, const char* doc, TypeRule type, EvaluateRule evaluate) {
  PrimitiveRecord record;
  record.name = name;
  record.doc = doc;
  record.type = std::move(type);
  record.evaluate = std::move(evaluate);
  record.stablehlo = "stablehlo.custom_call";
  record.differentiable = false;
  return make_primitive(std::move(record));
}

TypeResult no_results(std::span<const ArrayType>, const Attrs&) { return TypeResult(Types{}, Effects(Effects::io)); }

}  // namespace

CheckScope::CheckScope(CheckLog& log) : previous_(current_log) { current_log = &log; }
CheckScope::~CheckScope() { current_log = previous_; }

const Primitive& expect_primitive() {
  static const Primitive instance =
      make("expect", "Raises an error or logs it where two arrays differ by more than a tolerance.", no_results,
           [](std::span<const NdArray> inputs, const Attrs& attrs) -> Arrays {
             compare(Expectation(attrs), inputs[0], inputs[1]);
             return {};
           });
  return instance;
}

const Primitive& probe_primitive() {
  static const Primitive instance = make(
      "probe", "Its operand, recorded under an id.",
      [](std::span<const ArrayType> types, const Attrs&) {
        return TypeResult(Types(types.begin(), types.end()), Effects(Effects::io));
      },
      [](std::span<const NdArray> inputs, const Attrs& attrs) -> Arrays {
        if (current_log) current_log->probes[attrs.text("probe_id")].push_back(inputs[0]);
        return {inputs[0]};
      });
  return instance;
}

const Primitive& expect_probe_primitive() {
  static const Primitive instance = make("expect_probe", "Compares its operand with what a probe has recorded.",
                                         no_results, [](std::span<const NdArray> inputs, const Attrs& attrs) -> Arrays {
                                           Expectation expectation(attrs);
                                           if (!current_log) return {};
                                           const Arrays& recorded = current_log->probes[attrs.text("probe_id")];
                                           const auto iteration = static_cast<std::size_t>(attrs.integer("iter"));
                                           if (iteration >= recorded.size()) {
                                             report(concat(expectation.place, ": nothing was recorded under '",
                                                           attrs.text("probe_id"), "', iteration ", iteration));
                                           } else {
                                             compare(expectation, recorded[iteration], inputs[0]);
                                           }
                                           return {};
                                         });
  return instance;
}

}  // namespace capibara::stablehlo
