// The table of the CPU compiler's options.
#include "backends/cpu/options.h"

#include <capibara/error.h>

#include <cstdlib>

namespace capibara::cpu {

namespace {

using Value = CompilerOptions::mapped_type;

int64_t integer(const std::string& name, const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) {
    char* end = nullptr;
    const long long number = std::strtoll(text->c_str(), &end, 10);
    if (!text->empty() && *end == 0) return number;
  }
  throw ValueError(concat("compiler_options: ", name, " must be an integer"));
}

struct Option {
  const char* name;
  void (*set)(OptimiseOptions& options, const std::string& name, const Value& value);
};

constexpr Option table[] = {
    // 0: one round of the passes, for programs that run once; otherwise as many as change something.
    {"xla_backend_optimization_level",
     [](OptimiseOptions& options, const std::string& name, const Value& value) {
       if (integer(name, value) <= 0) options.rounds = 1;
     }},
    // A folder for the program after each pass.
    {"xla_dump_to",
     [](OptimiseOptions& options, const std::string& name, const Value& value) {
       const auto* folder = std::get_if<std::string>(&value);
       if (!folder) throw ValueError(concat("compiler_options: ", name, " must be a folder's name"));
       options.dump = *folder;
     }},
};

}  // namespace

OptimiseOptions chosen_options(const CompilerOptions& options) {
  OptimiseOptions chosen;
  for (const auto& [name, value] : options) {
    const Option* known = nullptr;
    for (const Option& option : table) {
      if (name == option.name) known = &option;
    }
    if (!known) {
      std::string names;
      for (const Option& option : table) names += concat(names.empty() ? "'" : ", '", option.name, "'");
      throw ValueError(concat("No such compile option: '", name, "'; the CPU compiler knows ", names));
    }
    known->set(chosen, name, value);
  }
  return chosen;
}

}  // namespace capibara::cpu
