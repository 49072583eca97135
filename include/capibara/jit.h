// jit and its stages: functions traced to programs, lowered to StableHLO, compiled and cached.
#pragma once

#include <capibara/analysis.h>
#include <capibara/callable.h>
#include <capibara/config.h>
#include <capibara/placement.h>

#include <memory>
#include <string>
#include <typeindex>
#include <vector>

namespace capibara {

namespace jax {

// Arguments that hold no Array are always static; an argument named in static_argnums must be one of them.
struct JitOptions {
  std::vector<int> static_argnums = {};
  std::vector<int> donate_argnums = {};
  bool keep_unused = false;
  bool inline_ = false;     // when traced, inline the equations instead of adding a call
  std::string name = "fn";  // shown in programs and messages; C++ functions have no name at run time
};

}  // namespace jax

namespace detail {

class JitCache;
class JitEntry;  // one traced and perhaps compiled function

std::shared_ptr<JitCache> make_jit_cache(const jax::JitOptions& options);
// The cache of a stateless function: shared by every jit of it with these options.
std::shared_ptr<JitCache> shared_jit_cache(std::type_index function_type, const void* function,
                                           const jax::JitOptions& options);
std::size_t jit_cache_size(const JitCache& cache);
void clear_jit_cache(JitCache& cache);

// Finds the entry traced for this structure and these leaf types; null if there is none.
std::shared_ptr<const JitEntry> find_jit_entry(const JitCache& cache, const TreeDef& in, std::span<const Array> leaves);
// Traces and caches. `out` is the structure of the result, known after `function` has run. `donated` has one entry
// for each leaf; if absent, the options decide.
std::shared_ptr<const JitEntry> trace_jit_entry(JitCache& cache, const TreeDef& in, std::span<const Array> leaves,
                                                const FlatFunction& function, const TreeDef& out,
                                                const std::optional<std::vector<bool>>& donated = std::nullopt);
// Runs the compiled program, or adds a call to the program being traced.
Arrays call_jit_entry(const JitEntry& entry, std::span<const Array> leaves);
// The placement of each leaf; null, or an empty list: unplaced.
using LeafShardings = std::vector<std::shared_ptr<const NamedSharding>>;
LeafShardings leaf_placements(std::span<const Array> leaves);
ExecutableDetails compile_jit_entry(const JitEntry& entry, const LeafShardings& leaves = {});
void check_jit_entry(const JitEntry& entry, const TreeDef& in, std::span<const Array> leaves);  // TypeError
const Program& jit_entry_program(const JitEntry& entry);
const TreeDef& jit_entry_structure(const JitEntry& entry);  // of the result
const TreeDef& jit_entry_input_structure(const JitEntry& entry);
std::string jit_entry_text(const JitEntry& entry, const LeafShardings& leaves = {});  // StableHLO
ProgramCost jit_entry_cost(const JitEntry& entry);
bool jit_entry_lasts(const JitEntry& entry);     // valid for every call like the one that traced it
bool jit_entry_is_short(const JitEntry& entry);  // compiled, and finishes before another thread could be woken
bool jit_disabled();

// The type of every leaf, for functions that need no values.
Types leaf_types(const char* operation, const TreeDef& structure, std::span<const Array> leaves);
Program stage_program(const FlatFunction& function, const Types& types, const std::string& name);
Arrays abstract_arrays(const Types& types);

}  // namespace detail

namespace jax {

struct ObjectOptions;

// A program compiled for fixed argument types.
template <class Result, class Arguments>
class Compiled {
 public:
  explicit Compiled(std::shared_ptr<const capibara::detail::JitEntry> entry) : entry_(std::move(entry)) {}

