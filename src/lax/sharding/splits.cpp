// Explicit types of operations on each element, reductions, prefix operations and matrices.
#include "lax/sharding/splits.h"

#include <algorithm>

#include "lax/shape/shape.h"

namespace capibara {

namespace {

const AxisList& unreduced(const ArrayType& type) {
  static const AxisList none;
  return type.sharding.is_explicit() ? type.sharding.spec().unreduced : none;
}

const AxisList& reduced(const ArrayType& type) {
  static const AxisList none;
  return type.sharding.is_explicit() ? type.sharding.spec().reduced : none;
}

bool lists_axis(const AxisList& axes, const std::string& axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

[[noreturn]] void refuse_unreduced(const SplitArgs& args) {
  throw NotImplementedError(
      concat("unreduced rule for ", args.primitive.name(),
             " is not implemented. Please file an issue at https://github.com/jax-ml/jax/issues"));
}

bool has_unreduced(const SplitArgs& args) {
  return std::any_of(args.operands.begin(), args.operands.end(),
                     [](const ArrayType& type) { return !unreduced(type).empty(); });
}

// Operands of the result's rank agree, or are of size 1.
std::vector<AxisList> broadcast_axes(const SplitArgs& args) {
  std::vector<const ArrayType*> arrays;
  for (const ArrayType& type : args.operands) {
    if (!type.shape.empty()) arrays.push_back(&type);
  }
  std::vector<AxisList> axes(args.results[0].shape.size());
  for (std::size_t d = 0; d < axes.size(); ++d) {
    for (const ArrayType* type : arrays) {
      const AxisList& own = split_axes(*type, d);
      if (own.empty()) continue;
      if (axes[d].empty()) axes[d] = own;
      if (axes[d] == own) continue;
      std::string specs;
      for (const ArrayType* one : arrays) specs += concat(specs.empty() ? "" : ", ", partitions_text(spec_of(*one)));
      throw ShardingTypeError(
          concat(args.primitive.name(), " got incompatible shardings for broadcasting: ", specs, "."));
    }
  }
  return axes;
}

AxisList replicated_axes(const ArrayType& type, const Mesh& mesh) {
  AxisList rest;
  const PartitionSpec spec = spec_of(type);
  for (const std::string& axis : mesh.axis_names) {
    bool used =
        lists_axis(spec.unreduced, axis) || lists_axis(spec.reduced, axis) || lists_axis(type.sharding.varying(), axis);
    for (const AxisList& axes : spec.dims) used = used || lists_axis(axes, axis);
    if (!used) rest.push_back(axis);
  }
  return rest;
}

// The axes over which cotangents of all operands are summed.
AxisList joint_reduced(const SplitArgs& args) {
  AxisList joint;
  for (const ArrayType& type : args.operands) {
    if (reduced(type).empty()) continue;
    if (!joint.empty() && joint != reduced(type)) {
      throw ShardingTypeError(concat("All inputs should be reduced across the same mesh axes. Got specs: {",
                                     axis_set_text(joint), ", ", axis_set_text(reduced(type)), "}"));
    }
    joint = reduced(type);
  }
  if (joint.empty()) return joint;
  for (const ArrayType& type : args.operands) {
    const AxisList free = replicated_axes(type, args.mesh);
    const bool is_plain_scalar = type.shape.empty() && !type.sharding.is_explicit();
    for (const std::string& axis : joint) {
      if (!is_plain_scalar && lists_axis(free, axis)) {
        throw ShardingTypeError(concat("Inputs cannot be replicated on the same axes that another input is reduced on. "
                                       "Got input type: ",
                                       to_string(type), " and reduced spec: ", axis_set_text(joint)));
      }
      bool differs = lists_axis(type.sharding.varying(), axis);
      for (std::size_t d = 0; d < type.shape.size(); ++d) differs = differs || lists_axis(split_axes(type, d), axis);
      if (differs) {
        throw ShardingTypeError(
            concat("Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the "
                   "input which is reduced to be sharded on the mesh axes it is reduced on via "
                   "`jax.sharding.reshard(inp, jax.P(...))`. Got input type: ",
                   to_string(type), " and reduced spec: ", axis_set_text(joint)));
      }
    }
  }
  return joint;
}

std::vector<AxisList> dims_without(const ArrayType& type, const Ints& axes) {
  std::vector<AxisList> rest;
  for (int64_t d : other_dims(type.rank(), axes)) rest.push_back(split_axes(type, static_cast<std::size_t>(d)));
  return rest;
}

}  // namespace

PartitionSpec spec_of(const ArrayType& type) {
  PartitionSpec spec;
  if (type.sharding.is_explicit()) spec = type.sharding.spec();
  spec.dims.resize(type.shape.size());
  return spec;
}

bool splits_nothing(const ArrayType& type) {
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (!split_axes(type, d).empty()) return false;
  }
  return true;
}

void refuse_partial_sums(const SplitArgs& args) {
  for (const ArrayType& type : args.operands) {
    if (unreduced(type).empty() && reduced(type).empty()) continue;
    throw NotImplementedError(concat("unreduced/reduced rule for ", args.primitive.name(),
                                     " is not implemented. Please file an issue at "
                                     "https://github.com/jax-ml/jax/issues"));
  }
}

std::string shaped_text(const ArrayType& type) {
  return concat("ShapedArray(", to_string(type), type.weak_type ? ", weak_type=True)" : ")");
}

Sharding batched_sharding(const BatchArgs& args, const Array& operand, int64_t dim, int64_t to) {
  const ShardingAttr* asked = asked_sharding(args.attrs);
  if (!asked || !asked->sharding.is_explicit()) return {};
  const Sharding& inner = asked->sharding;
  PartitionSpec spec = inner.spec();
  AxisList axes = split_axes(operand.type(), static_cast<std::size_t>(dim));
  if (axes.empty() && args.axis.split.is_explicit()) {
    // A value that the compiler places inside: vmap knows the axes, those of the result are Explicit again.
    auto is_used = [&](const std::string& axis) {
      return std::any_of(spec.dims.begin(), spec.dims.end(),
                         [&](const AxisList& own) { return lists_axis(own, axis); });
    };
    for (const std::string& axis : args.axis.split.spec().dims[0]) {
      if (inner.mesh().type_of(axis) == AxisType::Explicit && !is_used(axis)) axes.push_back(axis);
    }
  }
  spec.dims.insert(spec.dims.begin() + to, std::move(axes));
  return Sharding::explicit_over(inner.mesh(), std::move(spec), inner.varying());
}

// ---- each element -------------------------------------------------------------------------------------------------

Splits unary_splits(const SplitArgs& args) {
  if (has_unreduced(args)) refuse_unreduced(args);
  return {spec_of(args.operands[0])};
}

Splits nary_splits(const SplitArgs& args) {
  PartitionSpec spec{broadcast_axes(args), {}, {}};
  spec.reduced = joint_reduced(args);
  if (has_unreduced(args)) refuse_unreduced(args);
  return Splits(args.results.size(), spec);
}

Splits add_splits(const SplitArgs& args) {
  PartitionSpec spec{broadcast_axes(args), {}, {}};
  spec.reduced = joint_reduced(args);
  const AxisList &x = unreduced(args.operands[0]), &y = unreduced(args.operands[1]);
  if (!x.empty() && !y.empty() && x != y) {
    throw ShardingTypeError(concat("lhs and rhs to `add` must be unreduced along the same mesh axes. Got lhs=",
                                   axis_set_text(x), ", rhs=", axis_set_text(y)));
  }
  if (x.empty() != y.empty()) {
    const char *sum = y.empty() ? "lhs" : "rhs", *other = y.empty() ? "rhs" : "lhs";
    throw ShardingTypeError(concat(sum, " is unreduced while ", other, " is not. `add` operation does not allow this "
                                   "because there will be implicit communication. Please reduce ",
                                   sum, " via `reshard` before calling `add`."));
  }
  spec.unreduced = x;
  return {spec};
}

Splits mul_splits(const SplitArgs& args) {
  PartitionSpec spec{broadcast_axes(args), {}, {}};
  spec.reduced = joint_reduced(args);
  const ArrayType &x = args.operands[0], &y = args.operands[1];
  if (!unreduced(x).empty() && !unreduced(y).empty()) {
    throw ShardingTypeError(concat("lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs=",
                                   axis_set_text(unreduced(x)), ", rhs=", axis_set_text(unreduced(y))));
  }
  for (bool first : {true, false}) {
    const ArrayType &sum = first ? x : y, &other = first ? y : x;
    if (unreduced(sum).empty()) continue;
    if (unreduced(sum) != reduced(other) && !(other.shape.empty() && !other.sharding.is_explicit())) {
      throw ShardingTypeError(concat(first ? "RHS should be reduced along the same axes LHS is unreduced on. Got lhs="
                                           : "LHS should be reduced along the same axes RHS is unreduced on. Got lhs=",
                                     to_string(x), " and rhs=", to_string(y)));
    }
    spec.unreduced = unreduced(sum);
    spec.reduced.clear();
  }
  return {spec};
}

Splits same_splits(const SplitArgs& args) { return Splits(args.results.size(), spec_of(args.operands[0])); }

Splits clamp_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  return {spec_of(args.operands[1])};
}

