// Functions of the user as programs, for linear_solve and custom_root.
#pragma once

#include <capibara/solve.h>

#include "lax/control/control.h"

namespace capibara::jax::lax::detail {

// A program closed over nothing: what the function captured comes before its arguments.
struct Closed {
  Program program;
  Arrays consts;

  Arrays operator()(std::span<const Array> arguments) const {
    return evaluate_program(program, joined(consts, arguments));
  }
};
Closed close(const FlatFunction& function, const Types& types, const std::string& name);

// Raises ValueError where the results, but for auxiliary ones, have not the expected shapes.
void check_shapes(const char* name, const char* expected_name, const Program& program, const Types& expected,
                  bool has_aux);

}  // namespace capibara::jax::lax::detail
