// What the stages of jit offer beyond the public header: options of the compiler, and the compiled program as text.
#pragma once

#include <capibara/jit.h>

#include <optional>
#include <vector>

#include "core/runtime/compiler_options.h"

namespace capibara::detail {

std::shared_ptr<JitCache> make_jit_cache(const jax::JitOptions& options, CompilerOptions compiler_options);
// The same program, to be compiled with these options over its own.
std::shared_ptr<const JitEntry> with_compiler_options(const JitEntry& entry, const CompilerOptions& options);
// jax_captured_constants_warn_bytes, of the process.
void warn_of_captured_constants_above(int64_t bytes);
// The calls that a cache holds, by their structure and the types of their leaves.
struct KnownCall {
  TreeDef in;
  Types types;
  Config settings;
};
std::vector<KnownCall> known_calls(JitCache& cache);
// StableHLO; with locations, equations say where they come from.
std::string lowered_text(const JitEntry& entry, const LeafShardings& leaves, bool locations);
// Which arguments that text takes, by their position: those that the program reads, or all where they are kept.
std::vector<std::size_t> kept_arguments(const JitEntry& entry);
// What the backend made of the program; nothing where it does not show it.
std::optional<std::string> compiled_text(const JitEntry& entry);

}  // namespace capibara::detail
