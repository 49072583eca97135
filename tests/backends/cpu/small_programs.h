// Makes programs from functions, inputs for them, and compares them with the reference backend.
#pragma once

#include <capibara/config.h>
#include <capibara/lax.h>

#include <gtest/gtest.h>

#include <functional>

#include "backends/backend.h"
#include "backends/cpu/random/random_programs.h"
#include "core/runtime/thread_pool.h"
#include "program/trace/stage.h"

namespace capibara::cpu {

using Maker = std::function<Arrays(std::span<const Array>)>;

// Sines of the element's index in `dtype`, including 64-bit types.
inline Array values(const Shape& shape, DType dtype = DType::float32, float factor = 1) {
  const ConfigScope x64 = jax::enable_x64();
  const Array count =
      jax::lax::convert_element_type(jax::lax::iota(DType::int32, element_count(shape)), DType::float32);
  return jax::lax::convert_element_type(jax::lax::reshape(jax::lax::sin(count * 0.7f + 0.1f) * factor, shape), dtype);
}

inline Program program_of(const Maker& function, const Arrays& inputs) {
  const ConfigScope x64 = jax::enable_x64();
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  const FlatFunction flat = [&](std::span<const Array> given) { return function(given); };
  return stage(flat, types, "f").program;
}

inline Arrays executed(const char* platform, const Program& program, const Arrays& inputs) {
  return capibara::backend(platform).compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
}

// Checks for the reference's values, and the same bits on 1, 2 and 4 threads.
inline void expect_as_reference(const Maker& function, const Arrays& inputs, double tolerance) {
  const Program program = program_of(function, inputs);
  const Arrays want = executed("reference", program, inputs);
  const std::shared_ptr<Executable> executable = capibara::backend("cpu").compile(program);
  const int threads = thread_count();
  Arrays first;
  for (int count : {1, 2, 4}) {
    set_thread_count(count);
    const Arrays got = executable->execute(inputs, std::vector<bool>(inputs.size(), false));
    EXPECT_EQ(random_programs::difference(got, want, std::vector<double>(want.size(), tolerance)), "");
    if (first.empty()) first = got;
    EXPECT_EQ(random_programs::difference(got, first, std::vector<double>(want.size(), 0)), "") << count << " threads";
  }
  set_thread_count(threads);
}

}  // namespace capibara::cpu