  // Raises TypeError if the argument types differ from those it was compiled for.
  template <class... Args>
  Result operator()(Args&&... args) const {
    static_assert(std::tuple_size_v<Arguments> == sizeof...(Args), "compiled for another number of arguments");
    Arguments packed(std::forward<Args>(args)...);
    Arrays leaves = capibara::detail::leaves_of(packed);
    capibara::detail::check_jit_entry(*entry_, capibara::detail::make_structure(packed), leaves);
    return capibara::detail::rebuild<Result>(capibara::detail::jit_entry_structure(*entry_),
                                             capibara::detail::call_jit_entry(*entry_, leaves));
  }
  std::string as_text() const { return capibara::detail::jit_entry_text(*entry_); }
  const Program& program() const { return capibara::detail::jit_entry_program(*entry_); }
  ProgramCost cost_analysis() const { return capibara::detail::jit_entry_cost(*entry_); }
  // As planned by the backend; absent if it does not plan.
  std::optional<MemoryUse> memory_analysis() const { return capibara::detail::compile_jit_entry(*entry_).memory; }
  const TreeDef& in_tree() const { return capibara::detail::jit_entry_input_structure(*entry_); }
  const TreeDef& out_tree() const { return capibara::detail::jit_entry_structure(*entry_); }
  // Writes the program as an object file and its header. <capibara/object_code.h> has the options and the definition.
  template <class Options = ObjectOptions>
  void write_object(const std::string& object_path, const std::string& header_path, const Options& options = {},
                    const std::string& weights_path = "") const;

 private:
  std::shared_ptr<const capibara::detail::JitEntry> entry_;
};

// A program and its StableHLO text.
template <class Result, class Arguments>
class Lowered {
 public:
  explicit Lowered(std::shared_ptr<const capibara::detail::JitEntry> entry) : entry_(std::move(entry)) {}

  std::string as_text() const { return capibara::detail::jit_entry_text(*entry_); }
  Compiled<Result, Arguments> compile() const {
    capibara::detail::compile_jit_entry(*entry_);
    return Compiled<Result, Arguments>(entry_);
  }
  const Program& program() const { return capibara::detail::jit_entry_program(*entry_); }
  const TreeDef& in_tree() const { return capibara::detail::jit_entry_input_structure(*entry_); }
  const TreeDef& out_tree() const { return capibara::detail::jit_entry_structure(*entry_); }

 private:
  std::shared_ptr<const capibara::detail::JitEntry> entry_;
};

// A program traced for fixed argument types.
template <class Result, class Arguments>
class Traced {
 public:
  explicit Traced(std::shared_ptr<const capibara::detail::JitEntry> entry) : entry_(std::move(entry)) {}

  const Program& jaxpr() const { return capibara::detail::jit_entry_program(*entry_); }
  Result out_info() const {
    return capibara::detail::rebuild<Result>(capibara::detail::jit_entry_structure(*entry_),
                                             capibara::detail::abstract_arrays(jaxpr().output_types()));
  }
  Lowered<Result, Arguments> lower() const { return Lowered<Result, Arguments>(entry_); }

 private:
  std::shared_ptr<const capibara::detail::JitEntry> entry_;
};

// The result of jit. Copies share one cache.
template <class F>
class Jitted {
 public:
  using parameter_types = capibara::detail::parameters_t<F>;

  Jitted(F f, const JitOptions& options) : f_(std::move(f)), cache_(find_cache(f_, options)) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    auto packed = detail::pack_arguments<F>(std::forward<Args>(args)...);
    using Arguments = decltype(packed);
    using Result = detail::result_of<F, Arguments>;
    if (detail::jit_disabled()) return Result(detail::call_with(f_, std::move(packed)));
    const TreeDef in = detail::make_structure(packed);
    Arrays leaves;
    leaves.reserve(in.num_leaves());
    detail::move_leaves(packed, leaves);
    auto entry = find_entry<Arguments>(in, leaves);
    return detail::rebuild<Result>(detail::jit_entry_structure(*entry), detail::call_jit_entry(*entry, leaves));
  }

