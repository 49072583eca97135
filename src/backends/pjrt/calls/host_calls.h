// Operations that the host runs while a program runs on a device: callbacks, LAPACK, expectations of StableHLO files.
//
// Each is a foreign call in the program's text; the plugin calls our handler with the operands, and the handler hands
// them to the thread that launched the program, so that callbacks see that thread's configuration, scopes and
// interpreter.
#pragma once

#include <capibara/primitive.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "backends/pjrt/client.h"

namespace capibara::pjrt {

inline constexpr const char* host_call_target = "capibara_host_call";

// The type in which an operand or result is transferred: numbers of fewer than 8 bits as int8, uint8 or float32, since
// plugins are inconsistent about whether arrays of these types are packed.
ArrayType carried_type(ArrayType type);

// The host calls of one compiled program.
class HostCalls {
 public:
  HostCalls() = default;
  ~HostCalls();
  HostCalls(const HostCalls&) = delete;

  // Returns the number that identifies the call in the program's text.
  int64_t add(const Primitive& primitive, const Attrs& attrs, Types inputs, Types outputs);
  bool empty() const { return numbers_.empty(); }

  // Runs `program` to completion on a separate thread and serves its host calls on this one. Raises the first error of
  // a call.
  void serve(const std::function<void()>& program);

  struct Call {
    HostCalls* owner;
    Primitive primitive;
    Attrs attrs;
    Types inputs, outputs;
  };
  Arrays run(const Call& call, Arrays inputs);  // on the serving thread; rethrows what the call raised

 private:
  struct Request {
    const Call* call;
    Arrays inputs, outputs;
    std::exception_ptr error;
    bool finished = false;
  };
  struct Session {
    std::deque<Request*> waiting;
    std::exception_ptr first_error;
    bool ended = false;
  };

  std::vector<int64_t> numbers_;
  std::recursive_mutex serving_;  // one run at a time, but a callback may run the same program again
  std::mutex mutex_;
  std::condition_variable changed_;
  Session* session_ = nullptr;
};

// Registers our handler with the plugin, once per client. Raises RuntimeError if it accepts none.
void register_host_calls(const Client& client);

}  // namespace capibara::pjrt
