// Explicit types of contractions and convolutions.
#include <algorithm>

#include "lax/contract/contract.h"
#include "lax/sharding/splits.h"
#include "program/ir/explicit_types.h"

namespace capibara {

namespace {

PartitionSpec chosen(const ArrayType& type, const Ints& dims) { return {axes_of(type, dims), {}, {}}; }

void check_match(const PartitionSpec& lhs, const PartitionSpec& rhs, const char* what) {
  for (std::size_t i = 0; i < lhs.dims.size(); ++i) {
    if (lhs.dims[i].empty() || rhs.dims[i].empty() || lhs.dims[i] == rhs.dims[i]) continue;
    refuse_sharding("dot_general requires ", what, " sharding, got ", partitions_text(lhs), " and ",
                    partitions_text(rhs), ".");
  }
}

void check_unreduced(const PartitionSpec& lhs, const PartitionSpec& rhs, const AxisList& unreduced) {
  if (lhs.dims != rhs.dims) {
    refuse_sharding(
        "lhs and rhs contracting dims should be sharded identically when out_sharding provided to dot_general "
        "mentions unreduced_axes. Got lhs_contracting_spec=",
        partitions_text(lhs), ", rhs_contracting_spec=", partitions_text(rhs));
  }
  AxisList contracted;
  for (const AxisList& axes : lhs.dims) contracted.insert(contracted.end(), axes.begin(), axes.end());
  if (std::is_permutation(contracted.begin(), contracted.end(), unreduced.begin(), unreduced.end())) return;
  refuse_sharding("out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced axes=",
                  axis_set_text(unreduced), " and contracting spec=", partitions_text(lhs));
}

}  // namespace

Splits dot_general_splits(const SplitArgs& args) {
  const ArrayType &lhs = args.operands[0], &rhs = args.operands[1];
  const auto& numbers = args.attrs.get<DotDimensionNumbers>("dimension_numbers");
  const PartitionSpec lhs_contracting = chosen(lhs, numbers.lhs_contracting);
  const PartitionSpec rhs_contracting = chosen(rhs, numbers.rhs_contracting);
  const ShardingAttr* requested = requested_sharding(args.attrs);
  PartitionSpec spec = chosen(lhs, numbers.lhs_batch);
  if (requested) {
    spec = requested->sharding.spec();
    spec.reduced.clear();
  } else {
    check_match(spec, chosen(rhs, numbers.rhs_batch),
                "lhs batch dimensions and rhs batch dimensions to have the consistent");
    check_match(lhs_contracting, rhs_contracting, "contracting dimensions to have consistent");
    for (std::size_t i = 0; i < lhs_contracting.dims.size(); ++i) {
      if (lhs_contracting.dims[i].empty() || rhs_contracting.dims[i].empty()) continue;
      refuse_sharding(
          "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify "
          "the output sharding via the `out_sharding` parameter. Got lhs_contracting_spec=",
          partitions_text(lhs_contracting), " and rhs_contracting_spec=", partitions_text(rhs_contracting));
    }
    for (int64_t d : remaining_dims(lhs.rank(), numbers.lhs_contracting, numbers.lhs_batch))
      spec.dims.push_back(axes_at(lhs, d));
    for (int64_t d : remaining_dims(rhs.rank(), numbers.rhs_contracting, numbers.rhs_batch))
      spec.dims.push_back(axes_at(rhs, d));
  }
  if (!unreduced_axes(lhs).empty() || !unreduced_axes(rhs).empty()) {
    refuse_sharding("lhs or rhs passed to dot_general cannot be unreduced. Got lhs=", shaped_text(lhs),
                    " and rhs=", shaped_text(rhs));
  }
  if (!spec.unreduced.empty()) check_unreduced(lhs_contracting, rhs_contracting, spec.unreduced);
  return {spec};
}

Sharding operand_cotangent_sharding(const ArrayType& operand, const ArrayType& other, const ArrayType& cotangent) {
  if (operand.sharding.is_explicit()) return cotangent_sharding(operand.sharding);
  for (const ArrayType* type : {&cotangent, &other}) {
    if (!type->sharding.is_explicit()) continue;
    return Sharding::explicit_over(type->sharding.mesh(), {std::vector<AxisList>(operand.shape.size()), {}, {}},
                                   type->sharding.varying());
  }
  return {};
}

Splits ragged_dot_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  if (const ShardingAttr* requested = requested_sharding(args.attrs)) return {requested->sharding.spec()};
  throw NotImplementedError(
      "Explicit sharding inference for ragged_dot_general is not currently implemented. Please "
      "specify out_sharding.");
}

Splits convolution_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  if (const ShardingAttr* requested = requested_sharding(args.attrs)) return {requested->sharding.spec()};
  const auto& numbers = args.attrs.get<ConvDimensionNumbers>("dimension_numbers");
  if (splits_nothing(args.operands[1]) && axes_at(args.operands[0], numbers.lhs_spec[1]).empty())
    return resized_splits("conv_general_dilated")(args);
  refuse_sharding("Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`");
}

}  // namespace capibara
