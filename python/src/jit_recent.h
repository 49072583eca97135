// The latest calls of a jitted Python function: a repeated call needs no key, hash or lookup.
#pragma once

#include <capibara/jit.h>

#include "calls.h"

#include <memory>
#include <utility>
#include <vector>

namespace capibara::python {

// The arguments of one call, and the compiled entry for it.
struct RecentCall {
  std::size_t positional = 0;
  std::vector<std::pair<std::size_t, nb::object>> statics;       // static positional arguments
  std::vector<std::pair<nb::object, nb::object>> named_statics;  // static keyword arguments
  PyTree in;                                                     // ((dynamic arguments), {dynamic keywords})
  Types types;                                                   // of the leaves
  std::vector<bool> committed;
  bool places = false;       // whether a leaf is committed
  std::size_t settings = 0;  // config_key() of the call
  std::shared_ptr<const detail::JitEntry> entry;
  PyTree out;
};

class RecentCalls {
 public:
  // The recorded call that these arguments repeat, and the leaves; null if there is none. Only handles objects of
  // built-in containers and types. Comparing keys may run user code, and so other calls: hence the shared
  // result.
  std::shared_ptr<const RecentCall> find(PyObject* args, PyObject* kwargs, Arrays& leaves);
  void add(RecentCall call);
  void clear() { replace({}); }

 private:
  using Calls = std::vector<std::shared_ptr<const RecentCall>>;
  static constexpr std::size_t max_calls = 4;

  // Evicted calls are destroyed last: releasing objects may run user code, and so other threads.
  void replace(Calls next) {
    auto old = std::make_shared<const Calls>(std::move(next));
    calls_.swap(old);
  }

  std::shared_ptr<const Calls> calls_ = std::make_shared<const Calls>();  // newest first; never changed in place
  unsigned generation_ = 0;                                               // of the caches that the entries come from
};

}  // namespace capibara::python
