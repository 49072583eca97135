// Every elementwise primitive in generated code against the reference kernel, on hard values of every dtype.
//
// Integers, booleans and operations that move or round bits agree bit for bit. Floats agree within the ULP that
// `limits` states, where a denormal result counts as zero: sums of products are fused in generated code, and sin, cos,
// tan, atan2, pow, cbrt, erf (float64) and log (float64) are polynomials of our own there, and libm in the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/execution/compiler.h"
#include "backends/cpu/generated_code.h"
#include "backends/reference/kernels.h"
#include "core/array/element.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {
namespace {

constexpr DType tested_dtypes[] = {DType::bool_,          DType::int2,          DType::int4,
                                   DType::int8,           DType::int16,         DType::int32,
                                   DType::int64,          DType::uint4,         DType::uint8,
                                   DType::uint16,         DType::uint32,        DType::uint64,
                                   DType::float4_e2m1fn,  DType::float6_e3m2fn, DType::float8_e3m4,
                                   DType::float8_e4m3fn,  DType::float8_e5m2,   DType::float8_e4m3fnuz,
                                   DType::float8_e8m0fnu, DType::bfloat16,      DType::float16,
                                   DType::float32,        DType::float64,       DType::complex64,
                                   DType::complex128,     DType::key_fry,       DType::key_rbg};

// Largest difference in ULP (float32, float64, complex64, complex128); absent: none. With `absolute`, results below 1
// count in ULP of 1: their formula cancels there.
struct Limit {
  double f32 = 0, f64 = 0, c64 = 0, c128 = 0;
  bool absolute = false, absolute_complex = false;
};
const std::map<std::string_view, Limit> limits = {
    {"pow", {1, 2, 16, 16}},       {"cbrt", {2, 4, 0, 0}},  // glibc's own error is 3
    {"log", {0, 2, 2, 2}},         {"log1p", {0, 2, 2, 2}},         {"sin", {2, 2, 4, 4}},
    {"cos", {2, 2, 4, 4}},         {"tan", {2, 3, 4, 4}},           {"asin", {2, 2, 2, 3}},
    {"acos", {2, 2, 2, 3}},        {"atan", {2, 2, 2, 3}},          {"atan2", {1, 2, 64, 64, false, true}},
    {"asinh", {0, 2, 2, 3}},       {"acosh", {0, 2, 2, 3}},         {"atanh", {0, 3, 4, 4}},
    {"sinh", {0, 0, 4, 4}},        {"cosh", {0, 0, 4, 4}},          {"tanh", {0, 0, 6, 4}},
    {"exp", {0, 0, 3, 3}},         {"exp2", {0, 0, 3, 3}},          {"expm1", {0, 0, 6, 4}},
    {"logistic", {0, 0, 4, 4}},    {"erf", {0, 3, 0, 0}},           {"erfc", {0, 1, 0, 0}},
    {"erf_inv", {0, 2, 0, 0}},     {"lgamma", {8, 8, 0, 0, true}},  {"digamma", {8, 8, 0, 0, true}},
    {"polygamma", {16, 64, 0, 0}}, {"zeta", {4, 8, 0, 0}},          {"sign", {0, 0, 4, 4}},
    {"abs", {0, 0, 2, 2}},         {"mul", {0, 0, 2, 2}},           {"div", {0, 0, 4, 4}},
    {"square", {0, 0, 2, 2}},      {"integer_pow", {0, 0, 12, 12}}, {"sqrt", {0, 0, 2, 2}},
    {"rsqrt", {0, 0, 3, 3}},
};

// Operations for which both backends treat a denormal operand the same, as a number or as zero.
const std::set<std::string_view> takes_denormals = {"neg",
                                                    "abs",
                                                    "floor",
                                                    "ceil",
                                                    "sign",
                                                    "add",
                                                    "sub",
                                                    "mul",
                                                    "max",
                                                    "min",
                                                    "clamp",
                                                    "nextafter",
                                                    "eq",
                                                    "ne",
                                                    "ge",
                                                    "gt",
                                                    "le",
                                                    "lt",
                                                    "eq_to",
                                                    "le_to",
                                                    "lt_to",
                                                    "is_finite",
                                                    "select_n",
                                                    "bitcast_convert_type",
                                                    "reduce_precision",
                                                    "real",
                                                    "imag",
                                                    "complex",
                                                    "conj",
                                                    "copy",
                                                    "sqrt",
                                                    "rsqrt",
                                                    "exp",
                                                    "log",
                                                    "tanh",
                                                    "logistic",
                                                    "square"};

// Functions that amplify an internal difference of one ULP without bound, far from the range of their samples.
bool is_unstable(const Primitive& primitive, DType dtype) {
  if (primitive.is("zeta") || primitive.is("polygamma")) return true;
  return is_complex(dtype) && (primitive.is("pow") || primitive.is("integer_pow") || primitive.is("atan2"));
}

std::vector<double> hard_values(DType dtype, bool denormals) {
  if (is_bool(dtype)) return {0, 1};
  if (is_integer(dtype)) return {0, 1, 2, 3, 5, 7, 8, 13, 31, 32, 33, 63, 64, 100, 127, -1, -2, -3, -7, -8, -100, -128};
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0.0,
                                -0.0,
                                1,
                                -1,
                                0.5,
                                -0.5,
                                2,
                                -2,
                                3,
                                -3,
                                1.5,
                                -1.5,
                                2.5,
                                -2.5,
                                inf,
                                -inf,
                                std::nan(""),
                                0.41,
                                -0.41,
                                7.25,
                                -7.25,
                                20,
                                -20,
                                88.5,
                                -88.5,
                                100.25,
                                1e-3,
                                -1e-3,
                                1e-10,
                                1e5,
                                -1e5,
                                1e10,
                                -1e10,
                                1.5707963267948966,
                                3.141592653589793};
  const FloatInfo info = finfo(dtype);
  // The smallest number of float8_e8m0fnu is a denormal of float32.
  if (dtype == DType::float8_e8m0fnu && !denormals) return values;
  for (double x : {info.max, info.min, info.tiny, info.eps, 1 + info.eps, 1 - info.epsneg, info.max / 2})
    values.push_back(x);
  if (denormals) {
    values.push_back(info.smallest_subnormal * 3);
    values.push_back(-info.tiny / 2);
  }
  return values;
}

