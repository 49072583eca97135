// A jitted function as object code.
#pragma once

#include <capibara/jit.h>
#include <capibara/object_code.h>

namespace capibara::detail {

// `arguments`, `results`: what the header calls each leaf. Arguments that the program does not read are left out. An
// empty name in the options is that of the jitted function.
jax::ObjectCode jit_entry_object(const JitEntry& entry, const jax::ObjectOptions& options,
                                 const std::vector<std::string>& arguments, const std::vector<std::string>& results);

}  // namespace capibara::detail
