// The arguments of a jitted Python function, split into static values and arrays.
#pragma once

#include <capibara/device.h>

#include "calls.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capibara::python {

struct JitSettings {
  std::set<int> static_positions;
  std::vector<std::string> static_names;
  std::set<int> donated_positions;
  std::vector<std::string> donated_names;
  std::optional<Device> device;  // jit(device=..., backend=...)
};

// The parts of a call: static arguments and structures in one hashable key, arrays in the leaves.
struct JitCall {
  nb::object key;  // (static positions and values, in tree, donation)
  PyTree in;
  Arrays leaves;
  std::vector<std::pair<std::size_t, nb::object>> statics;  // static positional arguments
  nb::object named_statics;
  std::size_t positional = 0;
  TreeDef structure;
};

JitCall take_apart(const JitSettings& settings, nb::handle function, nb::handle args, nb::handle kwargs);

// The leaves of the dynamic arguments, unconverted.
std::vector<nb::object> dynamic_leaves(const JitSettings& settings, nb::handle args, nb::handle kwargs);

// Which leaves of a call may be overwritten by its results.
std::vector<bool> donated_leaves(const JitSettings& settings, const JitCall& call);

// Rebuilds all positional arguments from the dynamic ones.
nb::object with_static(const JitCall& call, const nb::object& dynamic, bool hide_static);

// (args, kwargs) of a call with each leaf replaced by its index, from which errors find its name.
nb::object numbered_arguments(const JitCall& call);

}  // namespace capibara::python
