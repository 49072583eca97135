// Explicit types of elementwise operations, reductions, prefix operations and matrices.
#include "lax/sharding/splits.h"

#include <algorithm>

#include "lax/shape/shape.h"

namespace capibara {

namespace {

const PartitionSpec& sums_of(const ArrayType& type) {
  static const PartitionSpec none;
  return type.sharding.is_explicit() ? type.sharding.spec() : none;
}

const AxisList& reduced(const ArrayType& type) { return sums_of(type).reduced; }

bool any_lists(const std::vector<AxisList>& dims, const std::string& axis) {
  return std::any_of(dims.begin(), dims.end(), [&](const AxisList& axes) { return lists_axis(axes, axis); });
}

[[noreturn]] void refuse_rule(const SplitArgs& args, const char* rule) {
  throw NotImplementedError(concat(rule, " rule for ", args.primitive.name(),
                                   " is not implemented. Please file an issue at "
                                   "https://github.com/jax-ml/jax/issues"));
}

void refuse_unreduced(const SplitArgs& args) {
  for (const ArrayType& type : args.operands) {
    if (!unreduced_axes(type).empty()) refuse_rule(args, "unreduced");
  }
}

std::string array_partitions_text(const ArrayType& type) {
  return type.shape.empty() ? std::string() : partitions_text(spec_of(type));
}

// Operands of the result's rank agree, or are of size 1.
std::vector<AxisList> broadcast_axes(const SplitArgs& args) {
  std::vector<AxisList> axes(args.results[0].shape.size());
  for (std::size_t d = 0; d < axes.size(); ++d) {
    for (const ArrayType& type : args.operands) {
      const AxisList& own = split_axes(type, d);
      if (axes[d].empty()) axes[d] = own;
      if (own.empty() || axes[d] == own) continue;
      refuse_sharding(args.primitive.name(), " got incompatible shardings for broadcasting: ",
                      joined_texts(args.operands, ", ", array_partitions_text), ".");
    }
  }
  return axes;
}

// The axes over which cotangents of all operands are summed.
AxisList joint_reduced(const SplitArgs& args) {
  AxisList joint;
  for (const ArrayType& type : args.operands) {
    if (reduced(type).empty()) continue;
    if (!joint.empty() && joint != reduced(type)) {
      refuse_sharding("All inputs should be reduced across the same mesh axes. Got specs: {", axis_set_text(joint),
                      ", ", axis_set_text(reduced(type)), "}");
    }
    joint = reduced(type);
  }
  if (joint.empty()) return joint;
  for (const ArrayType& type : args.operands) {
    const PartitionSpec spec = spec_of(type);
    const bool is_plain_scalar = type.shape.empty() && !type.sharding.is_explicit();
    for (const std::string& axis : joint) {
      if (lists_axis(type.sharding.varying(), axis) || any_lists(spec.dims, axis)) {
        refuse_sharding(
            "Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the "
            "input which is reduced to be sharded on the mesh axes it is reduced on via "
            "`jax.sharding.reshard(inp, jax.P(...))`. Got input type: ",
            to_string(type), " and reduced spec: ", axis_set_text(joint));
      }
      if (is_plain_scalar || lists_axis(spec.unreduced, axis) || lists_axis(spec.reduced, axis)) continue;
      refuse_sharding("Inputs cannot be replicated on the same axes that another input is reduced on. Got input type: ",
                      to_string(type), " and reduced spec: ", axis_set_text(joint));
    }
  }
  return joint;
}

PartitionSpec broadcast_spec(const SplitArgs& args) {
  PartitionSpec spec{broadcast_axes(args), {}, {}};
  spec.reduced = joint_reduced(args);
  return spec;
}

}  // namespace

PartitionSpec spec_of(const ArrayType& type) {
  PartitionSpec spec = sums_of(type);
  spec.dims.resize(type.shape.size());
  return spec;
}

PartitionSpec spec_of(const ArrayType& type, std::vector<AxisList> dims) {
  return {std::move(dims), unreduced_axes(type), reduced(type)};
}

const AxisList& unreduced_axes(const ArrayType& type) { return sums_of(type).unreduced; }

const AxisList& axes_at(const ArrayType& type, int64_t dim) { return split_axes(type, static_cast<std::size_t>(dim)); }

std::vector<AxisList> axes_of(const ArrayType& type, const Ints& dims) {
  std::vector<AxisList> axes;
  for (int64_t d : dims) axes.push_back(axes_at(type, d));
  return axes;
}

bool splits_any(const ArrayType& type, const Ints& dims) {
  return std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return !axes_at(type, d).empty(); });
}

bool splits_nothing(const ArrayType& type) { return !splits_any(type, range(type.rank())); }

