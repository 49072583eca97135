// The calls that a jitted Python function saw last: one like them needs no key, no hash and no search.
#pragma once

#include <capibara/jit.h>

#include "calls.h"

#include <memory>
#include <utility>
#include <vector>

namespace capibara::python {

// One call as it looked, and what was compiled for it.
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
  // The call that these arguments repeat, with its leaves; null where there is none. Only looks at objects whose
  // meaning as arguments is plain. Comparing keys may run code of the user, and with it other calls: the result is
  // shared.
  std::shared_ptr<const RecentCall> find(PyObject* args, PyObject* kwargs, Arrays& leaves);
  void add(RecentCall call);
  void clear() { replace({}); }

 private:
  using Calls = std::vector<std::shared_ptr<const RecentCall>>;
  static constexpr std::size_t max_calls = 4;

  // Forgotten calls go last: letting objects go may run code of the user, and with it other threads.
  void replace(Calls next) {
    auto old = std::make_shared<const Calls>(std::move(next));
    calls_.swap(old);
  }

  std::shared_ptr<const Calls> calls_ = std::make_shared<const Calls>();  // the newest first; never changed in place
  unsigned generation_ = 0;                                               // of the caches that the entries come from
};

}  // namespace capibara::python
