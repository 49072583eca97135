// Two tables behind one lock: targets, and the types of their states.
#include "backends/ffi/targets.h"

#include <capibara/error.h>

#include <map>
#include <mutex>

namespace capibara::ffi {

namespace {

struct StateType {
  int64_t id;
  void (*deleter)(void*);
};

struct Tables {
  std::mutex mutex;
  std::map<std::string, Handlers> targets;
  std::map<std::string, StateType> types;
  int64_t next_type = 1'000'000;  // far from the ids that handlers bring along
  Finder finder;
};

Tables& tables() {
  static auto* own = new Tables;  // handlers may be called while the process ends
  return *own;
}

}  // namespace

void register_target(const std::string& name, const Handlers& handlers) {
  if (!handlers.execute) throw ValueError(concat("register_ffi_target: '", name, "' has no function to execute"));
  std::lock_guard lock(tables().mutex);
  tables().targets[name] = handlers;
}

void set_finder(Finder finder) {
  std::lock_guard lock(tables().mutex);
  tables().finder = std::move(finder);
}

std::optional<Handlers> find_target(const std::string& name) {
  Finder finder;
  {
    std::lock_guard lock(tables().mutex);
    const auto found = tables().targets.find(name);
    if (found != tables().targets.end()) return found->second;
    finder = tables().finder;
  }
  return finder ? finder(name) : std::nullopt;
}

int64_t register_type(const std::string& name, int64_t id, void (*deleter)(void*)) {
  std::lock_guard lock(tables().mutex);
  const auto found = tables().types.find(name);
  if (found != tables().types.end() && (id == 0 || id == found->second.id)) {
    if (deleter) found->second.deleter = deleter;
    return found->second.id;
  }
  if (found != tables().types.end()) {
    throw ValueError(
        concat("register_ffi_type: type '", name, "' has the number ", found->second.id, " already, got ", id));
  }
  const int64_t own = id == 0 ? tables().next_type++ : id;
  tables().types[name] = {own, deleter};
  return own;
}

void delete_state(int64_t type, void* state) {
  if (!state) return;
  void (*deleter)(void*) = nullptr;
  {
    std::lock_guard lock(tables().mutex);
    for (const auto& [name, known] : tables().types) {
      if (known.id == type) deleter = known.deleter;
    }
  }
  if (deleter) deleter(state);
}

}  // namespace capibara::ffi
