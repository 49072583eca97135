// Compares the CPU backend's own kernels with the reference kernels on random operands, for several numbers of threads.
#pragma once

#include <capibara/primitive.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/kernels/host.h"
#include "backends/cpu/kernels/kernels.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

inline ArrayType type_of(DType dtype, Shape shape) { return {std::move(shape), dtype, false, false, {}}; }

using Bytes = std::vector<std::byte>;

inline Bytes bytes_for(const ArrayType& type) {
  return Bytes(static_cast<std::size_t>(type.size() * storage_size(type.dtype)) + 1);  // one more: data() is never null
}

enum class Values {
  plain,    // uniform in [-2, 2]; integers in [-8, 8], booleans
  awkward,  // also NaN, infinities, zeros of both signs, and many equal ones
  indices,  // integers in [-2, 9]
};

inline Bytes random_operand(const ArrayType& type, Values values, std::mt19937& random) {
  Bytes bytes = bytes_for(type);
  std::uniform_real_distribution<double> uniform(-2, 2);
  std::uniform_int_distribution<int> pick(0, 15);
  auto number = [&]() -> double {
    if (values == Values::indices) return std::floor(uniform(random) * 2.75 + 3.5);
    if (is_bool(type.dtype)) return pick(random) % 2;
    if (is_integer(type.dtype)) return is_unsigned(type.dtype) ? pick(random) : pick(random) - 8;
    if (values == Values::awkward) {
      static const double special[] = {0.0,
                                       -0.0,
                                       1.0,
                                       1.0,
                                       std::numeric_limits<double>::infinity(),
                                       -std::numeric_limits<double>::infinity(),
                                       std::numeric_limits<double>::quiet_NaN()};
      int which = pick(random);
      if (which < 7) return special[which];
      if (which < 10) return std::floor(uniform(random));
    }
    return uniform(random);
  };
  for (int64_t i = 0; i < type.size(); ++i) {
    if (is_key(type.dtype)) {
      for (int64_t w = 0; w < storage_size(type.dtype); ++w)
        bytes[static_cast<std::size_t>(i * storage_size(type.dtype) + w)] = static_cast<std::byte>(random());
    } else if (is_complex(type.dtype)) {
      double re = number(), im = number();
      store_as<std::complex<double>>(type.dtype, bytes.data(), i, {re, im});
    } else {
      store_as<double>(type.dtype, bytes.data(), i, number());
    }
  }
  return bytes;
}

// The maximum difference of a result from the reference: 0 is bitwise (any NaN equals any other).
struct Tolerance {
  double absolute = 0, relative = 0;
};

