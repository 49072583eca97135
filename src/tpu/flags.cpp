// Flags of libtpu: kinds by their defaults, verdicts on names and values, and the text of LIBTPU_INIT_ARGS.
#include <capibara/error.h>
#include <capibara/tpu/flags.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "tpu/words.h"

namespace capibara::tpu {

namespace {

bool is_integer(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return !text.empty() && text.size() < 20 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  std::strtod(copy.c_str(), &end);
  return !copy.empty() && end == copy.c_str() + copy.size();
}

// XLA flags and fields of the compile options that libtpu accepts for one compilation although its dump does not list
// them (verified by trial).
struct Extra {
  const char* name;
  FlagKind kind;
  const char* remark;
};
constexpr Extra kCompileOptions[] = {
    {"xla_dump_to", FlagKind::text, ""},
    {"xla_dump_hlo_as_text", FlagKind::boolean, ""},
    {"xla_force_host_platform_device_count", FlagKind::integer, "of the CPU; without effect on TPUs"},
    {"xla_gpu_triton_gemm_any", FlagKind::boolean, "of GPUs; without effect on TPUs"},
    {"exec_time_optimization_effort", FlagKind::number, "a field of the compile options"},
    {"memory_fitting_effort", FlagKind::number, "a field of the compile options"},
    {"optimization_level", FlagKind::number, "a field of the compile options"},
    {"memory_fitting_level", FlagKind::number, "a field of the compile options"},
};
// Listed, but rejected as options of one compilation (verified by trial).
constexpr const char* kInitArgsOnly[] = {"xla_jf_dump_to", "xla_jf_dump_llo_text", "xla_jf_dump_hlo_text",
                                         "xla_tpu_impure_enable_packed_bf16_math_ops"};
// Names that appear in documents but in no compiler, with their history.
struct Story {
  const char* name;
  const char* text;
};
constexpr Story kStories[] = {
    {"xla_tpu_enable_data_parallelism",
     "no compiler has it: it appears in documents only; data parallelism comes from shardings"},
    {"xla_gpu_enable_triton_softmax_fusion", "a flag of GPUs that XLA has removed"},
    {"megascale_abort_on_hangs", "a flag of the multi-slice runtime, not of the compiler"},
    {"megascale_grpc_premap_memory_bytes", "a flag of the multi-slice runtime, not of the compiler"},
};

bool value_fits(FlagKind kind, std::string_view value) {
  static constexpr std::array<std::string_view, 2> booleans = {"true", "false"};
  static constexpr std::array<std::string_view, 5> states = {"auto", "true", "false", "enabled", "disabled"};
  switch (kind) {
    case FlagKind::boolean:
      return std::find(booleans.begin(), booleans.end(), value) != booleans.end();
    case FlagKind::tristate: {  // ENABLED too
      std::string lower(value);
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
      return std::find(states.begin(), states.end(), lower) != states.end() || is_number(value);
    }
    case FlagKind::integer:
      return is_integer(value);
    case FlagKind::number:
      return is_number(value);
    case FlagKind::text:
      return true;
  }
  return false;
}

const char* expected(FlagKind kind) {
  switch (kind) {
    case FlagKind::boolean:
      return "true or false";
    case FlagKind::tristate:
      return "auto, true, false, enabled or disabled";
    case FlagKind::integer:
      return "an integer";
    case FlagKind::number:
      return "a number";
    case FlagKind::text:
      return "a text";
  }
  return "";
}

std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('_', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// The flag with the most similar spelling or, as names are long, with the most words in common (parallel: parallelism).
std::string nearest_flag(std::string_view name) {
  std::vector<std::string> names;
  for (const Flag& known : flags()) names.emplace_back(known.name);
  const std::string spelled = nearest(name, names);
  const auto alike = [](std::string_view a, std::string_view b) {
    return a == b || (std::min(a.size(), b.size()) >= 4 && (a.starts_with(b) || b.starts_with(a)));
  };
  const std::vector<std::string_view> own = words_of(name);
  const auto shared = [&](std::string_view other) {
    const std::vector<std::string_view> theirs = words_of(other);
    std::ptrdiff_t count = 0;
    for (const std::string_view word : own)
      count += std::any_of(theirs.begin(), theirs.end(), [&](std::string_view one) { return alike(word, one); });
    return 8 * count - std::ssize(theirs);  // of those that share as many the shortest
  };
  std::string best = spelled;
  for (const std::string& candidate : names) {
    if (shared(candidate) > (best.empty() ? 8 * 3 : shared(best))) best = candidate;
  }
  return best;
}

}  // namespace

FlagKind Flag::kind() const {
  const std::string_view value = default_value;
  if (value == "auto" || value == "'true'" || value == "'false'") return FlagKind::tristate;
  if (value == "true" || value == "false") return FlagKind::boolean;
  if (is_integer(value)) return FlagKind::integer;
  return is_number(value) ? FlagKind::number : FlagKind::text;
}

const std::vector<Flag>& flags() {
  static const std::vector<Flag> table = {
#include "tpu/flags.inc"
  };
  return table;
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : flags()) {
    if (name == flag.name) return &flag;
  }
  return nullptr;
}

FlagVerdict check_flag(std::string_view name, std::string_view value, FlagPlace place) {
  FlagVerdict verdict;
  const Flag* flag = find_flag(name);
  FlagKind kind = FlagKind::text;
  if (flag) {
    kind = flag->kind();
    verdict.default_value = flag->default_value;
    std::erase(verdict.default_value, '\'');
    verdict.accepted = true;
    if (place == FlagPlace::compile_option &&
        std::find(std::begin(kInitArgsOnly), std::end(kInitArgsOnly), name) != std::end(kInitArgsOnly)) {
      verdict.accepted = false;
      verdict.message = concat(name, " is taken in LIBTPU_INIT_ARGS only");
      return verdict;
    }
  }
  for (const Extra& extra : kCompileOptions) {
    if (flag || name != extra.name || place != FlagPlace::compile_option) continue;
    kind = extra.kind;
    verdict.accepted = true;
    verdict.message = extra.remark;
  }
  if (!verdict.accepted) {
    verdict.message = concat("libtpu 0.0.51 has no flag '", name, "'");
    for (const Story& story : kStories) {
      if (name == story.name) verdict.message = concat(name, ": ", story.text);
    }
    if (const std::string near = nearest_flag(name); !near.empty())
      verdict.message += concat("; did you mean '", near, "'?");
    return verdict;
  }
  if (!value.empty() && !value_fits(kind, value)) {
    verdict.accepted = false;
    verdict.message = concat(name, " needs ", expected(kind), ", got '", value, "'");
    return verdict;
  }
  verdict.is_default = flag && !value.empty() && value == verdict.default_value;
  return verdict;
}

FlagValues read_init_args(std::string_view text) {
  FlagValues values;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    while (!word.empty() && word[0] == '-') word.remove_prefix(1);
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    values[std::string(word.substr(0, equals))] =
        equals == std::string_view::npos ? "true" : std::string(word.substr(equals + 1));
  }
  return values;
}

