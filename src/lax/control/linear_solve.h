// The user's functions as programs, for linear_solve and custom_root.
#pragma once

#include <capibara/solve.h>

#include "lax/control/control.h"

namespace capibara::jax::lax::detail {

// A program closed over nothing: its captured values precede its arguments.
struct Closed {
  Program program;
  Arrays consts;

  Arrays operator()(std::span<const Array> arguments) const {
    return evaluate_program(program, joined(consts, arguments));
  }
};
Closed close(const FlatFunction& function, const Types& types, const std::string& name);

// Raises ValueError if the results, except auxiliary ones, do not have the expected shapes.
void check_shapes(const char* name, const char* expected_name, const Program& program, const Types& expected,
                  bool has_aux);

}  // namespace capibara::jax::lax::detail
