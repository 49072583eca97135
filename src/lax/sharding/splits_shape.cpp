// Explicit types of operations that move elements: reshapes, slices, joins.
#include <algorithm>

#include "core/array/format.h"
#include "core/sharding/device_groups.h"
#include "lax/shape/shape.h"
#include "lax/sharding/splits.h"
#include "program/derive/spmd.h"

namespace capibara {

namespace {

[[noreturn]] void refuse_reshape(const SplitArgs& args) {
  refuse_sharding(
      "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument of "
      "jax.lax.reshape. Got operand type: ",
      to_string(args.operands[0]), ", new sizes: ", shape_tuple(args.results[0].shape));
}

// The axes of consecutive dimensions, the outermost first, over these sizes; raises if they do not divide them.
std::vector<AxisList> distributed(const SplitArgs& args, const AxisList& axes, std::span<const int64_t> sizes) {
  std::vector<AxisList> out;
  std::size_t next = 0;
  for (int64_t size : sizes) {
    AxisList own;
    while (size > 1 && next < axes.size()) {
      const int64_t parts = args.mesh.axis_size(axes[next]);
      if (size % parts != 0) refuse_reshape(args);
      size /= parts;
      own.push_back(axes[next++]);
    }
    out.push_back(std::move(own));
  }
  if (next < axes.size()) refuse_reshape(args);
  return out;
}

Shape without_ones(const Shape& shape) {
  Shape rest;
  for (int64_t size : shape) {
    if (size != 1) rest.push_back(size);
  }
  return rest;
}

// Only dimensions of size 1 are added or removed.
std::vector<AxisList> around_ones(const ArrayType& from, const Shape& to) {
  std::vector<AxisList> kept, out;
  for (std::size_t d = 0; d < from.shape.size(); ++d) {
    if (from.shape[d] != 1) kept.push_back(split_axes(from, d));
  }
  auto next = kept.begin();
  for (int64_t size : to) out.push_back(size == 1 ? AxisList{} : *next++);
  return out;
}

// One dimension is split into several, or several are joined into one; the others stay.
std::vector<AxisList> reshaped(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  const Shape &from = x.shape, &to = args.results[0].shape;
  if (without_ones(from) == without_ones(to)) return around_ones(x, to);
  const std::size_t shorter = std::min(from.size(), to.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && from[front] == to[front]) ++front;
  while (front + back < shorter && from[from.size() - 1 - back] == to[to.size() - 1 - back]) ++back;
  const std::size_t old_count = from.size() - front - back, new_count = to.size() - front - back;
  if (old_count != 1 && new_count != 1) refuse_reshape(args);
  AxisList axes;
  bool gap = false;
  for (std::size_t d = front; d < front + old_count; ++d) {
    const AxisList& own = split_axes(x, d);
    if (gap && !own.empty()) refuse_reshape(args);
    gap = own.empty();
    axes.insert(axes.end(), own.begin(), own.end());
  }
  if (!axes.empty() && !args.attrs["dimensions"].is_none()) refuse_reshape(args);
  std::vector<AxisList> out;
  for (std::size_t d = 0; d < front; ++d) out.push_back(split_axes(x, d));
  for (AxisList& own : distributed(args, axes, std::span(to).subspan(front, new_count))) out.push_back(std::move(own));
  for (std::size_t d = from.size() - back; d < from.size(); ++d) out.push_back(split_axes(x, d));
  return out;
}

void check_reshape_sums(const SplitArgs& args, const Sharding& requested) {
  const PartitionSpec own = spec_of(args.operands[0]);
  for (const auto& [word, given, wanted] : {std::tuple{"unreduced", &own.unreduced, &requested.spec().unreduced},
                                            std::tuple{"reduced", &own.reduced, &requested.spec().reduced}}) {
    if (*given == *wanted) continue;
    if (!given->empty()) {
      throw ValueError(concat(
          "out_sharding passed to reshape must be ", word, " over the same mesh axes as operand. Got out_sharding: P",
          partitions_text(requested.spec()), " and operand type: ", short_string(args.operands[0])));
    }
    throw ValueError(
        concat("out_sharding passed to `reshape` cannot contain ", word, " axes. Got ", sharding_text(requested)));
  }
}

std::string axes_text(const AxisList& axes) {
  if (axes.size() == 1) return axes[0];
  const std::string text = partitions_text({{axes}, {}, {}});
  return text.substr(1, text.size() - 3);
}

// All operands with a mesh have the same sharding.
PartitionSpec common_spec(const SplitArgs& args) {
  const Differing found = differing_shardings(args.operands);
  if (!found.other) return spec_of(*found.first);
  refuse_sharding("All operands should have the same sharding. Got shardings ",
                  joined_texts(args.operands, ", ", type_sharding_text));
}

}  // namespace

Splits broadcast_in_dim_splits(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  if (const ShardingAttr* requested = requested_sharding(args.attrs)) return {requested->sharding.spec()};
  PartitionSpec spec = spec_of(x, std::vector<AxisList>(args.results[0].shape.size()));
  const Ints& dims = args.attrs.ints("broadcast_dimensions");
  for (std::size_t d = 0; d < dims.size(); ++d) spec.dims[static_cast<std::size_t>(dims[d])] = split_axes(x, d);
  return {spec};
}

Splits stated_splits(const SplitArgs& args) {
  Splits splits;
  for (const ArrayType& type : args.results) splits.push_back(spec_of(type));
  return splits;
}

Splits requested_splits(const SplitArgs& args) {
  const ShardingAttr* requested = requested_sharding(args.attrs);
  return Splits(args.results.size(), requested ? requested->sharding.spec() : PartitionSpec{});
}

Splits reshape_splits(const SplitArgs& args) {
  if (const ShardingAttr* requested = requested_sharding(args.attrs)) {
    check_reshape_sums(args, requested->sharding);
    return {requested->sharding.spec()};
  }
  const ArrayType& x = args.operands[0];
  return {spec_of(x, splits_nothing(x) ? std::vector<AxisList>() : reshaped(args))};
}

Splits squeeze_splits(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  return {spec_of(x, axes_of(x, other_dims(x.rank(), args.attrs.ints("dimensions"))))};
}

Splits transpose_splits(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  return {spec_of(x, axes_of(x, args.attrs.ints("permutation")))};
}

Splits tile_splits(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  const Ints& reps = args.attrs.ints("reps");
  for (std::size_t d = 0; d < reps.size(); ++d) {
    if (reps[d] == 1 || split_axes(x, d).empty()) continue;
    refuse_sharding("Operand cannot be sharded on dimension ", d,
                    " when the tiling is non-trivial. Got input type: ", to_string(x),
                    " with reps: ", shape_tuple(reps));
  }
  return {spec_of(x)};
}

SplitRule resized_splits(const char* word) {
  return [word](const SplitArgs& args) {
    const ArrayType& x = args.operands[0];
    for (const ArrayType& result : args.results) {
      for (std::size_t d = 0; d < x.shape.size(); ++d) {
        const AxisList& axes = split_axes(x, d);
        const int64_t parts = axes_size(args.mesh, axes);
        if (axes.empty() || x.shape[d] == result.shape[d] || result.shape[d] % parts == 0) continue;
        refuse_sharding(word, " on sharded dims where out dim (", result.shape[d], ") is not divisible by mesh axes (",
                        parts, ") with spec (", axes_text(axes),
                        ") is not implemented. Got input type=", short_string(x),
                        " and output shape=", shape_tuple(result.shape));
      }
    }
    return Splits(args.results.size(), spec_of(x));
  };
}

Splits dynamic_update_slice_splits(const SplitArgs& args) {
  const ArrayType &x = args.operands[0], &update = args.operands[1];
  if (spec_of(x) == spec_of(update)) return {spec_of(x)};
  auto shown = [&](const ArrayType& type) {
    if (!type.sharding.is_explicit()) return concat(to_string(type), "({})");
    return concat(to_string(type), "({Explicit: ", axis_tuple(args.mesh.axis_names), "})");
  };
  refuse_sharding("dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding ",
                  shown(x), " and update sharding ", shown(update), ".");
}

Splits concatenate_splits(const SplitArgs& args) { return {common_spec(args)}; }

Splits stack_splits(const SplitArgs& args) {
  PartitionSpec spec = common_spec(args);
  spec.dims.insert(spec.dims.begin() + args.attrs.integer("axis"), AxisList{});
  return {spec};
}

Splits unstack_splits(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  const int64_t axis = args.attrs.integer("axis");
  if (!axes_at(x, axis).empty()) {
    refuse_sharding("unstack operand cannot be sharded on the unstacking axis ", axis,
                    ". Got operand type=", short_string(x));
  }
  PartitionSpec spec = spec_of(x);
  spec.dims.erase(spec.dims.begin() + axis);
  return Splits(args.results.size(), spec);
}

}  // namespace capibara
