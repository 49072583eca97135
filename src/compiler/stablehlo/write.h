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
  bool locations = false;  // where an equation's source is known
  // Constants of fewer than 8 bits are written wider and converted behind a barrier: compilers of XLA for GPUs end the
  // process where they meet such a constant.
  bool widen_narrow_constants = false;
  // Of main: one text for each argument or result, without braces; empty: none.
  std::vector<std::string> argument_attributes = {};
  std::vector<std::string> result_attributes = {};
  // How the arguments of main are placed on several devices, where its own constraints do not say; null: unannotated.
  std::vector<std::shared_ptr<const NamedSharding>> argument_placements = {};
};

// What jax calls the module of a jitted function: "jit__lambda" for "<lambda>".
std::string jit_module_name(std::string_view function);

// The program must consist of primitives that StableHLO names, as `lower` leaves it.
std::string write_module(const Program& program, const WriteOptions& options = {});
// Any program: it is lowered first.
std::string write_program(const Program& program, const WriteOptions& options = {});

}  // namespace capibara::stablehlo
