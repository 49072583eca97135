// The sharding that a function's `out_sharding` argument requests for its result.
#pragma once

#include <Python.h>
#include <capibara/placement.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "library/table/function.h"

namespace capibara::python {

struct RequestedSharding {
  Sharding sharding;
  std::shared_ptr<const NamedSharding> devices;
};

// The name that jax gives a function in errors about `out_sharding`.
std::string name_in_errors(std::string_view module, const std::string& name);
// Parses the argument for a function of this name; empty if it requests nothing.
std::optional<RequestedSharding> requested_out_sharding(PyObject* argument, const std::string& function);
library::Value call_asking(const library::Function& function, const library::Signature& signature,
                           library::Values values, const RequestedSharding& requested);

}  // namespace capibara::python
