// CompileOptions: what a plugin is told besides the program, written in the wire format of protocol buffers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace capibara::pjrt {

struct CompileOptions {
  int64_t replicas = 1, partitions = 1;
  std::vector<int64_t> devices;  // one for each replica and partition; empty: the plugin chooses
  // Settings of XLA by name. They are laid over its defaults: a whole set of debug options would replace all of them.
  std::map<std::string, std::variant<bool, int64_t, double, std::string>> overrides;

  std::string serialize() const;
};

// What every program of a plugin for this platform is compiled with: settings from CAPIBARA_XLA_OPTIONS, and what the machine needs.
CompileOptions standard_options(const std::string& platform);

}  // namespace capibara::pjrt
