// Named axes of reductions: all-gathered to the front of the operand, they become ordinary axes.
#include "library/table/named_axes.h"

#include <capibara/lax.h>

#include <algorithm>
#include <functional>

namespace capibara::library {

namespace {

namespace lax = jax::lax;

// The parsed axis argument.
struct Axes {
  std::vector<std::string> names;
  Ints positions;
};

Axes axes_of(const Arguments& a) {
  Axes axes;
  auto add = [&](const Value& value) {
    if (const std::string* name = value.get_if<std::string>()) {
      axes.names.push_back(*name);
    } else if (const int64_t* position = value.get_if<int64_t>()) {
      axes.positions.push_back(*position);
    } else {
      throw TypeError(
          concat(a.function(), ": argument 'axis' must hold integers and names of axes, got ", value.type_name()));
    }
  };
  const Value& axis = a["axis"];
  if (const Sequence* sequence = axis.sequence()) {
    for (const Value& item : sequence->items) add(item);
  } else {
    add(axis);
  }
  return axes;
}

Array gathered(Array x, const std::vector<std::string>& names) {
  for (auto name = names.rbegin(); name != names.rend(); ++name) x = lax::all_gather(x, *name);
  return x;
}

// An array that broadcasts against the operand, with all of the operand's axes explicit.
Array aligned(const Array& x, int64_t rank) {
  Shape shape(static_cast<std::size_t>(std::max<int64_t>(rank - x.ndim(), 0)), 1);
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  return lax::reshape(x, shape);
}

Array front_removed(const Array& x, std::size_t count) {
  Shape shape(x.shape().begin() + static_cast<std::ptrdiff_t>(count), x.shape().end());
  return lax::reshape(x, shape);
}

Value map_arrays(const Value& value, const std::function<Array(const Array&)>& function) {
  if (const Array* array = value.array()) return function(*array);
  const Sequence* sequence = value.sequence();
  if (!sequence) return value;
  Sequence result = *sequence;
  for (Value& item : result.items) item = map_arrays(item, function);
  return result;
}

}  // namespace

bool names_axes(const Arguments& a) {
  const Value& axis = a["axis"];
  if (axis.get_if<std::string>()) return true;
  const Sequence* sequence = axis.sequence();
  return sequence && std::any_of(sequence->items.begin(), sequence->items.end(),
                                 [](const Value& item) { return item.get_if<std::string>() != nullptr; });
}

void refuse_names(const Arguments& a) {
  throw NotImplementedError(concat("Named reductions not implemented for jnp.", a.function(), "()"));
}

Value call_gathered(const Arguments& a, Row row, bool keeps_shape) {
  const Axes axes = axes_of(a);
  const auto count = static_cast<int64_t>(axes.names.size());
  const auto& parameters = a.signature().parameters();
  const Array operand = a.array(parameters[0].name);
  Values values;
  for (const Parameter& parameter : parameters) {
    const std::string_view name = parameter.name;
    if (name == "axis") {
      Ints all;
      for (int64_t i = 0; i < count; ++i) all.push_back(i);
      for (int64_t position : axes.positions) all.push_back(position < 0 ? position : position + count);
      values.push_back(Value::tuple_of(all));
    } else if (&parameter == &parameters[0]) {
      values.emplace_back(gathered(operand, axes.names));
    } else if ((name == "where" || name == "b" || name == "mean") && a.given(name)) {
      values.emplace_back(gathered(aligned(a.array(name), operand.ndim()), axes.names));
    } else {
      values.push_back(a[name]);
    }
  }
  const std::string function = a.function();
  Value result = row(Arguments(function, a.signature(), values));
  if (keeps_shape) {
    return map_arrays(result, [&](Array x) {
      for (const std::string& name : axes.names) x = lax::dynamic_index_in_dim(x, lax::axis_index(name), 0, false);
      return x;
    });
  }
  const bool keeps_dims = a.signature().find("keepdims") >= 0 && a.flag("keepdims");
  if (!keeps_dims) return result;
  return map_arrays(result, [&](const Array& x) { return front_removed(x, axes.names.size()); });
}

}  // namespace capibara::library
