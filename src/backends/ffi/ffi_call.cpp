// The public functions: calls are custom_call equations whose attributes remain text.
#include <capibara/error.h>
#include <capibara/ffi.h>

#include <algorithm>

#include "backends/ffi/targets.h"
#include "program/ir/handles.h"

namespace capibara::jax::ffi {

namespace {

Attr layouts_of(const std::vector<Ints>& given, const Types& types, const char* what) {
  if (!given.empty() && given.size() != types.size()) {
    throw ValueError(concat("The number of ", what, "s (", types.size(), ") must equal the number of ", what,
                            " layouts (", given.size(), ")."));
  }
  Attr::List layouts;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Ints order;
    for (int64_t dim = types[i].rank(); dim-- > 0;) order.push_back(dim);
    if (!given.empty()) {
      Ints sorted = given[i];
      std::sort(sorted.rbegin(), sorted.rend());
      if (sorted != order) {
        throw ValueError(
            concat("ffi_call: the layout of ", what, " ", i, " must name each of ", order.size(), " dimensions once"));
      }
      order = given[i];
    }
    layouts.emplace_back(std::move(order));
  }
  return layouts;
}

}  // namespace

void register_ffi_target(const std::string& name, const Handlers& handlers) {
  capibara::ffi::register_target(name, handlers);
}

int64_t register_ffi_type(const std::string& name, int64_t id, void (*deleter)(void*)) {
  return capibara::ffi::register_type(name, id, deleter);
}

Arrays ffi_call(const std::string& name, const Types& results, const Arrays& operands, const CallOptions& options) {
  const std::string& method = options.vmap_method;
  for (const char* known :
       {"", "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"}) {
    if (method == known) break;
    if (std::string_view(known) == "legacy_vectorized")
      throw ValueError(
          concat("ffi_call: vmap_method must be sequential, expand_dims or broadcast_all, got '", method, "'"));
  }
  Types given;
  for (const Array& operand : operands) given.push_back(operand.type());
  Attr::List types, aliases;
  for (const ArrayType& type : results) types.emplace_back(type);
  for (const auto& [input, output] : options.input_output_aliases) {
    if (input < 0 || input >= static_cast<int64_t>(operands.size()) || output < 0 ||
        output >= static_cast<int64_t>(results.size())) {
      throw ValueError(concat("input_output_aliases contains the mapping '", input, ":", output, "', but there are ",
                              operands.size(), " inputs and ", results.size(), " outputs"));
    }
    aliases.emplace_back(Ints{output, input});
  }
  return capibara::bind(prim::custom_call(), operands,
                        {{"call_target_name", name},
                         {"result_types", std::move(types)},
                         {"has_side_effect", options.has_side_effect},
                         {"mhlo_backend_config", options.attributes},
                         {"vmap_method", method.empty() ? Attr() : Attr(method)},
                         {"operand_layouts", layouts_of(options.input_layouts, given, "input")},
                         {"result_layouts", layouts_of(options.output_layouts, results, "output")},
                         {"output_operand_aliases", std::move(aliases)}});
}

}  // namespace capibara::jax::ffi