void refuse_partial_sums(const SplitArgs& args) {
  for (const ArrayType& type : args.operands) {
    if (!unreduced_axes(type).empty() || !reduced(type).empty()) refuse_rule(args, "unreduced/reduced");
  }
}

std::string shaped_text(const ArrayType& type) {
  return concat("ShapedArray(", to_string(type), type.weak_type ? ", weak_type=True)" : ")");
}

std::string joined_texts(std::span<const ArrayType> types, const char* between, std::string (*text)(const ArrayType&)) {
  std::string all;
  for (const ArrayType& type : types) {
    const std::string one = text(type);
    if (!one.empty()) all += concat(all.empty() ? "" : between, one);
  }
  return all;
}

std::string type_sharding_text(const ArrayType& type) { return sharding_text(type.sharding); }

Differing differing_shardings(std::span<const ArrayType> types) {
  Differing found;
  for (const ArrayType& type : types) {
    if (!type.sharding.is_explicit()) continue;
    if (!found.first) found.first = &type;
    if (!found.other && !(type.sharding == found.first->sharding)) found.other = &type;
  }
  return found;
}

Sharding batched_sharding(const BatchArgs& args, const Array& operand, int64_t dim, int64_t to) {
  const ShardingAttr* requested = requested_sharding(args.attrs);
  if (!requested || !requested->sharding.is_explicit()) return {};
  const Sharding& inner = requested->sharding;
  PartitionSpec spec = inner.spec();
  AxisList axes = axes_at(operand.type(), dim);
  if (axes.empty() && args.axis.split.is_explicit()) {
    // A value that the compiler places inside: vmap has the axes, and those of the result are Explicit again.
    for (const std::string& axis : args.axis.split.spec().dims[0]) {
      if (inner.mesh().type_of(axis) == AxisType::Explicit && !any_lists(spec.dims, axis)) axes.push_back(axis);
    }
  }
  spec.dims.insert(spec.dims.begin() + to, std::move(axes));
  return Sharding::explicit_over(inner.mesh(), std::move(spec), inner.varying());
}

// ---- each element -------------------------------------------------------------------------------------------------

Splits unary_splits(const SplitArgs& args) {
  refuse_unreduced(args);
  return {spec_of(args.operands[0])};
}

Splits nary_splits(const SplitArgs& args) {
  const PartitionSpec spec = broadcast_spec(args);
  refuse_unreduced(args);
  return Splits(args.results.size(), spec);
}

Splits add_splits(const SplitArgs& args) {
  PartitionSpec spec = broadcast_spec(args);
  const AxisList &x = unreduced_axes(args.operands[0]), &y = unreduced_axes(args.operands[1]);
  if (!x.empty() && !y.empty() && x != y) {
    refuse_sharding("lhs and rhs to `add` must be unreduced along the same mesh axes. Got lhs=", axis_set_text(x),
                    ", rhs=", axis_set_text(y));
  }
  if (x.empty() != y.empty()) {
    const char *sum = y.empty() ? "lhs" : "rhs", *other = y.empty() ? "rhs" : "lhs";
    refuse_sharding(sum, " is unreduced while ", other,
                    " is not. `add` operation does not allow this "
                    "because there will be implicit communication. Please reduce ",
                    sum, " via `reshard` before calling `add`.");
  }
  spec.unreduced = x;
  return {spec};
}

