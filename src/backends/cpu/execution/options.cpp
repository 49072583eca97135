// The table of the CPU compiler's options.
#include "backends/cpu/execution/options.h"

#include <capibara/error.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace capibara::cpu {

namespace {

using OptionValue = CompilerOptions::mapped_type;

[[noreturn]] void refuse(const std::string& name, const char* expected) {
  throw RuntimeError(
      concat("INVALID_ARGUMENT: compiler_options: the value of '", name, "' is not a valid ", expected, " value."));
}

int64_t integer(const std::string& name, const OptionValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) {
    char* end = nullptr;
    const long long number = std::strtoll(text->c_str(), &end, 10);
    if (!text->empty() && *end == 0) return number;
  }
  refuse(name, "int64");
}

void boolean(const std::string& name, const OptionValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  const bool is_truth = std::holds_alternative<bool>(value) ||
                        (text && (*text == "true" || *text == "false" || *text == "True" || *text == "False"));
  if (!is_truth) refuse(name, "bool");
}

void number(const std::string& name, const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    char* end = nullptr;
    std::strtod(text->c_str(), &end);
    if (text->empty() || *end != 0) refuse(name, "float");
  } else if (std::holds_alternative<bool>(value)) {
    refuse(name, "float");
  }
}

struct Option {
  const char* name;
  void (*set)(OptimiseOptions& options, const std::string& name, const OptionValue& value);
};

constexpr Option table[] = {
    // 0: one round of the passes, for programs that run once; otherwise until nothing changes.
    {"xla_backend_optimization_level",
     [](OptimiseOptions& options, const std::string& name, const OptionValue& value) {
       if (integer(name, value) <= 0) options.rounds = 1;
     }},
    // A folder for the program after each pass.
    {"xla_dump_to",
     [](OptimiseOptions& options, const std::string& name, const OptionValue& value) {
       const auto* folder = std::get_if<std::string>(&value);
       if (!folder) refuse(name, "string");
       options.dump = *folder;
     }},
    // jax's levels: 9 is O0, 19 is O1, ...; 0 leaves it unset.
    {"optimization_level",
     [](OptimiseOptions& options, const std::string& name, const OptionValue& value) {
       const int64_t level = integer(name, value);
       if (level > 0 && level < 19) options.rounds = 1;
     }},
};

// XLA's options that scripts set and that cannot change a result here: only their values are checked.
struct Hint {
  const char* name;
  void (*check)(const std::string& name, const OptionValue& value);
};
constexpr Hint hints[] = {
    {"exec_time_optimization_effort", number},  // how long to search for faster code
    {"memory_fitting_effort", number},          // how long to search for a smaller use of memory
    {"memory_fitting_level", number},           // the same, as a level
    {"xla_embed_ir_in_executable", boolean},    // whether executables carry their source
    {"xla_dump_max_hlo_modules", number},       // how many modules xla_dump_to writes: here one program
    {"xla_gpu_auto_spmd_partitioning_memory_budget_ratio", number},  // of the compiler for GPUs
};

}  // namespace

OptimiseOptions chosen_options(const CompilerOptions& options) {
  OptimiseOptions chosen;
  for (const auto& [name, value] : options) {
    const Option* known = nullptr;
    for (const Option& option : table) {
      if (name == option.name) known = &option;
    }
    const auto is_named = [&name = name](const Hint& one) { return name == one.name; };
    const auto* hint = std::find_if(std::begin(hints), std::end(hints), is_named);
    if (hint != std::end(hints)) {
      hint->check(name, value);
      continue;
    }
    if (!known) {
      std::string names;
      for (const Option& option : table) names += concat(names.empty() ? "'" : ", '", option.name, "'");
      throw RuntimeError(
          concat("INVALID_ARGUMENT: No such compile option: '", name, "'; the CPU compiler has the options ", names));
    }
    known->set(chosen, name, value);
  }
  return chosen;
}

}  // namespace capibara::cpu
