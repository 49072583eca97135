// The functions of XLA's FFI that handlers call, and the state they act on.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "backends/ffi/targets.h"
#include "backends/pjrt/calls/ffi.h"

namespace capibara::ffi {

namespace abi = pjrt::ffi;

struct Failure {
  std::string message;
};

struct Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_set = false;
  std::unique_ptr<Failure> failure;
};

enum Stage : int32_t { instantiate, prepare, initialize, execute, stages };

// The state of one call in a program, kept by its handlers.
struct Context {
  struct State {
    int64_t type = 0;
    void* value = nullptr;
  };
  State states[stages];
  std::mutex mutex;

  ~Context() {
    for (const State& state : states) delete_state(state.type, state.value);
  }
};

// The table of all functions, for interface version 0.3 (jaxlib 0.10.2), which newer handlers accept.
const abi::Api& interface_functions();

}  // namespace capibara::ffi