  template <class... Args>
  auto trace(Args&&... args) const {
    namespace detail = capibara::detail;
    auto packed = detail::pack_arguments<F>(std::forward<Args>(args)...);
    using Arguments = decltype(packed);
    auto entry = find_entry<Arguments>(detail::make_structure(packed), detail::leaves_of(packed));
    return Traced<detail::result_of<F, Arguments>, Arguments>(std::move(entry));
  }
  template <class... Args>
  auto lower(Args&&... args) const {
    return trace(std::forward<Args>(args)...).lower();
  }
  template <class... Args>
  auto eval_shape(Args&&... args) const {
    return trace(std::forward<Args>(args)...).out_info();
  }
  void clear_cache() const { capibara::detail::clear_jit_cache(*cache_); }
  std::size_t cache_size() const { return capibara::detail::jit_cache_size(*cache_); }
  const F& wrapped() const { return f_; }

 private:
  static std::shared_ptr<capibara::detail::JitCache> find_cache(const F& f, const JitOptions& options) {
    if constexpr (std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>) {
      return capibara::detail::shared_jit_cache(typeid(F), reinterpret_cast<const void*>(f), options);
    } else if constexpr (std::is_empty_v<F>) {
      return capibara::detail::shared_jit_cache(typeid(F), nullptr, options);
    } else {
      return capibara::detail::make_jit_cache(options);
    }
  }

  template <class Arguments>
  std::shared_ptr<const capibara::detail::JitEntry> find_entry(const TreeDef& in, std::span<const Array> leaves) const {
    namespace detail = capibara::detail;
    auto entry = detail::find_jit_entry(*cache_, in, leaves);
    if (entry) return entry;
    TreeDef out;
    return detail::trace_jit_entry(*cache_, in, leaves, detail::flattened<Arguments>(f_, in, out), out);
  }

  F f_;
  std::shared_ptr<capibara::detail::JitCache> cache_;
};

// Compiles a function: jit(f), jit(f, {.donate_argnums = {0}, .name = "update"}).
template <class F>
auto jit(F&& f, const JitOptions& options = {}) {
  return Jitted<std::decay_t<F>>(std::forward<F>(f), options);
}

// make_jaxpr(f)(args...) is the program of f; values captured from an outer trace are its leading inputs.
template <class F>
auto make_jaxpr(F&& f, const std::string& name = "fn") {
  return [f = std::decay_t<F>(std::forward<F>(f)), name](auto&&... args) -> Program {
    namespace detail = capibara::detail;
    auto packed = detail::pack_arguments<std::decay_t<F>>(std::forward<decltype(args)>(args)...);
    TreeDef in = detail::make_structure(packed), out;
    Types types = detail::leaf_types("make_jaxpr", in, detail::leaves_of(packed));
    return detail::stage_program(detail::flattened<decltype(packed)>(f, in, out), types, name);
  };
}

// The result of f(args...) with types but no values; nothing is computed.
template <class F, class... Args>
auto eval_shape(const F& f, Args&&... args) {
  namespace detail = capibara::detail;
  auto packed = detail::pack_arguments<std::decay_t<F>>(std::forward<Args>(args)...);
  using Result = detail::result_of<std::decay_t<F>, decltype(packed)>;
  TreeDef in = detail::make_structure(packed), out;
  Types types = detail::leaf_types("eval_shape", in, detail::leaves_of(packed));
  Program program = detail::stage_program(detail::flattened<decltype(packed)>(f, in, out), types, "eval_shape");
  return detail::rebuild<Result>(out, detail::abstract_arrays(program.output_types()));
}

// ---- scopes ------------------------------------------------------------------------------------------------------

// Thread-local state that ends with the scope.
class [[nodiscard]] Scope {
 public:
  explicit Scope(std::shared_ptr<void> state) : state_(std::move(state)) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::shared_ptr<void> state_;
};

// Runs operations eagerly while the scope lives, even during tracing.
Scope ensure_compile_time_eval();
// Names the equations traced while the scope lives; nested names are joined by '/'.
Scope named_scope(const std::string& name);

// Waits for every array of a tree and returns the tree.
template <class T>
const T& block_until_ready(const T& tree) {
  for (const Array& leaf : capibara::detail::leaves_of(tree)) leaf.block_until_ready();
  return tree;
}

}  // namespace jax
}  // namespace capibara
