// A jitted function as object code: its program for the arguments that it reads.
#include "transforms/jit_object.h"

#include "program/ir/plain_types.h"
#include "transforms/jit_entry.h"

namespace capibara::detail {

jax::ObjectCode jit_entry_object(const JitEntry& entry, const jax::ObjectOptions& options,
                                 const std::vector<std::string>& arguments, const std::vector<std::string>& results) {
  auto [program, inputs] = entry.pruned();
  if (has_explicit_types(program)) program = with_plain_types(program);
  std::vector<std::string> names;
  for (std::size_t input : inputs) {
    if (input < entry.captured.size()) {
      throw NotImplementedError(concat(
          "write_object: jit(", entry.options.name, ") reads ",
          entry.captures_tracer ? "a value of an outer function that is being traced" : "a reference that it captured",
          " (argument 'fun'); expected a function of its arguments and of constants; make it an argument"));
    }
    names.push_back(arguments.at(input - entry.captured.size()));
  }
  jax::ObjectOptions named = options;
  if (named.name.empty()) named.name = entry.options.name;
  const CompilerOptionsScope scope(entry.compiler_options);
  return jax::compile_object(program, named, names, results);
}

}  // namespace capibara::detail