Splits select_splits(const SplitArgs& args) {
  const ArrayType& which = args.operands[0];
  const ArrayType* first = nullptr;
  for (const ArrayType& one : args.operands.subspan(1)) {
    if (!one.sharding.is_explicit()) continue;
    if (!first) first = &one;
    if (one.sharding == first->sharding) continue;
    std::string all;
    for (const ArrayType& shown : args.operands.subspan(1))
      all += concat(all.empty() ? "" : ", ", sharding_text(shown.sharding));
    throw ShardingTypeError(concat("select cases must have the same shardings, got [", all, "]."));
  }
  if (!first) return {PartitionSpec{std::vector<AxisList>(args.results[0].shape.size()), {}, {}}};
  if (!which.shape.empty() && which.sharding.is_explicit() && spec_of(which).dims != spec_of(*first).dims) {
    throw ShardingTypeError(
        concat("select `which` must be scalar or have the same sharding as cases, got `which` sharding ",
               sharding_text(which.sharding), " but case sharding ", sharding_text(args.operands[1].sharding), "."));
  }
  return {spec_of(*first)};
}

Splits bitcast_splits(const SplitArgs& args) {
  PartitionSpec spec = spec_of(args.operands[0]);
  spec.dims.resize(args.results[0].shape.size());
  return {spec};
}