constexpr int64_t count = 2000;

// Operands of the type: all pairs of hard values, then random ones.
struct Source {
  bool denormals, only_sample_range;
};
Buffer make_operand(DType dtype, std::size_t position, Source source, const Sample& sample, std::mt19937_64& random) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(count * storage_size(dtype)));
  if (is_key(dtype)) {
    auto* words = reinterpret_cast<std::uint32_t*>(buffer.mutable_data());
    for (int64_t i = 0; i < count * key_words(dtype); ++i) words[i] = static_cast<std::uint32_t>(random() % 3);
    return buffer;
  }
  const DType part = real_dtype(dtype);
  const std::vector<double> hard = hard_values(part, source.denormals);
  std::uniform_real_distribution<double> inside(sample.low, sample.high), exponent(-30, 30);
  const int64_t parts = is_complex(dtype) ? 2 : 1;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t p = 0; p < parts; ++p) {
      const auto size = static_cast<int64_t>(hard.size());
      const int64_t digit = static_cast<int64_t>(position) * parts + p;
      int64_t place = i;
      for (int64_t d = 0; d < digit; ++d) place = place / size + (d > 1 ? i * 7 : 0);
      double value = hard[static_cast<std::size_t>(place % size)];
      const int64_t draw = static_cast<int64_t>(random());
      if (source.only_sample_range)
        value = inside(random);
      else if (i >= 1200)
        value = i % 2 ? inside(random) : std::exp2(exponent(random)) * (draw & 1 ? 1 : -1);
      void* target = buffer.mutable_data() + i * storage_size(dtype) + p * storage_size(part);
      if (is_integer(part) && (i >= 1200 || value == 100)) {
        convert_elements(DType::int64, &draw, part, target, 1);
      } else if (is_integer(part)) {
        const auto whole = static_cast<int64_t>(value);
        convert_elements(DType::int64, &whole, part, target, 1);
      } else {
        convert_elements(DType::float64, &value, part, target, 1);
      }
    }
  }
  return buffer;
}