Splits mul_splits(const SplitArgs& args) {
  PartitionSpec spec = broadcast_spec(args);
  const ArrayType &x = args.operands[0], &y = args.operands[1];
  if (!unreduced_axes(x).empty() && !unreduced_axes(y).empty()) {
    refuse_sharding("lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs=",
                    axis_set_text(unreduced_axes(x)), ", rhs=", axis_set_text(unreduced_axes(y)));
  }
  for (bool first : {true, false}) {
    const ArrayType &sum = first ? x : y, &other = first ? y : x;
    if (unreduced_axes(sum).empty()) continue;
    if (unreduced_axes(sum) != reduced(other) && !(other.shape.empty() && !other.sharding.is_explicit())) {
      refuse_sharding(first ? "RHS should be reduced along the same axes LHS is unreduced on. Got lhs="
                            : "LHS should be reduced along the same axes RHS is unreduced on. Got lhs=",
                      to_string(x), " and rhs=", to_string(y));
    }
    spec.unreduced = unreduced_axes(sum);
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
  const std::span<const ArrayType> cases = args.operands.subspan(1);
  const Differing found = differing_shardings(cases);
  if (found.other) {
    refuse_sharding("select cases must have the same shardings, got [", joined_texts(cases, ", ", type_sharding_text),
                    "].");
  }
  if (!found.first) return {spec_of(args.results[0])};
  if (!which.shape.empty() && which.sharding.is_explicit() && spec_of(which).dims != spec_of(*found.first).dims) {
    refuse_sharding("select `which` must be scalar or have the same sharding as cases, got `which` sharding ",
                    sharding_text(which.sharding), " but case sharding ", sharding_text(cases[0].sharding), ".");
  }
  return {spec_of(*found.first)};
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
    splits.push_back({axes_of(args.operands[i], other_dims(args.operands[i].rank(), axes)), {}, {}});
  return splits;
}

Splits reduce_sum_splits(const SplitArgs& args) {
  const ArrayType& x = args.operands[0];
  const Ints& axes = args.attrs.ints("axes");
  PartitionSpec spec = spec_of(x, axes_of(x, other_dims(x.rank(), axes)));
  const ShardingAttr* requested = requested_sharding(args.attrs);
  if (!requested) return {spec};
  spec.dims = requested->sharding.spec().dims;
  const AxisList& wanted = requested->sharding.spec().unreduced;
  if (wanted.empty()) return {spec};
  const std::vector<AxisList> summed = axes_of(x, axes);
  for (const std::string& axis : wanted) {
    if (lists_axis(unreduced_axes(x), axis) || any_lists(summed, axis)) continue;
    std::string dims;
    for (int64_t d : axes) dims += concat(dims.empty() ? "" : ", ", d);
    refuse_sharding("out_sharding's unreduced axes should be in operand's specs that were summed over. Got operand=",
                    shaped_text(x), ", axes=frozenset({", dims, "}), unreduced_spec=", axis_set_text(wanted));
  }
  spec.unreduced = wanted;
  return {spec};
}

Splits cumulative_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  const int64_t axis = args.attrs.integer("axis");
  if (!axes_at(args.operands[0], axis).empty()) {
    refuse_sharding("Input should be unsharded over the axis being reduced. Got input type=",
                    to_string(args.operands[0]), " and axis=", axis);
  }
  return {spec_of(args.operands[0])};
}

Splits sort_splits(const SplitArgs& args) {
  const int64_t dimension = args.attrs.integer("dimension");
  const ArrayType* other = differing_shardings(args.operands).other;
  Splits splits;
  for (const ArrayType& type : args.operands) {
    if (!axes_at(type, dimension).empty()) {
      refuse_sharding("Arguments to sort must be unsharded over the sorting dimension. Got arg sharding=",
                      sharding_text(type.sharding), " and sorting dimension=", dimension);
    }
    if (&type == other) {
      refuse_sharding("Arguments to sort must have equal shardings, got: ",
                      joined_texts(args.operands, " ", [](const ArrayType& one) {
                        return one.sharding.is_explicit() ? type_sharding_text(one) : std::string();
                      }));
    }
    splits.push_back(spec_of(type));
  }
  return splits;
}

Splits top_k_splits(const SplitArgs& args) {
  const int64_t axis = args.attrs.integer("axis");
  if (!axes_at(args.operands[0], axis).empty()) {
    refuse_sharding(
        "The input should be unsharded over the axis along which to compute the top_k values. "
        "Got input type=",
        to_string(args.operands[0]), " and axis=", axis);
  }
  return same_splits(args);
}

SplitRule linalg_splits(std::vector<std::size_t> matrix_ranks) {
  return [ranks = std::move(matrix_ranks)](const SplitArgs& args) {
    refuse_partial_sums(args);
    Splits batches;
    for (std::size_t i = 0; i < args.operands.size(); ++i) {
      PartitionSpec& spec = batches.emplace_back(spec_of(args.operands[i]));
      const std::size_t rank = std::min(ranks[std::min(i, ranks.size() - 1)], spec.dims.size());
      const auto cut = spec.dims.end() - static_cast<std::ptrdiff_t>(rank);
      if (std::any_of(cut, spec.dims.end(), [](const AxisList& axes) { return !axes.empty(); })) {
        refuse_sharding("Input ", i, " to ", args.primitive.name(),
                        " must be unsharded on non-batch dimensions, but got P", partitions_text(spec), ".");
      }
      spec.dims.erase(cut, spec.dims.end());
    }
    for (const PartitionSpec& batch : batches) {
      if (batch == batches[0]) continue;
      std::string all;
      for (const PartitionSpec& one : batches) all += concat(all.empty() ? "" : ", ", partitions_text(one));
      refuse_sharding("All inputs to ", args.primitive.name(), " must have the same batch sharding, but got [", all,
                      "].");
    }
    return Splits(args.results.size(), batches[0]);
  };
}

// ---- random numbers -----------------------------------------------------------------------------------------------

Splits random_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  return same_splits(args);
}

Splits bit_generator_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  const ShardingAttr* requested = requested_sharding(args.attrs);
  return {spec_of(args.operands[0]), requested ? requested->sharding.spec() : PartitionSpec{}};
}

}  // namespace capibara
