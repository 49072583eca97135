// Programs under a profile, for tests: lines that do not exist, and runs that are compiled already.
#pragma once

#include <capibara/capibara.h>
#include <capibara/profile.h>

#include <gtest/gtest.h>

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "program/ir/source.h"

namespace capibara {

// What is traced in it comes from this line of a file that does not exist.
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
