// Programs as object files: one C function that needs only libc and libm, and the header that declares it.
#pragma once

#include <capibara/exported.h>

namespace capibara::jax {

struct ObjectOptions {
  std::string name;  // of the C function; empty: that of the program
  // Targets of the code, one or several levels of one architecture: native, x86-64-v3, x86-64-v4, aarch64. Of several,
  // the function picks the highest that the processor supports.
  std::vector<std::string> targets = {"native"};
  // Constants of 256 bytes and more are not stored in the object: the function takes a pointer to ObjectCode::weights,
  // which the caller reads or maps from a file.
  bool external_weights = false;
  // The concrete sizes to compile for, if those of the exported function are symbolic: {{"b", 8}}.
  std::map<std::string, int64_t> sizes = {};
};

struct ObjectCode {
  std::string name;    // of the C function
  std::string object;  // the bytes of an ELF object file
  std::string header;  // its text
  int64_t arena_bytes = 0;
  std::string weights;  // bytes; empty unless external_weights is set

  // Raises RuntimeError if a file cannot be written, and ValueError if there are weights but no path for them.
  void write(const std::string& object_path, const std::string& header_path,
             const std::string& weights_path = "") const;
};

// `inputs`, `outputs`: their names in the header, in order; the rest are numbered. Raises NotImplementedError
// naming what an object cannot hold: callbacks, collectives, custom calls, and operations without generated code.
ObjectCode compile_object(const Program& program, const ObjectOptions& options = {},
                          const std::vector<std::string>& inputs = {}, const std::vector<std::string>& outputs = {});
// The arguments that the exported function reads, named by their positions in its trees.
ObjectCode compile_object(const Exported& exported, const ObjectOptions& options = {});

// The leaves of an argument tree, ((arguments...), {keywords}), as headers name them: args[0]['w'].
std::vector<std::string> argument_names(const TreeDef& in_tree);
// The leaves of a result tree, as headers name them: result[0].
std::vector<std::string> result_names(const TreeDef& out_tree);

// A Lowered or a Compiled: compile_object(jit(f).lower(x, y), {.name = "f"})
template <template <class, class> class Staged, class Result, class Arguments>
ObjectCode compile_object(const Staged<Result, Arguments>& staged, const ObjectOptions& options = {}) {
  return compile_object(staged.program(), options,
                        argument_names(TreeDef::tuple({staged.in_tree(), TreeDef::dict({}, {})})),
                        result_names(staged.out_tree()));
}

// Writes a compiled program as an object file and its header; the weights too, if they are external.
template <class Result, class Arguments>
template <class Options>
void Compiled<Result, Arguments>::write_object(const std::string& object_path, const std::string& header_path,
                                               const Options& options, const std::string& weights_path) const {
  compile_object(*this, options).write(object_path, header_path, weights_path);
}

}  // namespace capibara::jax
