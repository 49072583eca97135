// Derivatives shared by reductions, windows and cumulative operations: regions on arrays, trees of halves.
#include "lax/reduce/reduction_rules.h"

#include <algorithm>

#include "lax/rules.h"
#include "program/derive/derive.h"

namespace capibara {

namespace lax = jax::lax;

Arrays apply_region(const Program& region, std::span<const Array> inputs) {
  int64_t rank = inputs[0].ndim();
  FlatFunction function = [&region](std::span<const Array> xs) { return evaluate_program(region, xs); };
  const std::vector<int64_t> in_dims(inputs.size(), 0), out_dims(region.outputs().size(), 0);
  const Shape& shape = inputs[0].shape();
  for (int64_t d = rank - 1; d >= 0; --d) {
    MappedAxis axis{"", shape[static_cast<std::size_t>(d)]};
    function = [inner = std::move(function), axis, &in_dims, &out_dims](std::span<const Array> xs) {
      return vmap_flat(inner, xs, in_dims, out_dims, axis);
    };
  }
  return function(inputs);
}

JvpResult reduction_tree_jvp(const FlatFunction& combine, const Arrays& init_values, std::span<const Array> primals,
                             std::span<const Array> tangents, const Ints& axes) {
  const Shape& shape = primals[0].shape();
  std::size_t count = primals.size();
  Ints permutation = axes;
  Shape kept;
  int64_t reduced = 1;
  for (int64_t axis : axes) reduced *= shape[static_cast<std::size_t>(axis)];
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
    permutation.push_back(d);
    kept.push_back(shape[static_cast<std::size_t>(d)]);
  }
  Shape flat = kept;
  flat.insert(flat.begin(), reduced);
  Arrays xs, ts;
  for (const Array& x : primals) xs.push_back(lax::reshape(x, flat, permutation));
  for (std::size_t i = 0; i < count; ++i) {
    // jax instantiates the tangents here, since each of them is reshaped.
    Array t = tangents[i].defined() ? tangents[i] : lax::zeros(tangent_type(primals[i].type()));
    ts.push_back(lax::reshape(t, flat, permutation));
  }
  // Halves are combined until one row is left: the depth, and so the program, grows with the logarithm of the length.
  auto tree = [&](std::span<const Array> args) -> Arrays {
    Arrays values(args.begin(), args.end());
    while (values[0].shape(0) > 1) {
      int64_t n = values[0].shape(0), first = (n + 1) / 2;
      Arrays halves;
      for (const Array& x : values) halves.push_back(lax::slice_in_dim(x, 0, first));
      for (const Array& x : values) halves.push_back(lax::slice_in_dim(x, first, std::nullopt));
      if (n % 2 != 0) {
        std::vector<lax::PadDim> padding(values[0].shape().size());
        padding[0].high = 1;
        for (std::size_t i = 0; i < count; ++i)
          halves[count + i] = lax::pad(halves[count + i], init_values[i], padding);
      }
      values = combine(halves);
    }
    Arrays out;
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(values[i].shape(0) == 0 ? lax::full(kept, init_values[i]) : lax::squeeze(values[i], {0}));
    }
    return out;
  };
  return jvp_flat(tree, xs, ts);
}

}  // namespace capibara
