// The functions of XLA's interface that handlers call, and what they act on.
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

// What belongs to one call in a program: the states that its handlers keep.
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

// The table of all functions, of the interface 0.3 (jaxlib 0.10.2), which later handlers take.
const abi::Api& interface_functions();

}  // namespace capibara::ffi
