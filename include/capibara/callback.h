// Calls from programs back to the host: pure, with side effects, and for debugging.
#pragma once

#include <capibara/array.h>

#include <functional>
#include <string>
#include <vector>

namespace capibara::jax {

using HostFunction = std::function<std::vector<Array>(const std::vector<Array>&)>;

struct PureCallbackOptions {
  std::string vmap_method = {};  // "sequential", "expand_dims", "broadcast_all"; empty: vmap raises an error
  std::string name = "host";     // of the function, shown in programs, errors and profiles
};
// Calls a host function without side effects, any number of times or not at all; returns arrays of the given types.
std::vector<Array> pure_callback(HostFunction function, const std::vector<ArrayType>& result_types,
                                 const std::vector<Array>& arguments, const PureCallbackOptions& options = {});

struct IoCallbackOptions {
  bool ordered = false;  // calls happen in program order
  std::string name = "host";
};
// Calls a host function with side effects exactly once each time the program reaches it.
std::vector<Array> io_callback(HostFunction function, const std::vector<ArrayType>& result_types,
                               const std::vector<Array>& arguments, const IoCallbackOptions& options = {});

namespace debug {
struct CallbackOptions {
  bool ordered = false;
  std::string name = "host";
};
// Calls a host function on values without changing the program; survives dead-code elimination and every transform.
void callback(std::function<void(const std::vector<Array>&)> function, const std::vector<Array>& arguments,
              const CallbackOptions& options = {});
// Prints when the program runs: {} stands for the next argument, {{ and }} for braces.
void print(const std::string& format, const std::vector<Array>& arguments = {}, const CallbackOptions& options = {});
}  // namespace debug

// Waits until all side effects have happened.
void effects_barrier();

}  // namespace capibara::jax
