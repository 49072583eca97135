// Accuracy and speed of math functions in generated code: the largest error in ULP, and nanoseconds per element.
//
// float32 runs over every 257th of the 2^32 arguments (all of them with `--stride 1`) against libm in double precision;
// float64 over a million arguments against libm in long double (128 bits on aarch64, 80 on x86_64). A denormal result
// counts as zero. `--markdown` prints the table of docs/cpu_math.md.
#include <capibara/primitive.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/execution/compiler.h"
#include "lax/math/denormals.h"
#include "lax/math/math.h"

namespace capibara {
namespace {

using cpu::Address;
using cpu::Builder;

using Real = long double;
using Truth32 = double (*)(double);
using Truth64 = Real (*)(Real);

struct Row {
  const char* name;
  Truth32 single;
  Truth64 twice;          // null: nothing more precise than double
  double low, high;       // range for the speed
  bool absolute = false;  // results below 1 count in ULP of 1
};

double exp2_of(double x) { return std::exp2(x); }
double logistic_of(double x) { return 1 / (1 + std::exp(-x)); }
Real logistic_of(Real x) { return 1 / (1 + std::exp(-x)); }
double rsqrt_of(double x) { return 1 / std::sqrt(x); }
Real rsqrt_of(Real x) { return 1 / std::sqrt(x); }

// Each function in both precisions.
#define CAPIBARA_BOTH(name) [](double x) -> double { return std::name(x); }, [](Real x) -> Real { return std::name(x); }
const Row rows[] = {
    {"exp", CAPIBARA_BOTH(exp), -10, 10},
    {"exp2", exp2_of, [](Real x) -> Real { return std::exp2(x); }, -10, 10},
    {"expm1", CAPIBARA_BOTH(expm1), -2, 2},
    {"log", CAPIBARA_BOTH(log), 0.1, 10},
    {"log1p", CAPIBARA_BOTH(log1p), -0.9, 10},
    {"tanh", CAPIBARA_BOTH(tanh), -4, 4},
    {"logistic", logistic_of, logistic_of, -4, 4},
    {"sin", CAPIBARA_BOTH(sin), -10, 10},
    {"cos", CAPIBARA_BOTH(cos), -10, 10},
    {"tan", CAPIBARA_BOTH(tan), -10, 10},
    {"asin", CAPIBARA_BOTH(asin), -1, 1},
    {"acos", CAPIBARA_BOTH(acos), -1, 1},
    {"atan", CAPIBARA_BOTH(atan), -10, 10},
    {"sinh", CAPIBARA_BOTH(sinh), -4, 4},
    {"cosh", CAPIBARA_BOTH(cosh), -4, 4},
    {"asinh", CAPIBARA_BOTH(asinh), -4, 4},
    {"acosh", CAPIBARA_BOTH(acosh), 1, 10},
    {"atanh", CAPIBARA_BOTH(atanh), -0.9, 0.9},
    {"sqrt", CAPIBARA_BOTH(sqrt), 0, 10},
    {"rsqrt", rsqrt_of, rsqrt_of, 0.1, 10},
    {"cbrt", CAPIBARA_BOTH(cbrt), -10, 10},
    {"erf", CAPIBARA_BOTH(erf), -3, 3},
    {"erfc", CAPIBARA_BOTH(erfc), -3, 3},
    {"erf_inv", [](double x) { return math::erf_inv(x); }, nullptr, -0.9, 0.9},
    {"lgamma", CAPIBARA_BOTH(lgamma), 0.1, 10, true},
    {"digamma", [](double x) { return math::digamma(x); }, nullptr, 0.1, 10, true},
    {"bessel_i0e", [](double x) { return math::bessel_i0e(x); }, nullptr, -10, 10},
    {"bessel_i1e", [](double x) { return math::bessel_i1e(x); }, nullptr, -10, 10},
};

struct BinaryRow {
  const char* name;
  double (*single)(double, double);
  Real (*twice)(Real, Real);
  double low, high, other_low, other_high;
};
const BinaryRow binary_rows[] = {
    {"pow", [](double x, double y) { return std::pow(x, y); }, [](Real x, Real y) { return std::pow(x, y); }, 0, 3, -20,
     20},
    {"atan2", [](double x, double y) { return std::atan2(x, y); }, [](Real x, Real y) { return std::atan2(x, y); }, -3,
     3, -3, 3},
    {"rem", [](double x, double y) { return std::fmod(x, y); }, [](Real x, Real y) { return std::fmod(x, y); }, -30, 30,
     0.5, 3},
    {"div", [](double x, double y) { return x / y; }, [](Real x, Real y) { return x / y; }, -3, 3, 0.5, 3},
};

// output[i] = f(inputs[i]...), compiled for arrays of one size.
class Compiled {
 public:
  Compiled(const char* name, DType dtype, int operands, int64_t count) {
    cpu::Module module;
    module.functions.resize(1);
    module.functions[0].name = name;
    Builder builder(module.functions[0]);
    const int64_t bytes = count * storage_size(dtype);
    const std::vector<DType> types(static_cast<std::size_t>(operands), dtype);
    for (int i = 0; i < operands; ++i) builder.parameter(bytes, false);
    const int32_t target = builder.parameter(bytes, true);
    Builder::LoopOptions options;
    options.lanes = true;
    builder.loop(count, options, {}, [&](cpu::Value index, std::span<const cpu::Value>) {
      std::vector<cpu::Element> elements;
      for (int i = 0; i < operands; ++i) elements.push_back(load_element(builder, dtype, Address{i, 0, {{index, 1}}}));
      const cpu::Element result = apply_elementwise(builder, primitive(name), {}, types, dtype, elements);
      store_element(builder, dtype, Address{target, 0, {{index, 1}}}, result);
      return std::vector<cpu::Value>{};
    });
    code_ = cpu::compiler().link(cpu::compiler().object_code(module, cpu::compiler().host()));
  }