inline bool close_enough(double got, double expected, Tolerance tolerance) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) == std::isnan(expected);
  if (got == expected) return tolerance.absolute > 0 || std::signbit(got) == std::signbit(expected);
  if (std::isinf(got) || std::isinf(expected)) return false;
  return std::abs(got - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

inline bool same_bytes(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}
inline void expect_close(const ArrayType& type, const Bytes& got, const Bytes& expected, Tolerance tolerance,
                         const std::string& label) {
  if (same_bytes(got, expected)) return;
  auto size = static_cast<std::size_t>(storage_size(type.dtype));
  for (int64_t i = 0; i < type.size(); ++i) {
    auto at = static_cast<std::size_t>(i) * size;
    if (std::memcmp(got.data() + at, expected.data() + at, size) == 0) continue;
    std::complex<double> x, y;
    bool same = false;
    if (is_inexact(type.dtype)) {
      x = load_as<std::complex<double>>(type.dtype, got.data(), i);
      y = load_as<std::complex<double>>(type.dtype, expected.data(), i);
      same = close_enough(x.real(), y.real(), tolerance) && close_enough(x.imag(), y.imag(), tolerance);
    } else if (!is_key(type.dtype)) {
      x = static_cast<double>(element_as_int64(type.dtype, got.data(), i));
      y = static_cast<double>(element_as_int64(type.dtype, expected.data(), i));
    }
    if (!same) {
      ADD_FAILURE() << label << ": element " << i << " of " << to_string(type) << " is " << x << ", expected " << y;
      return;
    }
  }
}

struct KernelCase {
  std::string primitive;
  Types inputs;
  Attrs attrs;
  std::vector<Values> values = {};  // by input; plain where absent
  Tolerance tolerance = {};
  std::vector<bool> constants = {};  // inputs that a kernel may keep in another form
};

// Kernels that have run on one thread and will be run again on more.
class KernelTest : public ::testing::Test {
 protected:
  // Runs the case on both kernels, whose results must agree, and keeps it for other numbers of threads.
  void check_kernel(const KernelCase& test) {
    Primitive primitive = capibara::primitive(test.primitive);
    Types outputs = primitive->type(test.inputs, test.attrs).types;
    std::string label = test.primitive;
    for (const ArrayType& type : test.inputs) label += " " + to_string(type);
    KernelMaker make = find_kernel_maker(primitive);
    ASSERT_NE(make, nullptr) << label;
    ASSERT_TRUE(make({test.inputs, outputs, test.attrs, test.constants})) << label << ": left to the reference kernel";
    Run run{label, host_kernel(primitive, test.inputs, outputs, test.attrs, test.constants), outputs, {}, {}};
    std::mt19937 random(17);
    for (std::size_t i = 0; i < test.inputs.size(); ++i) {
      run.operands.push_back(
          random_operand(test.inputs[i], i < test.values.size() ? test.values[i] : Values::plain, random));
    }
    std::vector<Bytes> wanted = run.results(reference_kernel(primitive, test.inputs, outputs, test.attrs));
    run.first = run.results(run.kernel);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      expect_close(outputs[i], run.first[i], wanted[i], test.tolerance, label);
    runs_.push_back(std::move(run));
  }

  static void SetUpTestSuite() { set_thread_count(1); }
  // Results are bitwise equal for all addresses of buffers and for 1, 2 and 4 threads; sign and payload of a NaN are
  // undetermined, since an addition on x86 keeps those of the operand that the compiler puts first.
  void TearDown() override {
    for (const Run& run : runs_) {
      const std::vector<Bytes> results = run.results_side_by_side(run.kernel);
      for (std::size_t i = 0; i < results.size(); ++i)
        expect_close(run.outputs[i], results[i], run.first[i], {}, run.label + ": operands and results side by side");
    }
    for (int threads : {2, 4, 1}) {
      set_thread_count(threads);
      if (threads == 1) break;
      for (const Run& run : runs_) {
        const std::vector<Bytes> results = run.results(run.kernel);
        for (std::size_t i = 0; i < results.size(); ++i) {
          expect_close(run.outputs[i], results[i], run.first[i], {},
                       concat(run.label, ": ", threads, " threads instead of one"));
        }
      }
    }
  }

 private:
  struct Run {
    std::string label;
    HostKernel kernel;
    Types outputs;
    std::vector<Bytes> operands, first;

    std::vector<Bytes> results(const HostKernel& function) const {
      std::vector<Bytes> results, copies = operands;
      for (const ArrayType& type : outputs) {
        results.push_back(bytes_for(type));
        std::fill(results.back().begin(), results.back().end(), std::byte{0x5a});
      }
      std::vector<std::byte*> buffers;
      for (Bytes& bytes : copies) buffers.push_back(bytes.data());
      for (Bytes& bytes : results) buffers.push_back(bytes.data());
      function(buffers.data());
      for (std::size_t i = 0; i < copies.size(); ++i)
        EXPECT_TRUE(same_bytes(copies[i], operands[i])) << label << ": operand " << i << " was written";
      for (const Bytes& bytes : results)
        EXPECT_EQ(bytes.back(), std::byte{0x5a}) << label << ": written beyond the end";
      return results;
    }

    // Results in one buffer with the operands, which follow them at the next 16 bytes: loops that compare addresses
    // take other versions of themselves.
    std::vector<Bytes> results_side_by_side(const HostKernel& function) const {
      const auto end_of = [](std::size_t begin, std::size_t size) { return (begin + size + 15) / 16 * 16; };
      std::vector<std::size_t> begins;
      std::size_t total = 0;
      std::vector<Bytes> results;
      for (const ArrayType& type : outputs) {
        results.push_back(bytes_for(type));
        begins.push_back(total), total = end_of(total, results.back().size());
      }
      for (const Bytes& bytes : operands) begins.push_back(total), total = end_of(total, bytes.size());
      Bytes all(total + 64);
      std::byte* base = all.data() + (16 - reinterpret_cast<std::uintptr_t>(all.data()) % 16) % 16;
      std::vector<std::byte*> buffers;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        buffers.push_back(base + begins[outputs.size() + i]);
        std::copy(operands[i].begin(), operands[i].end(), buffers.back());
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) buffers.push_back(base + begins[i]);
      function(buffers.data());
      for (std::size_t i = 0; i < outputs.size(); ++i)
        std::copy_n(base + begins[i], results[i].size(), results[i].begin());
      return results;
    }
  };
  std::vector<Run> runs_;
};

inline double epsilon_of(DType dtype) { return std::ldexp(1.0, -static_cast<int>(dtype_row(dtype).mantissa_bits)); }

}  // namespace capibara::cpu
