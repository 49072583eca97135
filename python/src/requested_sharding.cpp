// Calls with `out_sharding`: passed to the operation that makes the result, or with the axes left to the compiler.
#include "requested_sharding.h"

#include <algorithm>
#include <set>

#include "bindings.h"
#include "core/sharding/explicit.h"
#include "lax/sharding/out_sharding.h"
#include "program/ir/handles.h"

namespace capibara::python {

namespace {

Sharding at_rank(const RequestedSharding& requested, std::size_t rank) {
  PartitionSpec spec = requested.sharding.spec();
  if (spec.dims.size() > rank) {
    throw ValueError(concat("PartitionSpec P", partitions_text(spec), " is only valid for values of rank at least ",
                            spec.dims.size(), ", but was applied to a value of rank ", rank, "."));
  }
  spec.dims.resize(rank);
  return Sharding::explicit_over(requested.sharding.mesh(), std::move(spec));
}

Array with_sharding(const Array& x, const Sharding& wanted, const std::shared_ptr<const NamedSharding>& devices) {
  if (x.type().sharding == wanted) return x;
  const std::shared_ptr<const Opaque> attr = std::make_shared<const ShardingAttr>(wanted, devices);
  return bind1(prim::reshard(), {x}, {{"dst_sharding", attr}});
}

// True if one operation makes the function's result and takes the sharding; other functions run without Explicit axes.
bool asks_operation(std::string_view name) {
  static const std::set<std::string_view> names = {
      "zeros",      "ones",   "full",    "empty",     "zeros_like",   "ones_like",        "full_like",
      "empty_like", "arange", "reshape", "ravel",     "broadcast_to", "broadcast",        "broadcast_in_dim",
      "dot",        "matmul", "einsum",  "tensordot", "dot_general",  "broadcasted_iota", "reduce_sum"};
  return names.count(name) != 0;
}

// True if an einsum takes several matmuls: only the last one's type is requested, the compiler places the others.
bool multiplies_several(std::string_view name, const library::Values& values) {
  if (name != "einsum") return false;
  return std::any_of(values.begin(), values.end(), [](const library::Value& value) {
    const library::Sequence* operands = value.sequence();
    return operands && std::count_if(operands->items.begin(), operands->items.end(),
                                     [](const library::Value& item) { return item.get_if<Array>() != nullptr; }) > 2;
  });
}

// The value with Explicit axes removed from the types of its arrays, also those in sequences.
library::Value without_axes(const library::Value& value) {
  if (const library::Sequence* sequence = value.sequence()) {
    library::Sequence plain = *sequence;
    for (library::Value& item : plain.items) item = without_axes(item);
    return plain;
  }
  if (const Array* array = value.get_if<Array>(); array && array->type().sharding.is_explicit())
    return with_sharding(*array, Sharding(), nullptr);
  return value;
}

}  // namespace

std::string name_in_errors(std::string_view module, const std::string& name) {
  const bool plain = name == "einsum" || name == "take" || name == "repeat";
  return module.ends_with(".numpy") && !plain ? concat("jnp.", name) : name;
}

std::optional<RequestedSharding> requested_out_sharding(PyObject* argument, const std::string& function) {
  nb::object requested =
      nb::module_::import_("capibara.jax._explicit").attr("requested")(nb::handle(argument), function);
  if (requested.is_none()) return std::nullopt;
  const auto& placement = nb::cast<const NamedSharding&>(nb::object(requested[0]));
  RequestedSharding result;
  result.sharding = type_sharding(placement, placement.spec.dims.size());
  if (nb::cast<bool>(nb::object(requested[1]))) result.devices = std::make_shared<const NamedSharding>(placement);
  return result;
}

library::Value call_asking(const library::Function& function, const library::Signature& signature,
                           library::Values values, const RequestedSharding& requested) {
  library::Value result;
  if (asks_operation(function.name) && !multiplies_several(function.name, values)) {
    const OutShardingScope scope(requested.sharding);
    result = function.call(library::Arguments(function.name, signature, values));
  } else {
    for (library::Value& value : values) value = without_axes(value);
    result = function.call(library::Arguments(function.name, signature, values));
  }
  auto placed = [&](const Array& x) {
    return with_sharding(x, at_rank(requested, x.shape().size()), requested.devices);
  };
  if (const Array* array = result.get_if<Array>()) return placed(*array);
  if (const auto* both = result.get_if<std::shared_ptr<const library::Sequence>>();
      both && function.name == "rng_bit_generator") {
    const library::Values& items = (*both)->items;  // the state stays unsharded
    return library::Value::tuple_of(library::Values{items[0], placed(*items[1].get_if<Array>())});
  }
  return result;
}

}  // namespace capibara::python