// One call to check: the primitive on whole arrays.
struct Case {
  Primitive primitive;
  Attrs attrs;
  Types inputs, outputs;
  Arrays operands;
  std::vector<Buffer> results;

  std::string describe() const {
    std::string text = primitive.name();
    for (const ArrayType& type : inputs) text += concat(" ", dtype_name(type.dtype));
    return concat(text, " -> ", dtype_name(outputs[0].dtype));
  }
};

// Keys have no samples: tests equality, copies and select.
std::vector<Case> key_cases(DType dtype) {
  std::vector<Case> cases;
  std::mt19937_64 random(1);
  const ArrayType keys = ArrayType{{count}, dtype, false, false, {}},
                  truth = ArrayType{{count}, DType::bool_, false, false, {}};
  const auto add = [&](const char* name, Types inputs, ArrayType output) {
    Case one{primitive(name), {}, std::move(inputs), {output}, {}, {}};
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      one.operands.push_back(
          Array::from_buffer(one.inputs[i], make_operand(one.inputs[i].dtype, i, {}, Sample{}, random)));
    }
    cases.push_back(std::move(one));
  };
  add("eq", {keys, keys}, truth);
  add("ne", {keys, keys}, truth);
  add("copy", {keys}, keys);
  add("select_n", {truth, keys, keys}, keys);
  return cases;
}

std::vector<Case> cases_of(DType dtype) {
  if (is_key(dtype)) return key_cases(dtype);
  std::vector<Case> cases;
  std::mt19937_64 random(1);
  for (const Primitive& primitive : catalog()) {
    const PrimitiveRecord& record = primitive.record();
    if (!record.samples) continue;
    // Narrow floats are computed in float32, in which the functions are tested.
    if (is_floating(dtype) && bits(dtype) < 16 && is_expensive(primitive) && !primitive.is("exp")) continue;
    if (!record.dtypes.empty() && std::find(record.dtypes.begin(), record.dtypes.end(), dtype) == record.dtypes.end()) {
      continue;
    }
    std::set<std::string> seen;
    std::vector<Sample> samples = record.samples(dtype);
    if (primitive.is("convert_element_type")) {
      samples.resize(1);
      const Sample first = samples[0];
      for (DType to : tested_dtypes) {
        if (is_key(to)) continue;
        samples.push_back(first);
        samples.back().attrs = Attrs{{"new_dtype", to}, {"weak_type", false}};
      }
    }
    for (const Sample& sample : samples) {
      if (sample.inputs.empty()) continue;
      Case one{primitive, sample.attrs, {}, {}, {}, {}};
      std::vector<DType> dtypes;
      for (const ArrayType& type : sample.inputs) {
        dtypes.push_back(type.dtype);
        one.inputs.push_back(type.with_shape({count}));
      }
      Types first;
      try {
        first = record.type(sample.inputs, sample.attrs).types;
        if (first.empty() || !is_elementwise(primitive, dtypes, first[0].dtype)) continue;
        one.outputs = record.type(one.inputs, sample.attrs).types;
      } catch (const std::exception&) {
        continue;
      }
      std::string key = one.describe() + std::to_string(sample.attrs.hash());
      if (!seen.insert(key).second) continue;
      const Source source{takes_denormals.count(primitive.name()) > 0, is_unstable(primitive, dtype)};
      for (std::size_t i = 0; i < one.inputs.size(); ++i) {
        one.operands.push_back(Array::from_buffer(one.inputs[i], make_operand(dtypes[i], i, source, sample, random)));
      }
      cases.push_back(std::move(one));
    }
  }
  return cases;
}

