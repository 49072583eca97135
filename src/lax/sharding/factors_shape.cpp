// Factors of operations that move elements: broadcast, reshape, transpose, pad, concatenate.
#include "lax/shape/shape.h"
#include "lax/sharding/factors.h"

namespace capibara {

Factors broadcast_in_dim_factors(const EquationTypes& equation) {
  const Ints& dims = equation.attrs.ints("broadcast_dimensions");
  FactorBuilder builder(equation);
  for (int64_t d : range(equation.results[0].rank())) builder.make(0, d);
  for (std::size_t i = 0; i < dims.size(); ++i) builder.keep(0, static_cast<int64_t>(i), dims[i]);
  return builder.finish();
}

Factors reshape_factors(const EquationTypes& equation) {
  const Ints* dimensions = equation.attrs["dimensions"].get_if<Ints>();
  FactorBuilder builder(equation);
  builder.keep_order(dimensions ? *dimensions : range(equation.operands[0].rank()));
  return builder.finish();
}

Factors squeeze_factors(const EquationTypes& equation) {
  const Ints kept = other_dims(equation.operands[0].rank(), equation.attrs.ints("dimensions"));
  FactorBuilder builder(equation);
  for (std::size_t i = 0; i < kept.size(); ++i) builder.keep(0, kept[i], static_cast<int64_t>(i));
  return builder.finish();
}

Factors transpose_factors(const EquationTypes& equation) {
  const Ints& permutation = equation.attrs.ints("permutation");
  FactorBuilder builder(equation);
  for (std::size_t i = 0; i < permutation.size(); ++i) builder.keep(0, permutation[i], static_cast<int64_t>(i));
  return builder.finish();
}

Factors rev_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  for (int64_t d : other_dims(equation.operands[0].rank(), equation.attrs.ints("dimensions"))) builder.keep(0, d, d);
  return builder.finish();
}

Factors tile_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  for (int64_t d : range(equation.operands[0].rank())) builder.repeat(0, d, 0, d);
  return builder.finish();
}

Attrs localise_tile(const EquationTypes& equation) {
  Ints reps = equation.attrs.ints("reps");
  for (std::size_t d = 0; d < reps.size(); ++d) {
    if (equation.operands[0].shape[d] != 0) reps[d] = equation.results[0].shape[d] / equation.operands[0].shape[d];
  }
  return equation.attrs.with("reps", reps);
}

Factors pad_factors(const EquationTypes& equation) {
  const Attr::List& config = equation.attrs.list("padding_config");
  FactorBuilder builder(equation);
  for (std::size_t d = 0; d < config.size(); ++d) {
    if (*config[d].get_if<Ints>() == Ints{0, 0, 0}) builder.keep(0, static_cast<int64_t>(d), static_cast<int64_t>(d));
  }
  return builder.finish();
}

Factors iota_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  for (int64_t d : other_dims(equation.results[0].rank(), {equation.attrs.integer("dimension")})) builder.make(0, d);
  return builder.finish();
}

Factors empty_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  for (int64_t d : range(equation.results[0].rank())) builder.make(0, d);
  return builder.finish();
}

LocaliseRule result_shape_as(const char* name) {
  return [name](const EquationTypes& equation) { return equation.attrs.with(name, Ints(equation.results[0].shape)); };
}

}  // namespace capibara
