// Exported functions: programs with the types and trees of their arguments, in files that jax.export reads and writes.
#pragma once

#include <capibara/jit.h>
#include <capibara/program.h>
#include <capibara/tree.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capibara {

namespace jax {

// A program as a function of arrays, such as the result of from_stablehlo: compiled on its first call, and inserted as
// a call when another function that is being traced calls it. Copies share the compiled code.
class ProgramFunction {
 public:
  explicit ProgramFunction(Program program);

  // Raises TypeError if the argument types differ from those of the program's inputs.
  Arrays operator()(std::span<const Array> arguments) const;
  Arrays operator()(const Arrays& arguments) const { return (*this)(std::span<const Array>(arguments)); }
  const Program& program() const { return program_; }

 private:
  Program program_;
  std::shared_ptr<capibara::detail::JitCache> cache_;
};

struct ExportOptions {
  std::string name = "fn";
  std::vector<std::string> platforms = {"cpu"};  // as jax names them: cpu, cuda, rocm, tpu
};

// A function that load_exported reads or export_lowered makes. Cheap to copy, immutable.
class Exported {
 public:
  const std::string& name() const;
  const std::vector<std::string>& platforms() const;
  int64_t nr_devices() const;
  int calling_convention_version() const;
  const TreeDef& in_tree() const;  // of ((arguments...), {keywords})
  const TreeDef& out_tree() const;
  // Types of the leaves of in_tree and out_tree. A size that is chosen per call is -1.
  const Types& in_types() const;
  const Types& out_types() const;
  // True if argument sizes are symbolic; below, the expressions that the file has for them: {"b", "2*b + 1", "3"}.
  bool has_symbolic_sizes() const;
  const std::vector<std::vector<std::string>>& in_shapes() const;
  const std::vector<std::vector<std::string>>& out_shapes() const;
  // The argument types for these values of the names in symbolic sizes. Raises ValueError if a name is
  // missing.
  Types in_types(const std::map<std::string, int64_t>& sizes) const;
  // The program of the arguments that it reads; keys are uint32 words. If the file is for several platforms, the
  // platform index is the first argument. If sizes are symbolic, it is the program for arguments of these types,
  // which are then required; raises ValueError for inconsistent sizes.
  Program program(const Types& arguments = {}) const;
  const std::vector<std::size_t>& kept_arguments() const;
  // The artifact: MLIR's bytecode of StableHLO.
  const std::string& mlir_module_serialized() const;
  bool has_vjp() const;
  // The reverse derivative: a function of the arguments and one cotangent per result. Raises ValueError if absent.
  Exported vjp() const;

  // The flat results of the flat arguments. Raises TypeError for other types, and ValueError on another platform and
  // for inconsistent sizes.
  Arrays call_flat(std::span<const Array> leaves) const;
  // exported.call(x, params): the arguments have the structure of in_tree; the result is rebuilt as Result.
  template <class Result = Array, class... Args>
  Result call(const Args&... args) const {
    namespace detail = capibara::detail;
    check_structure(TreeDef::tuple({TreeDef::tuple({detail::make_structure(args)...}), TreeDef::dict({}, {})}));
    Arrays leaves;
    (detail::collect_leaves(args, leaves), ...);
    return detail::rebuild<Result>(out_tree(), call_flat(leaves));
  }

  // The bytes that jax.export.deserialize reads.
  std::string serialize() const;

  struct State;
  explicit Exported(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  void check_structure(const TreeDef& given) const;
  void check_types(const Types& given) const;

  std::shared_ptr<const State> state_;
};

// The exported function stored in bytes. Raises ParseError for malformed bytes.
Exported read_exported(std::string_view bytes);
// The exported function stored in a file.
Exported load_exported(const std::string& path);
// Writes an exported function to a file.
void save_exported(const std::string& path, const Exported& exported);

// A program of flat arguments with the trees of its arguments and results; `vjp` may be null.
Exported export_program(const Program& program, const TreeDef& in_tree, const TreeDef& out_tree,
                        const ExportOptions& options = {}, const Exported* vjp = nullptr);

// export_lowered(jit(f).lower(x, y), {.name = "f"})
template <class Result, class Arguments>
Exported export_lowered(const Lowered<Result, Arguments>& lowered, const ExportOptions& options = {}) {
  return export_program(lowered.program(), TreeDef::tuple({lowered.in_tree(), TreeDef::dict({}, {})}),
                        lowered.out_tree(), options);
}

}  // namespace jax
}  // namespace capibara
