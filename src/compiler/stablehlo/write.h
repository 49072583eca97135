// Writes a program as the text of a StableHLO module.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <capibara/placement.h>
#include <capibara/program.h>

namespace capibara::stablehlo {

struct WriteOptions {
  std::string module_name = "main";
  bool locations = false;  // for equations with a known source
  // Constants of fewer than 8 bits are written wider and converted behind a barrier: XLA's GPU compiler aborts the
  // process on such a constant.
  bool widen_narrow_constants = false;
  // Of main: one text per argument or result, without braces; empty: none.
  std::vector<std::string> argument_attributes = {};
  std::vector<std::string> result_attributes = {};
  // The placement of main's arguments on several devices, unless its own constraints specify it; null: unannotated.
  std::vector<std::shared_ptr<const NamedSharding>> argument_placements = {};
};

// jax's module name for a jitted function: "jit__lambda" for "<lambda>".
std::string jit_module_name(std::string_view function);

// The program must consist of primitives that StableHLO has, as `lower` leaves it.
std::string write_module(const Program& program, const WriteOptions& options = {});
// Any program: it is lowered first.
std::string write_program(const Program& program, const WriteOptions& options = {});

}  // namespace capibara::stablehlo