  template <class T>
  void operator()(const T* x, const T* y, T* out) const {
    const math::FlushDenormals flush;
    const int32_t go_on = 0;
    const cpu::Runtime runtime{&go_on, nullptr, nullptr, nullptr};
    std::vector<std::byte*> buffers;
    for (const T* operand : {x, y}) {
      if (operand) buffers.push_back(reinterpret_cast<std::byte*>(const_cast<T*>(operand)));
    }
    buffers.push_back(reinterpret_cast<std::byte*>(out));
    code_->driver()(&runtime, buffers.data(), 0, 0);
  }

 private:
  std::unique_ptr<cpu::Code> code_;
};

template <class T>
struct Worst {
  double ulp = 0;
  T x = 0, y = 0;
  int64_t wrong = 0;  // NaN, infinities or zeros where they do not belong

  void add(T got, Real want, T at, T beside, bool absolute) {
    const T smallest = std::numeric_limits<T>::min(), largest = std::numeric_limits<T>::max();
    const T nearest = static_cast<T>(want);
    double here = 0;
    if (std::isnan(got) || std::isnan(nearest)) {
      wrong += std::isnan(got) != std::isnan(nearest);
    } else if (std::isinf(got) || std::isinf(nearest)) {
      // A result just below overflow may be rounded up to infinity.
      wrong += got != nearest && !(std::fabs(got) >= largest / 2 && std::fabs(want) >= largest / 2);
    } else if (std::fabs(want) < smallest) {
      wrong += std::fabs(got) > smallest;
    } else {
      int exponent = 0;
      std::frexp(absolute && std::fabs(nearest) < 1 ? T(1) : nearest, &exponent);
      here = static_cast<double>(
          std::fabs(std::ldexp(static_cast<Real>(got) - want, std::numeric_limits<T>::digits - exponent)));
    }
    if (here > ulp) ulp = here, x = at, y = beside;
  }
};

// libm and the reference backend handle denormal arguments; generated code treats them as zero.
template <class T>
bool is_denormal(T x) {
  return x != 0 && std::fabs(x) < std::numeric_limits<T>::min();
}

constexpr int64_t block = 1 << 14;

Worst<float> survey_single(const Row& row, uint64_t stride) {
  const Compiled compiled(row.name, DType::float32, 1, block);
  std::vector<float> in(block), out(block);
  Worst<float> worst;
  uint64_t word = 0;
  while (word < (uint64_t{1} << 32)) {
    int64_t count = 0;
    for (; count < block && word < (uint64_t{1} << 32); word += stride) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(word));
      if (!is_denormal(x)) in[static_cast<std::size_t>(count++)] = x;
    }
    compiled(in.data(), static_cast<const float*>(nullptr), out.data());
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      worst.add(out[at], row.single(in[at]), in[at], 0, row.absolute);
    }
  }
  return worst;
}

// A third of the arguments are random bits, a third are in the usual range, a third near multiples of pi/2.
double any_double(std::mt19937_64& random, int64_t i, double low, double high) {
  const uint64_t word = random();
  const double unit = static_cast<double>(word >> 11) * 0x1p-53;
  double x = low + (high - low) * unit;
  if (i % 3 == 0) x = std::bit_cast<double>(word);
  if (i % 3 == 1) x = std::round(unit * 1e6) * 1.5707963267948966 * (1 + static_cast<double>(word % 3) * 0x1p-52);
  return is_denormal(x) ? 0 : x;
}

Worst<double> survey_double(const Row& row, int64_t arguments) {
  const Compiled compiled(row.name, DType::float64, 1, block);
  std::vector<double> in(block), out(block);
  std::mt19937_64 random(1);
  Worst<double> worst;
  for (int64_t done = 0; done < arguments; done += block) {
    for (int64_t i = 0; i < block; ++i) in[static_cast<std::size_t>(i)] = any_double(random, i, row.low, row.high);
    compiled(in.data(), static_cast<const double*>(nullptr), out.data());
    for (std::size_t i = 0; i < in.size(); ++i) worst.add(out[i], row.twice(in[i]), in[i], 0, row.absolute);
  }
  return worst;
}

