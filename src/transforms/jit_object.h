// A jitted function as object code.
#pragma once

#include <capibara/jit.h>
#include <capibara/object_code.h>

namespace capibara::detail {

// `arguments`, `results`: the name of each leaf in the header. Arguments that the program does not read are left out.
// An empty name in the options means that of the jitted function.
jax::ObjectCode jit_entry_object(const JitEntry& entry, const jax::ObjectOptions& options,
                                 const std::vector<std::string>& arguments, const std::vector<std::string>& results);

}  // namespace capibara::detail
