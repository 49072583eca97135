// User functions in programs, through XLA's foreign function interface: handlers written for jax.ffi are called
// unchanged.
#pragma once

#include <capibara/primitive.h>

#include <map>
#include <string>
#include <vector>

namespace capibara::jax::ffi {

// Functions of the type XLA_FFI_Handler, one for each stage; null if absent. Those before `execute` prepare
// each call of a compiled program.
struct Handlers {
  void* instantiate = nullptr;
  void* prepare = nullptr;
  void* initialize = nullptr;
  void* execute = nullptr;
};

// Registers a name with the native backends, replacing any previous function of that name. Raises ValueError without a
// function to execute.
void register_ffi_target(const std::string& name, const Handlers& handlers);
// Registers a type of handler state: its id, which is assigned here if the given one is 0, and its
// deleter.
int64_t register_ffi_type(const std::string& name, int64_t id, void (*deleter)(void*));

struct CallOptions {
  std::string attributes = "{}";  // in StableHLO syntax: {eps = 1.0e-5 : f32, name = "rms"}
  bool has_side_effect = false;
  std::string vmap_method;  // sequential, expand_dims, broadcast_all; empty: vmap raises an error
  // The order of dimensions in memory, the fastest first, for each operand and result; absent: row-major.
  std::vector<Ints> input_layouts, output_layouts;
  std::map<int64_t, int64_t> input_output_aliases;  // results that reuse the memory of operands
};

// Calls a registered function that returns results of these types, both in traced programs and eagerly.
Arrays ffi_call(const std::string& name, const Types& results, const Arrays& operands, const CallOptions& options = {});

}  // namespace capibara::jax::ffi