// Compiles all cases in one module, with a driver that calls one function for each.
void run_generated(std::vector<Case>& cases) {
  Module module;
  module.functions.resize(1 + cases.size());
  std::vector<std::byte*> buffers;
  module.functions[0].name = "driver";
  Builder driver(module.functions[0]);
  for (std::size_t c = 0; c < cases.size(); ++c) {
    Case& one = cases[c];
    Function& function = module.functions[c + 1];
    function.name = concat(one.primitive.name(), "_", c);
    Builder builder(function);
    std::vector<Argument> arguments;
    std::vector<DType> in_types;
    const auto give = [&](const std::byte* data, int64_t bytes, bool written) {
      buffers.push_back(const_cast<std::byte*>(data));
      arguments.push_back({Address{driver.parameter(bytes, written), 0, {}}});
      return builder.parameter(bytes, written);
    };
    std::vector<int32_t> sources, targets;
    for (const Array& x : one.operands) {
      in_types.push_back(x.dtype());
      sources.push_back(give(x.raw_data(), count * storage_size(x.dtype()), false));
    }
    for (const ArrayType& type : one.outputs) {
      one.results.push_back(Buffer::allocate(static_cast<std::size_t>(count * storage_size(type.dtype))));
      targets.push_back(give(one.results.back().mutable_data(), count * storage_size(type.dtype), true));
    }
    Builder::LoopOptions options;
    options.lanes = true;
    builder.loop(count, options, {}, [&](Value index, std::span<const Value>) {
      std::vector<Element> elements;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        elements.push_back(load_element(builder, in_types[i], Address{sources[i], 0, {{index, 1}}}));
      }
      for (std::size_t o = 0; o < targets.size(); ++o) {
        const DType out = one.outputs[o].dtype;
        const Element result =
            apply_elementwise(builder, one.primitive, one.attrs, in_types, out, elements, static_cast<int>(o));
        store_element(builder, out, Address{targets[o], 0, {{index, 1}}}, result);
      }
      return std::vector<Value>{};
    });
    driver.invoke(static_cast<int32_t>(c) + 1, std::move(arguments));
  }
  const std::unique_ptr<Code> code = compiler().link(compiler().object_code(module, process_target()));
  const int32_t go_on = 0;
  const Runtime runtime{&go_on, nullptr, nullptr, nullptr};
  const math::FlushDenormals flush;
  ASSERT_EQ(code->driver()(&runtime, buffers.data(), 0, 0), 0);
}

double unit_in_the_last_place(DType dtype, double size) {
  const FloatInfo info = finfo(dtype);
  if (!(size > info.tiny)) size = info.tiny;
  int exponent = 0;
  std::frexp(size, &exponent);
  return std::ldexp(1.0, exponent - 1 - info.mantissa_bits);
}

// The difference in ULP; 0 if both are NaN, or if both are denormal or zero.
double difference(DType dtype, double got, double want, double size) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) == std::isnan(want) ? 0 : 1e30;
  if (got == want) return 0;
  const double tiny = finfo(dtype).tiny;
  if (bits(dtype) >= 16 && std::fabs(got) <= tiny && std::fabs(want) <= tiny) return 0;
  if (std::isinf(got) || std::isinf(want))
    return std::fabs(got) >= finfo(dtype).max && std::fabs(want) >= finfo(dtype).max && got * want > 0 ? 1 : 1e30;
  return std::fabs(got - want) / unit_in_the_last_place(dtype, size);
}

struct Worst {
  double ulp = 0;
  int64_t at = 0;
};

