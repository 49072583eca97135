// Plugin: a shared library that runs StableHLO on some device, found on this machine and called through PJRT's C
// interface.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/pjrt/api.h"

namespace capibara::pjrt {

// A library that may be a plugin: its platform follows from its name ("cuda", "tpu", "xla_cpu").
struct Candidate {
  std::string platform;
  std::string path;
  std::string why;  // "CAPIBARA_PLUGIN", or the folder that holds it
};

// All plugins of this machine in order of preference, and the paths that were searched for them.
struct Search {
  std::vector<Candidate> found;
  std::vector<std::string> looked;  // one line each
};
Search search();
// Adds folders of Python packages to the search: the interpreter's own.
void add_package_folders(const std::vector<std::string>& folders);

// "gpu" is "cuda" or "rocm"; "pjrt" is any. Raises RuntimeError listing which paths were searched.
Candidate choose(const std::string& platform);

// The TPU library of this process, and the LIBTPU_INIT_ARGS that it read when loaded: it ignores later changes.
struct LoadedLibtpu {
  std::string path, init_args;
};
std::optional<LoadedLibtpu> loaded_libtpu();

class Plugin {
 public:
  // Raises RuntimeError if the file cannot be loaded, is not a plugin, or has an incompatible interface version.
  Plugin(std::string platform, const std::string& path);
  Plugin(const Plugin&) = delete;

  const std::string& platform() const { return platform_; }
  const std::string& path() const { return path_; }
  std::string version() const;  // "PJRT 0.81, StableHLO 1.13.3"

  bool has(abi::Function function) const {
    return static_cast<std::size_t>(function) + sizeof(void*) <= api_->struct_size;
  }
  // Calls a function; an error is raised as a RuntimeError that begins with `what`.
  template <class T>
  void call(abi::Function function, abi::Args<T>& args, const std::string& what) const {
    check(raw_call(function, &args, what), what);
  }
  // The same without raising: for the fast path and for destructors.
  template <class T>
  abi::Error* try_call(abi::Function function, abi::Args<T>& args) const {
    return has(function) ? entry(function)(static_cast<void*>(&args)) : nullptr;
  }
  void check(abi::Error* error, const std::string& what) const {
    if (error) raise(error, what);
  }
  std::string take_message(abi::Error* error) const;  // and frees it
  const abi::Extension* extension(int32_t type) const;
  // True if programs for GPUs may call functions of ours; and registering one of them.
  bool takes_gpu_calls() const { return platform_ == "cuda" && extension(abi::gpu_custom_call_extension); }
  void register_gpu_call(const std::string& name, void* handler, uint32_t traits) const;

 private:
  using Entry = abi::Error* (*)(void*);
  Entry entry(abi::Function function) const {
    return *reinterpret_cast<const Entry*>(reinterpret_cast<const std::byte*>(api_) +
                                           static_cast<std::size_t>(function));
  }
  abi::Error* raw_call(abi::Function function, void* args, const std::string& what) const;
  [[noreturn]] void raise(abi::Error* error, const std::string& what) const;

  std::string platform_, path_;
  const abi::Api* api_ = nullptr;  // the library is never closed: its threads keep running
};

// Caches a yes/no answer per plugin, so that each is queried once.
class AnswersByPlugin {
 public:
  template <class Question>
  bool operator()(const Plugin& plugin, const Question& question) {
    std::lock_guard lock(mutex_);
    if (auto it = answers_.find(&plugin); it != answers_.end()) return it->second;
    return answers_[&plugin] = question(plugin);
  }

 private:
  std::mutex mutex_;
  std::map<const Plugin*, bool> answers_;
};

}  // namespace capibara::pjrt
