// Factors of contractions and convolutions.
#include "lax/contract/contract.h"
#include "lax/contract/ragged_dot.h"
#include "lax/sharding/factors.h"

namespace capibara {

namespace {

// Dimensions of both operands that no result has.
void contract(FactorBuilder& builder, const DotDimensionNumbers& dims) {
  for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    builder.pair(0, dims.lhs_contracting[i], 1, dims.rhs_contracting[i]);
    builder.combine(0, dims.lhs_contracting[i], Monoid::add);
  }
}

}  // namespace

// (batch.. free contracted) (batch.. contracted free) -> (batch.. lhs free, rhs free)
Factors dot_general_factors(const EquationTypes& equation) {
  const auto& dims = equation.attrs.get<DotDimensionNumbers>("dimension_numbers");
  FactorBuilder builder(equation);
  int64_t result_dim = 0;
  for (std::size_t i = 0; i < dims.lhs_batch.size(); ++i, ++result_dim) {
    builder.keep(0, dims.lhs_batch[i], result_dim);
    builder.keep(1, dims.rhs_batch[i], result_dim);
  }
  for (int64_t d : remaining_dims(equation.operands[0].rank(), dims.lhs_batch, dims.lhs_contracting))
    builder.keep(0, d, result_dim++);
  for (int64_t d : remaining_dims(equation.operands[1].rank(), dims.rhs_batch, dims.rhs_contracting))
    builder.keep(1, d, result_dim++);
  contract(builder, dims);
  return builder.finish();
}

// The columns of the groups' matrices; rows and groups are not split.
Factors ragged_dot_factors(const EquationTypes& equation) {
  const auto dims = equation.attrs.opaque<RaggedDotDimensionNumbers>("ragged_dot_dimension_numbers");
  FactorBuilder builder(equation);
  const Ints columns = remaining_dims(equation.operands[1].rank(), dims->dot.rhs_batch, dims->dot.rhs_contracting,
                                      dims->rhs_group_dimensions);
  const int64_t first = equation.results[0].rank() - std::ssize(columns);
  for (std::size_t i = 0; i < columns.size(); ++i) builder.keep(1, columns[i], first + static_cast<int64_t>(i));
  return builder.finish();
}

Factors convolution_factors(const EquationTypes& equation) {
  const auto& dims = equation.attrs.get<ConvDimensionNumbers>("dimension_numbers");
  const bool one_batch = equation.attrs.integer("batch_group_count") == 1;
  const bool one_group = equation.attrs.integer("feature_group_count") == 1;
  FactorBuilder builder(equation);
  if (one_batch) builder.keep(0, dims.lhs_spec[0], dims.out_spec[0]);
  if (one_batch && one_group) {
    builder.keep(1, dims.rhs_spec[0], dims.out_spec[1]);
    builder.pair(0, dims.lhs_spec[1], 1, dims.rhs_spec[1]);
    builder.combine(0, dims.lhs_spec[1], Monoid::add);
  }
  return builder.finish();
}

}  // namespace capibara
