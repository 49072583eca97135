// Writes compile options: field numbers are those of xla's compile_options.proto.
#include "backends/pjrt/compile_options.h"

#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cstdlib>

#include <capibara/error.h>

#include "io/files/protobuf.h"

namespace capibara::pjrt {

namespace {

// XLA generates SVE code based on the processor's name, even where the system does not let programs use it. Without
// optimisation it generates none.
bool hides_vectors() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long sve = 1ul << 22;
  return (getauxval(AT_HWCAP) & sve) == 0;
#else
  return false;
#endif
}

// CAPIBARA_XLA_OPTIONS="xla_gpu_autotune_level=0 xla_cpu_enable_fast_math=False": XLA settings, validated by the
// plugin.
std::map<std::string, std::variant<bool, int64_t, double, std::string>> overrides_from_environment() {
  std::map<std::string, std::variant<bool, int64_t, double, std::string>> overrides;
  const char* variable = std::getenv("CAPIBARA_XLA_OPTIONS");
  const std::string text = variable ? variable : "";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos)
      throw ValueError(concat("CAPIBARA_XLA_OPTIONS: expected NAME=VALUE, got '", word, "'"));
    overrides[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return overrides;
}

}  // namespace

CompileOptions standard_options(const std::string& platform) {
  CompileOptions options;
  options.overrides = overrides_from_environment();
  if (platform == "xla_cpu" && hides_vectors())
    options.overrides.try_emplace("xla_backend_optimization_level", int64_t{0});
  return options;
}

std::string CompileOptions::serialize() const {
  ProtobufWriter build;
  build.integer(1, static_cast<uint64_t>(-1));  // device ordinal: unspecified
  build.integer(4, static_cast<uint64_t>(replicas));
  build.integer(5, static_cast<uint64_t>(partitions));
  if (partitions > 1) build.integer(6, 1);  // one program for all partitions
  if (!devices.empty()) {
    ProtobufWriter assignment;
    assignment.integer(1, static_cast<uint64_t>(replicas));
    assignment.integer(2, static_cast<uint64_t>(partitions));
    for (int64_t partition = 0; partition < partitions; ++partition) {
      std::vector<uint64_t> ids;
      for (int64_t replica = 0; replica < replicas; ++replica) {
        const int64_t id = devices[static_cast<std::size_t>(replica * partitions + partition)];
        ids.push_back(static_cast<uint64_t>(id));
      }
      ProtobufWriter computation;
      computation.packed(1, ids);
      assignment.message(3, computation);
    }
    build.message(9, assignment);
  }
  if (partitions > 1) build.integer(19, 1);  // Shardy reads the shardings
  ProtobufWriter options;
  options.message(3, build);
  for (const auto& [name, value] : overrides) {
    ProtobufWriter field;
    if (const auto* text = std::get_if<std::string>(&value))
      field.text(1, *text);
    else if (const auto* flag = std::get_if<bool>(&value))
      field.integer(2, *flag);
    else if (const auto* integer = std::get_if<int64_t>(&value))
      field.integer(3, static_cast<uint64_t>(*integer));
    else
      field.real(4, std::get<double>(value));
    ProtobufWriter entry;
    entry.text(1, name);
    entry.message(2, field);
    options.message(7, entry);
  }
  return options.bytes();
}

}  // namespace capibara::pjrt