template <class T, class Truth>
Worst<T> survey_binary(const BinaryRow& row, DType dtype, Truth truth, int64_t arguments) {
  const Compiled compiled(row.name, dtype, 2, block);
  std::vector<T> x(block), y(block), out(block);
  std::mt19937_64 random(1);
  const auto draw = [&](int64_t i, double low, double high) {
    const uint64_t word = random();
    T value = static_cast<T>(low + (high - low) * static_cast<double>(word >> 11) * 0x1p-53);
    if (i % 4 == 0) std::memcpy(&value, &word, sizeof value);
    return is_denormal(value) ? T(0) : value;
  };
  Worst<T> worst;
  for (int64_t done = 0; done < arguments; done += block) {
    for (int64_t i = 0; i < block; ++i) {
      x[static_cast<std::size_t>(i)] = draw(i, row.low, row.high);
      y[static_cast<std::size_t>(i)] = draw(i / 2, row.other_low, row.other_high);
    }
    compiled(x.data(), y.data(), out.data());
    for (std::size_t i = 0; i < x.size(); ++i) worst.add(out[i], truth(x[i], y[i]), x[i], y[i], false);
  }
  return worst;
}

template <class Run>
double nanoseconds(int64_t elements, Run&& run) {
  double best = 1e30;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(elements));
  }
  return best;
}

template <class T>
double speed(const char* name, DType dtype, int operands, double low, double high, double other_low,
             double other_high) {
  const Compiled compiled(name, dtype, operands, block);
  std::vector<T> x(block), y(block), out(block);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> first(low, high), second(other_low, other_high);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<T>(first(random)), y[i] = static_cast<T>(second(random));
  return nanoseconds(block, [&] { compiled(x.data(), operands == 2 ? y.data() : nullptr, out.data()); });
}

struct Columns {
  bool markdown;

  void head() const {
    if (markdown)
      std::puts("| function | float32 ULP | at | ns | float64 ULP | at | ns |\n|---|---|---|---|---|---|---|");
    else
      std::printf("%-12s %9s %16s %6s %9s %24s %6s\n", "function", "f32 ULP", "at", "ns", "f64 ULP", "at", "ns");
  }
  template <class T>
  std::string at(const Worst<T>& worst, bool binary) const {
    char text[96];
    std::snprintf(text, sizeof text, binary ? "%.9g, %.9g" : "%.9g", static_cast<double>(worst.x),
                  static_cast<double>(worst.y));
    return worst.ulp == 0 ? "" : text;
  }
  template <class T>
  std::string error(const Worst<T>& worst) const {
    char text[64];
    std::snprintf(text, sizeof text, worst.ulp < 100 ? "%.2f" : "%.3g", worst.ulp);
    return worst.wrong ? std::string(text) + " (" + std::to_string(worst.wrong) + " wrong)" : text;
  }
  void row(const char* name, const Worst<float>& single, double single_time, const Worst<double>* twice,
           double double_time, bool binary, bool absolute) const {
    const std::string label = absolute ? std::string(name) + " (of max(1, result))" : name;
    std::printf(markdown ? "| %s | %s | %s | %.2f | %s | %s | %.2f |\n" : "%-12s %9s %16s %6.2f %9s %24s %6.2f\n",
                markdown ? label.c_str() : name, error(single).c_str(), at(single, binary).c_str(), single_time,
                twice ? error(*twice).c_str() : "", twice ? at(*twice, binary).c_str() : "", double_time);
    std::fflush(stdout);
  }
};

void measure(uint64_t stride, bool markdown) {
  const Columns columns{markdown};
  columns.head();
  for (const Row& row : rows) {
    const Worst<float> single = survey_single(row, stride);
    Worst<double> twice;
    if (row.twice) twice = survey_double(row, 1 << 20);
    columns.row(row.name, single, speed<float>(row.name, DType::float32, 1, row.low, row.high, 0, 1),
                row.twice ? &twice : nullptr, speed<double>(row.name, DType::float64, 1, row.low, row.high, 0, 1),
                false, row.absolute);
  }
  for (const BinaryRow& row : binary_rows) {
    const auto single = survey_binary<float>(row, DType::float32, row.single, 1 << 23);
    const auto twice = survey_binary<double>(row, DType::float64, row.twice, 1 << 20);
    columns.row(row.name, single,
                speed<float>(row.name, DType::float32, 2, row.low, row.high, row.other_low, row.other_high), &twice,
                speed<double>(row.name, DType::float64, 2, row.low, row.high, row.other_low, row.other_high), true,
                false);
  }
}

}  // namespace
}  // namespace capibara

int main(int argc, char** argv) {
  uint64_t stride = 257;
  bool markdown = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--markdown") == 0)
      markdown = true;
    else if (std::strcmp(argv[i], "--stride") == 0 && i + 1 < argc)
      stride = std::strtoull(argv[++i], nullptr, 10);
    else {
      std::fputs("cpu_math [--stride N] [--markdown]\n", stderr);
      return 2;
    }
  }
  if (stride == 0) return 2;
  capibara::measure(stride, markdown);
}
