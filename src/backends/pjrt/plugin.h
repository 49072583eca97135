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

// A library that may be a plugin: its platform is told by its place ("cuda", "tpu", "xla_cpu").
struct Candidate {
  std::string platform;
  std::string path;
  std::string why;  // "CAPIBARA_PLUGIN", or the folder that holds it
};

// All plugins of this machine in the order of preference, and which paths were searched for them.
struct Search {
  std::vector<Candidate> found;
  std::vector<std::string> looked;  // one line each
};
Search search();
// Further folders of Python packages: the interpreter's own.
void add_package_folders(const std::vector<std::string>& folders);

// "gpu" is "cuda" or "rocm"; "pjrt" is any. Raises RuntimeError listing which paths were searched.
Candidate choose(const std::string& platform);

// The TPU library of this process, and the flags that it found in LIBTPU_INIT_ARGS: later ones it does not read.
struct LoadedLibtpu {
  std::string path, init_args;
};
std::optional<LoadedLibtpu> loaded_libtpu();

class Plugin {
 public:
  // Raises RuntimeError where the file cannot be loaded, is no plugin, or speaks another version of the interface.
  Plugin(std::string platform, const std::string& path);
  Plugin(const Plugin&) = delete;

  const std::string& platform() const { return platform_; }
  const std::string& path() const { return path_; }
  std::string version() const;  // "PJRT 0.81, StableHLO 1.13.3"

  bool has(abi::Function function) const {
    return static_cast<std::size_t>(function) + sizeof(void*) <= api_->struct_size;
  }
  // Calls a function; an error is raised as RuntimeError that begins with `what`.
  template <class T>
  void call(abi::Function function, abi::Args<T>& args, const std::string& what) const {
    check(raw_call(function, &args, what), what);
  }
  // The same without words of its own: for the fast path and for destructors.
  template <class T>
  abi::Error* try_call(abi::Function function, abi::Args<T>& args) const {
    return has(function) ? entry(function)(static_cast<void*>(&args)) : nullptr;
  }
  void check(abi::Error* error, const std::string& what) const {
    if (error) raise(error, what);
  }
  std::string take_message(abi::Error* error) const;  // and frees it
  const abi::Extension* extension(int32_t type) const;
  // Whether programs for GPUs may call functions of ours, and telling the plugin of one.
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
  const abi::Api* api_ = nullptr;  // the library is never closed: its threads go on
};

// The answer to a question that is asked of each plugin once.
class AskedOnce {
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
