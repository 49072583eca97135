// Writing compile options: numbers of fields are those of xla's compile_options.proto.
#include "backends/pjrt/compile_options.h"

#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdlib>

#include <capibara/error.h>

namespace capibara::pjrt {

namespace {

class Message {
 public:
  void integer(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
  }
  void real(int field, double value) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(bits >> shift & 0xff);
  }
  void text(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    out_ += value;
  }
  void message(int field, const Message& value) { text(field, value.out_); }
  void packed(int field, const std::vector<int64_t>& values) {
    Message list;
    for (int64_t value : values) list.varint(static_cast<uint64_t>(value));
    message(field, list);
  }
  const std::string& bytes() const { return out_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) out_ += static_cast<char>(value | 128);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

// XLA generates SVE code by the name of the processor, also where the system does not let programs use it. Without
// optimisation it generates none.
bool hides_vectors() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long sve = 1ul << 22;
  return (getauxval(AT_HWCAP) & sve) == 0;
#else
  return false;
#endif
}

// CAPIBARA_XLA_OPTIONS="xla_gpu_autotune_level=0 xla_cpu_enable_fast_math=False": settings of XLA, checked by the
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
  Message build;
  build.integer(1, -1);  // device ordinal: none in particular
  build.integer(4, replicas);
  build.integer(5, partitions);
  if (partitions > 1) build.integer(6, 1);  // one program for all partitions
  if (!devices.empty()) {
    Message assignment;
    assignment.integer(1, replicas);
    assignment.integer(2, partitions);
    for (int64_t partition = 0; partition < partitions; ++partition) {
      std::vector<int64_t> ids;
      for (int64_t replica = 0; replica < replicas; ++replica) {
        ids.push_back(devices[static_cast<std::size_t>(replica * partitions + partition)]);
      }
      Message computation;
      computation.packed(1, ids);
      assignment.message(3, computation);
    }
    build.message(9, assignment);
  }
  if (partitions > 1) build.integer(19, 1);  // Shardy reads the shardings
  Message options;
  options.message(3, build);
  for (const auto& [name, value] : overrides) {
    Message field;
    if (const auto* text = std::get_if<std::string>(&value))
      field.text(1, *text);
    else if (const auto* flag = std::get_if<bool>(&value))
      field.integer(2, *flag);
    else if (const auto* integer = std::get_if<int64_t>(&value))
      field.integer(3, *integer);
    else
      field.real(4, std::get<double>(value));
    Message entry;
    entry.text(1, name);
    entry.message(2, field);
    options.message(7, entry);
  }
  return options.bytes();
}

}  // namespace capibara::pjrt