std::string merge_init_args(std::string_view before, const FlagValues& values) {
  FlagValues all = read_init_args(before);
  for (const auto& [name, value] : values) {
    const FlagVerdict verdict = check_flag(name, value);
    if (!verdict.accepted) throw ValueError(concat("set_xla_flags: ", verdict.message));
    all[name] = value;
  }
  std::vector<std::string> words;
  for (const auto& [name, value] : all) words.push_back(concat("--", name, "=", value));
  return joined(words, " ");
}

FlagValues chosen_flags(const FlagChoice& choice) {
  if (choice.level < 0 || choice.level > 3)
    throw ValueError(concat("enable_xla_optimizations: level must be from 0 to 3, got ", choice.level));
  FlagValues values;
  auto set = [&](const char* name, bool on) { values[name] = on ? "true" : "false"; };
  set("xla_tpu_enable_latency_hiding_scheduler", choice.level > 0 && choice.latency_hiding);
  set("xla_tpu_enable_async_collective_fusion", choice.level > 0 && choice.async_collective);
  if (choice.level >= 1) set("xla_tpu_dot_dot_fusion", choice.fusion);
  if (choice.level >= 2) {
    set("xla_tpu_overlap_compute_collective_tc", choice.async_collective);
    set("xla_enable_async_all_gather", choice.async_collective);
    set("xla_tpu_enable_megacore_fusion", choice.megacore);
  }
  if (choice.level >= 3) {
    set("xla_tpu_enable_data_parallel_all_reduce_opt", choice.async_collective);
    set("xla_tpu_data_parallel_opt_different_sized_ops", choice.async_collective);
    set("xla_tpu_rwb_fusion", choice.fusion);
  }
  return values;
}

}  // namespace capibara::tpu