// ---- along dimensions ---------------------------------------------------------------------------------------------

Splits reduction_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  const Ints& axes = args.attrs.ints(args.attrs.has("axes") ? "axes" : "dimensions");
  Splits splits;
  for (std::size_t i = 0; i < args.results.size(); ++i)
    splits.push_back({dims_without(args.operands[i], axes), {}, {}});
  return splits;
}

Splits reduce_sum_splits(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  const Ints& axes = args.attrs.ints("axes");
  PartitionSpec spec{dims_without(x, axes), unreduced(x), reduced(x)};
  const ShardingAttr* asked = asked_sharding(args.attrs);
  if (!asked) return {spec};
  spec.dims = asked->sharding.spec().dims;
  if (asked->sharding.spec().unreduced.empty()) return {spec};
  AxisList summed = unreduced(x);
  for (int64_t d : axes) {
    const AxisList& own = split_axes(x, static_cast<std::size_t>(d));
    summed.insert(summed.end(), own.begin(), own.end());
  }
  for (const std::string& axis : asked->sharding.spec().unreduced) {
    if (lists_axis(summed, axis)) continue;
    std::string dims;
    for (int64_t d : axes) dims += concat(dims.empty() ? "" : ", ", d);
    throw ShardingTypeError(concat("out_sharding's unreduced axes should be in operand's specs that were summed over. "
                                   "Got operand=",
                                   shaped_text(x), ", axes=frozenset({", dims, "}), unreduced_spec=",
                                   axis_set_text(asked->sharding.spec().unreduced)));
  }
  spec.unreduced = asked->sharding.spec().unreduced;
  return {spec};
}

