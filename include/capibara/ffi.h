// Functions of users in programs, by XLA's interface for foreign functions: a handler that was written for jax.ffi is
// called as it is.
#pragma once

#include <capibara/primitive.h>

#include <map>
#include <string>
#include <vector>

namespace capibara::jax::ffi {

// Functions of the type XLA_FFI_Handler, one for each stage; null where there is none. Those before `execute` prepare
// each call of a compiled program.
struct Handlers {
  void* instantiate = nullptr;
  void* prepare = nullptr;
  void* initialize = nullptr;
  void* execute = nullptr;
};

// Makes a name known to the native backends; another one of the same name replaces it. Raises ValueError without a
// function to execute.
void register_ffi_target(const std::string& name, const Handlers& handlers);
// A type that handlers keep as their state: its number, which is chosen here where the given one is 0, and what deletes
// it.
int64_t register_ffi_type(const std::string& name, int64_t id, void (*deleter)(void*));

struct CallOptions {
  std::string attributes = "{}";  // as StableHLO writes them: {eps = 1.0e-5 : f32, name = "rms"}
  bool has_side_effect = false;
  std::string vmap_method;  // sequential, expand_dims, broadcast_all; empty: vmap is refused
  // The order of dimensions in memory, the fastest first, for each operand and result; none: row-major.
  std::vector<Ints> input_layouts, output_layouts;
  std::map<int64_t, int64_t> input_output_aliases;  // results that take the place of operands
};

// The results of a registered function, of these types, in programs and outside of them.
Arrays ffi_call(const std::string& name, const Types& results, const Arrays& operands, const CallOptions& options = {});

}  // namespace capibara::jax::ffi
