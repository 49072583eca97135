// Builds functions in loop form by hand, compiles and runs them, for the tests of the code generator.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <capibara/default_device.h>
#include <capibara/error.h>

#include "backends/cpu/execution/compiler.h"
#include "backends/cpu/loops/builder.h"

namespace capibara::cpu {

// A core configured without the code generator runs programs on the reference backend, even if the module could be
// opened.
inline bool runs_generated_code() { return native_platform() == "cpu" && has_compiler(); }

#define NEEDS_COMPILER()                     \
  if (!capibara::cpu::runs_generated_code()) \
  GTEST_SKIP() << "this build has no code generator, or libcapibara_cpu.so is absent"

#define NEEDS_FMA() \
  NEEDS_COMPILER(); \
  if (!capibara::cpu::has_fma()) GTEST_SKIP() << "this processor, or CAPIBARA_CPU_LEVEL, has no FMA"

inline bool has_fma() {
  const Target target = process_target();
  const auto is_fma = [](const std::string& feature) { return feature == "+fma"; };
  return !target.triple.starts_with("x86_64") || std::any_of(target.features.begin(), target.features.end(), is_fma);
}

// Runs everything on the calling thread, in `parts` pieces.
struct TestRuntime {
  int32_t cancel = 0;
  int parts = 1;
  int parallel_calls = 0;
  std::function<int32_t(int32_t kernel, std::byte* const* buffers)> host;
  Runtime runtime;

  TestRuntime() : runtime{&cancel, run_parallel, run_host, this} {}
  TestRuntime(const TestRuntime&) = delete;

 private:
  static int32_t run_parallel(const Runtime* runtime, Entry function, std::byte* const* buffers, int64_t extent,
                              double) {
    auto* self = static_cast<TestRuntime*>(runtime->program);
    ++self->parallel_calls;
    for (int part = self->parts - 1; part >= 0; --part) {
      int32_t status = function(runtime, buffers, extent * part / self->parts, extent * (part + 1) / self->parts);
      if (status) return status;
    }
    return 0;
  }
  static int32_t run_host(const Runtime* runtime, int32_t kernel, std::byte* const* buffers) {
    if (kernel == poll_kernel) return std::atomic_ref(static_cast<TestRuntime*>(runtime->program)->cancel).load();
    return static_cast<TestRuntime*>(runtime->program)->host(kernel, buffers);
  }
};

inline Module module_with(std::size_t functions = 1) {
  Module module;
  module.functions.resize(functions);
  for (std::size_t i = 0; i < functions; ++i) module.functions[i].name = "function";
  return module;
}

inline std::unique_ptr<Code> compiled(const Module& module) {
  return compiler().link(compiler().object_code(module, process_target()));
}

inline int32_t run(const Module& module, std::vector<void*> buffers, TestRuntime& runtime) {
  std::unique_ptr<Code> code = compiled(module);
  std::vector<std::byte*> pointers;
  for (void* buffer : buffers) pointers.push_back(static_cast<std::byte*>(buffer));
  return code->driver()(&runtime.runtime, pointers.data(), 0, 0);
}

inline void run(const Module& module, std::vector<void*> buffers) {
  TestRuntime runtime;
  ASSERT_EQ(run(module, std::move(buffers), runtime), 0) << to_string(module);
}

// A byte represents an i1, so that elements of its arrays have addresses.
struct Bit {
  uint8_t value = 0;
  friend bool operator==(const Bit&, const Bit&) = default;
};
struct F16 {
  uint16_t bits = 0;
};
struct Bf16 {
  uint16_t bits = 0;
};

template <class T>
constexpr Scalar scalar_of() {
  if constexpr (std::is_same_v<T, Bit>)
    return Scalar::i1;
  else if constexpr (std::is_same_v<T, F16>)
    return Scalar::f16;
  else if constexpr (std::is_same_v<T, Bf16>)
    return Scalar::bf16;
  else if constexpr (std::is_same_v<T, float>)
    return Scalar::f32;
  else if constexpr (std::is_same_v<T, double>)
    return Scalar::f64;
  else if constexpr (sizeof(T) == 1)
    return Scalar::i8;
  else if constexpr (sizeof(T) == 2)
    return Scalar::i16;
  else if constexpr (sizeof(T) == 4)
    return Scalar::i32;
  else
    return Scalar::i64;
}

// Bitwise equal, or both NaN.
template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::string shown(T value) {
  if constexpr (std::is_same_v<T, Bit>)
    return std::to_string(value.value);
  else if constexpr (std::is_arithmetic_v<T>)
    return std::to_string(value);
  else
    return std::to_string(value.bits);
}

}  // namespace capibara::cpu
