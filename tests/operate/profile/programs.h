// Profiled programs for tests: fictitious source lines, and runs that are already compiled.
#pragma once

#include <capibara/capibara.h>
#include <capibara/profile.h>

#include <gtest/gtest.h>

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "program/ir/source.h"

namespace capibara {

// Equations traced in its scope come from this line of a fictitious file.
class Line {
 public:
  explicit Line(int number) : scope_(intern(SourceInfo{"", "model.py", number, nullptr})) {}

 private:
  SourceScope scope_;
};

inline Array filled(const Shape& shape, double value = 0.5) { return jax::lax::full(shape, value, DType::float32); }

template <class F>
profile::Profile profiled(const F& work) {
  work();  // compiles
  profile::start();
  work();  // compiles with marks
  profile::stop();
  profile::start();
  work();
  return profile::stop();
}

struct Native : testing::Test {
  void SetUp() override {
    if (!cpu::has_compiler() || default_backend().name() != "cpu") GTEST_SKIP() << "needs the native compiler";
  }
};

}  // namespace capibara
