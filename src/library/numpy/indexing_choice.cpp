// jax.numpy: selecting elements by index or condition, and functions applied to parts of an array.
#include <capibara/control.h>
#include <capibara/indexing.h>
#include <capibara/lax.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/manipulation.h>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"
#include "library/numpy/indexing_steps.h"
#include "transforms/flat.h"

namespace capibara::jax::numpy {

Array choose(const Array& a, const Arrays& choices, const ChooseOptions& options) {
  if (!is_integer(a.dtype())) throw ValueError(concat("choose: a must be integers, got ", to_string(a.type())));
  const auto count = static_cast<int64_t>(choices.size());
  Array index = a;
  if (options.mode == "raise") {
    if (a.is_tracer()) {
      throw ConcretizationTypeError(
          "Abstract tracer value encountered where concrete value is expected. The error occurred because jnp.choose "
          "was jit-compiled "
          "with mode='raise'. Use mode='wrap' or mode='clip' instead.");
    }
    for (int64_t i : a.to_vector<int64_t>()) {
      if (i < 0 || i >= count)
        throw ValueError(concat("invalid entry in choice array: choose got ", i, " for ", count, " choices"));
    }
  } else if (options.mode == "wrap") {
    index = a % count;
  } else if (options.mode == "clip") {
    index = clip(a, {.min = 0, .max = count - 1});
  } else {
    throw ValueError(concat("choose: mode must be 'raise', 'wrap' or 'clip', got '", options.mode, "'"));
  }
  Arrays all{index};
  all.insert(all.end(), choices.begin(), choices.end());
  all = capibara::broadcast_arrays("choose", all);
  Array table = stack(Arrays(all.begin() + 1, all.end()));
  table = lax::convert_element_type(table, table.dtype(), false);
  std::vector<Index> places{Index(all[0])};
  const Shape shape = all[0].shape();
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    Shape line(shape.size(), 1);
    line[static_cast<std::size_t>(i)] = at(shape, i);
    places.emplace_back(lax::broadcast_in_dim(counting_array(at(shape, i)), line, {i}));
  }
  return capibara::index(table, places);
}

Array select(const Arrays& condlist, const Arrays& choicelist, const Array& default_) {
  if (condlist.size() != choicelist.size()) {
    throw ValueError(concat("select: condlist and choicelist must have equal lengths, got ", condlist.size(), " and ",
                            choicelist.size()));
  }
  if (condlist.empty()) throw ValueError("select: condlist must not be empty");
  // The default comes first, under a condition that is always false: argmax over all False is 0.
  Arrays conditions{lax::zeros(sample_type(DType::bool_, {}))};
  for (const Array& condition : condlist) conditions.push_back(condition);
  conditions = capibara::broadcast_arrays("select", conditions);
  for (Array& condition : conditions) condition = lax::convert_element_type(condition, DType::bool_, false);
  Arrays choices{default_};
  choices.insert(choices.end(), choicelist.begin(), choicelist.end());
  choices = promote_dtypes(choices);
  Arrays all{lax::argmax(lax::stack(conditions), 0, DType::int32)};
  all.insert(all.end(), choices.begin(), choices.end());
  all = capibara::broadcast_arrays("select", all);
  return lax::select_n(all[0], Arrays(all.begin() + 1, all.end()));
}

Array piecewise(const Array& x, const Array& condlist, const std::vector<ElementFunction>& funclist) {
  if (condlist.ndim() == 0) throw TypeError("piecewise: condlist must be a sequence of conditions, got a scalar");
  const auto count = static_cast<std::size_t>(condlist.shape(0));
  if (funclist.size() != count && funclist.size() != count + 1) {
    throw ValueError(concat("piecewise: with ", count, " conditions, ", count, " or ", count + 1,
                            " functions are expected, got ", funclist.size()));
  }
  const DType dtype = x.dtype();
  std::vector<FlatFunction> branches;
  branches.push_back([&](std::span<const Array> in) -> Arrays {
    if (funclist.size() == count) return {lax::zeros(sample_type(dtype, {}))};
    return {lax::convert_element_type(funclist.back()(in[0]), dtype, false)};
  });
  for (std::size_t i = 0; i < count; ++i) {
    branches.push_back([&, i](std::span<const Array> in) -> Arrays {
      return {lax::convert_element_type(funclist[i](in[0]), dtype, false)};
    });
  }
  // The last condition that holds: the first position of the maximum of the running count of conditions.
  Array holds =
      lax::convert_element_type(lax::convert_element_type(condlist, DType::bool_, false), DType::int32, false);
  std::vector<lax::PadDim> front(static_cast<std::size_t>(holds.ndim()));
  front[0].low = 1;
  Array which = lax::argmax(lax::cumsum(lax::pad(holds, 0, front), {.axis = 0}), 0, DType::int32);
  auto choose_branch = [&](std::span<const Array> in) -> Arrays {
    return lax::detail::cond_flat(lax::detail::branch_index(in[0], branches.size()), branches, {in[1]});
  };
  if (which.ndim() == 0 && x.ndim() == 0) return choose_branch(Arrays{which, x})[0];
  // Each function receives one element.
  Arrays both = capibara::broadcast_arrays("piecewise", {which, x});
  const Shape shape = both[1].shape();
  const bool one_branch = which.ndim() == 0;
  Arrays flat{one_branch ? which : ravel(both[0]), ravel(both[1])};
  const std::vector<int64_t> dims{one_branch ? not_mapped : 0, 0};
  return reshape(vmap_flat(choose_branch, flat, dims, {0}, MappedAxis{"", flat[1].size()})[0], shape);
}

// ---- functions of vectors ----------------------------------------------------------------------------------------

namespace {

// Maps over `before` leading axes and `after` trailing ones; the results of the trailing axes come last.
Arrays map_vectors(const std::function<Arrays(const Array&)>& function, const Array& x, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return function(x);
  const int64_t axis = before > 0 ? 0 : after;
  auto inside = [&](std::span<const Array> in) {
    return map_vectors(function, in[0], std::max<int64_t>(0, before - 1), before > 0 ? after : after - 1);
  };
  const std::vector<int64_t> dims{axis};
  Arrays out = vmap_flat(inside, Arrays{x}, dims, {}, MappedAxis{"", x.shape(axis)});
  if (before > 0) return out;
  for (Array& y : out) y = moveaxis(y, 0, -1);
  return out;
}

}  // namespace

Arrays apply_along_axis(const std::function<Arrays(const Array& vector)>& func1d, int64_t axis, const Array& arr) {
  axis = canonical_axis("apply_along_axis", axis, arr.ndim());
  return map_vectors(func1d, arr, axis, arr.ndim() - axis - 1);
}

Array apply_along_axis(const std::function<Array(const Array& vector)>& func1d, int64_t axis, const Array& arr) {
  const std::function<Arrays(const Array&)> listed = [&](const Array& vector) { return Arrays{func1d(vector)}; };
  return apply_along_axis(listed, axis, arr)[0];
}

Array apply_over_axes(const std::function<Array(const Array&, int64_t axis)>& func, const Array& a, const Ints& axes) {
  Array x = a;
  for (int64_t axis : axes) {
    Array y = func(x, axis);
    if (y.ndim() != x.ndim() && y.ndim() != x.ndim() - 1) {
      throw ValueError(concat("apply_over_axes: the function must keep the number of dimensions or remove one, got ",
                              to_string(y.type()), " for ", to_string(x.type())));
    }
    x = y.ndim() == x.ndim() ? y : expand_dims(y, axis);
  }
  return x;
}

}  // namespace capibara::jax::numpy