Splits cumulative_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  const int64_t axis = args.attrs.integer("axis");
  if (!split_axes(args.operands[0], static_cast<std::size_t>(axis)).empty()) {
    throw ShardingTypeError(concat("Input should be unsharded over the axis being reduced. Got input type=",
                                   to_string(args.operands[0]), " and axis=", axis));
  }
  return {spec_of(args.operands[0])};
}

Splits sort_splits(const SplitArgs& args) {
  const int64_t dimension = args.attrs.integer("dimension");
  const ArrayType* first = nullptr;
  for (const ArrayType& type : args.operands) {
    if (!type.sharding.is_explicit()) continue;
    if (!first) first = &type;
    if (!split_axes(type, static_cast<std::size_t>(dimension)).empty()) {
      throw ShardingTypeError(
          concat("Arguments to sort must be unsharded over the sorting dimension. Got arg sharding=",
                 sharding_text(type.sharding), " and sorting dimension=", dimension));
    }
    if (type.sharding == first->sharding) continue;
    std::string all;
    for (const ArrayType& one : args.operands) {
      if (one.sharding.is_explicit()) all += concat(all.empty() ? "" : " ", sharding_text(one.sharding));
    }
    throw ShardingTypeError(concat("Arguments to sort must have equal shardings, got: ", all));
  }
  Splits splits;
  for (const ArrayType& type : args.operands) splits.push_back(spec_of(type));
  return splits;
}

Splits top_k_splits(const SplitArgs& args) {
  int64_t axis = args.attrs.integer("axis");
  if (!split_axes(args.operands[0], static_cast<std::size_t>(axis)).empty()) {
    throw ShardingTypeError(concat("The input should be unsharded over the axis along which to compute the top_k "
                                   "values. Got input type=",
                                   to_string(args.operands[0]), " and axis=", axis));
  }
  return Splits(args.results.size(), spec_of(args.operands[0]));
}

SplitRule linalg_splits(std::vector<std::size_t> matrix_ranks) {
  return [ranks = std::move(matrix_ranks)](const SplitArgs& args) {
    refuse_partial_sums(args);
    std::vector<std::vector<AxisList>> batches;
    for (std::size_t i = 0; i < args.operands.size(); ++i) {
      const PartitionSpec spec = spec_of(args.operands[i]);
      const std::size_t rank = ranks[std::min(i, ranks.size() - 1)];
      const auto cut =
          spec.dims.begin() + static_cast<std::ptrdiff_t>(spec.dims.size() - std::min(rank, spec.dims.size()));
      if (std::any_of(cut, spec.dims.end(), [](const AxisList& axes) { return !axes.empty(); })) {
        throw ShardingTypeError(concat("Input ", i, " to ", args.primitive.name(),
                                       " must be unsharded on non-batch dimensions, but got P",
                                       partitions_text(spec), "."));
      }
      batches.emplace_back(spec.dims.begin(), cut);
    }
    for (const std::vector<AxisList>& batch : batches) {
      if (batch == batches[0]) continue;
      std::string all;
      for (const std::vector<AxisList>& one : batches)
        all += concat(all.empty() ? "" : ", ", partitions_text({one, {}, {}}));
      throw ShardingTypeError(
          concat("All inputs to ", args.primitive.name(), " must have the same batch sharding, but got [", all, "]."));
    }
    return Splits(args.results.size(), PartitionSpec{batches[0], {}, {}});
  };
}

// ---- random numbers -----------------------------------------------------------------------------------------------

Splits random_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  return Splits(args.results.size(), PartitionSpec{spec_of(args.operands[0]).dims, {}, {}});
}

Splits bit_generator_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  const ShardingAttr* asked = asked_sharding(args.attrs);
  return {spec_of(args.operands[0]), asked ? asked->sharding.spec() : PartitionSpec{}};
}

}  // namespace capibara
