// Stages of jit beyond the public header: compiler options, and the compiled program as text.
#pragma once

#include <capibara/jit.h>

#include <functional>
#include <optional>
#include <vector>

#include "core/runtime/compiler_options.h"

namespace capibara::detail {

std::shared_ptr<JitCache> make_jit_cache(const jax::JitOptions& options, CompilerOptions compiler_options);
// The same program, with these options overriding its own.
std::shared_ptr<const JitEntry> with_compiler_options(const JitEntry& entry, const CompilerOptions& options);
// jax_captured_constants_warn_bytes, of the process.
void warn_of_captured_constants_above(int64_t bytes);
// A call in the cache, by its structure and the types of its leaves.
struct KnownCall {
  TreeDef in;
  Types types;
  Config settings;
};
std::vector<KnownCall> known_calls(JitCache& cache);
// StableHLO; with locations, operations record their source. `rewrite` is applied to the program first.
std::string lowered_text(const JitEntry& entry, const LeafShardings& leaves, bool locations,
                         const std::function<Program(const Program&)>& rewrite = {});
// The positions of the arguments that the text takes: those that the program reads, or all if they are kept.
std::vector<std::size_t> kept_arguments(const JitEntry& entry);
// The program as compiled by the backend; nullopt if the backend does not offer it as text.
std::optional<std::string> compiled_text(const JitEntry& entry);

}  // namespace capibara::detail