Worst compare(const Case& one, std::size_t output, const Array& want) {
  const DType dtype = one.outputs[output].dtype, part = real_dtype(dtype);
  const std::byte* got = one.results[output].data();
  Worst worst;
  auto limit = limits.find(one.primitive.name());
  const bool absolute =
      limit != limits.end() && (is_complex(dtype) ? limit->second.absolute_complex : limit->second.absolute);
  for (int64_t i = 0; i < count; ++i) {
    double ulp = 0;
    if (is_inexact(dtype)) {
      const int64_t parts = is_complex(dtype) ? 2 : 1;
      double values[2][2] = {}, size = absolute ? 1 : 0;
      for (int64_t p = 0; p < parts; ++p) {
        values[0][p] = load_as<double>(part, got, i * parts + p);
        values[1][p] = load_as<double>(part, want.raw_data(), i * parts + p);
        if (std::isfinite(values[1][p])) size = std::max(size, std::fabs(values[1][p]));
      }
      for (int64_t p = 0; p < parts; ++p) ulp = std::max(ulp, difference(part, values[0][p], values[1][p], size));
    } else {
      const auto bytes = static_cast<std::size_t>(storage_size(dtype));
      const auto offset = static_cast<std::size_t>(i) * bytes;
      ulp = std::memcmp(got + offset, want.raw_data() + offset, bytes) == 0 ? 0 : 1e30;
    }
    if (ulp > worst.ulp) worst = {ulp, i};
  }
  return worst;
}

std::string element_text(const Array& x, int64_t i) {
  if (is_key(x.dtype())) return "key";
  if (is_integer(x.dtype())) return std::to_string(element_as_int64(x.dtype(), x.raw_data(), i));
  char text[80];
  if (is_complex(x.dtype())) {
    const auto z = load_as<std::complex<double>>(x.dtype(), x.raw_data(), i);
    std::snprintf(text, sizeof text, "(%.17g, %.17g)", z.real(), z.imag());
  } else {
    std::snprintf(text, sizeof text, "%.17g", element_as_double(x.dtype(), x.raw_data(), i));
  }
  return text;
}

double allowed(const Case& one) {
  const DType dtype = one.outputs[0].dtype;
  auto limit = limits.find(one.primitive.name());
  if (limit == limits.end() || !is_inexact(dtype)) return 0;
  const Limit& row = limit->second;
  if (is_complex(one.inputs[0].dtype)) return one.inputs[0].dtype == DType::complex64 ? row.c64 : row.c128;
  if (dtype == DType::float64) return row.f64;
  // A narrow result may round to the adjacent number.
  return dtype == DType::float32 ? row.f32 : row.f32 > 0 ? std::max(1.0, row.f32 / 256) : 0;
}

class Elementwise : public testing::TestWithParam<DType> {};

TEST_P(Elementwise, GeneratedCodeAgreesWithTheReference) {
  NEEDS_COMPILER();
  std::vector<Case> cases = cases_of(GetParam());
  ASSERT_FALSE(cases.empty());
  run_generated(cases);
  for (const Case& one : cases) {
    const reference::Kernel kernel = reference::find_kernel(one.primitive);
    ASSERT_TRUE(kernel) << one.primitive.name();
    const Arrays want = kernel({one.operands, one.outputs, one.attrs});
    for (std::size_t o = 0; o < want.size(); ++o) {
      const Worst worst = compare(one, o, want[o]);
      if (worst.ulp <= allowed(one)) continue;
      std::string operands;
      for (const Array& x : one.operands) operands += element_text(x, worst.at) + " ";
      const Array got = Array::from_buffer(one.outputs[o], one.results[o]);
      ADD_FAILURE() << one.describe() << ": " << worst.ulp << " ULP at " << operands << ": "
                    << element_text(got, worst.at) << ", expected " << element_text(want[o], worst.at);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Elementwise, testing::ValuesIn(tested_dtypes), [](const auto& info) {
  std::string name = to_string(info.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace capibara::cpu
