// Factors of slices, gathers and scatters.
#include "lax/index/scatter.h"
#include "lax/shape/shape.h"
#include "lax/sharding/factors.h"

namespace capibara {

namespace {

int64_t size(const ArrayType& type, int64_t dim) { return type.shape[static_cast<std::size_t>(dim)]; }

// The dimensions that a slice takes in full.
void keep_full(FactorBuilder& builder, const EquationTypes& equation) {
  for (int64_t d : range(equation.operands[0].rank())) {
    if (size(equation.operands[0], d) == size(equation.results[0], d)) builder.keep(0, d, d);
  }
}

// The dimensions of indices that count windows: all but the last.
Ints window_counts(const ArrayType& indices) { return range(indices.rank() - 1); }

// The operand dimensions that windows span, in the order of the windows' dimensions.
Ints spanned(int64_t rank, Ints absent, const Ints& batching) {
  absent.insert(absent.end(), batching.begin(), batching.end());
  return other_dims(rank, absent);
}

}  // namespace

Factors slice_factors(const EquationTypes& equation) {
  const Ints* strides = equation.attrs["strides"].get_if<Ints>();
  FactorBuilder builder(equation);
  for (int64_t d : range(equation.operands[0].rank())) {
    const bool steps = strides && at(*strides, d) != 1;
    if (!steps && size(equation.operands[0], d) == size(equation.results[0], d)) builder.keep(0, d, d);
  }
  return builder.finish();
}

Attrs localise_slice(const EquationTypes& equation) {
  Ints limit = equation.attrs.ints("limit_indices");
  const Ints* strides = equation.attrs["strides"].get_if<Ints>();
  for (std::size_t d = 0; d < limit.size(); ++d) {
    if (equation.attrs.ints("start_indices")[d] == 0 && (!strides || (*strides)[d] == 1))
      limit[d] = equation.results[0].shape[d];
  }
  return equation.attrs.with("limit_indices", limit);
}

Factors dynamic_slice_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  keep_full(builder, equation);
  return builder.finish();
}

Factors dynamic_update_slice_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  for (int64_t d : range(equation.operands[0].rank())) {
    if (size(equation.operands[0], d) != size(equation.operands[1], d)) continue;
    builder.keep(0, d, d);
    builder.keep(1, d, d);
  }
  return builder.finish();
}

// [operand] [indices..., n] -> [offset and window-count dimensions interleaved]
Factors gather_factors(const EquationTypes& equation) {
  const auto& dims = equation.attrs.get<GatherDimensionNumbers>("dimension_numbers");
  const Ints& sizes = equation.attrs.ints("slice_sizes");
  const ArrayType& operand = equation.operands[0];
  const Ints counts = other_dims(equation.results[0].rank(), dims.offset_dims);
  FactorBuilder builder(equation);
  for (int64_t d : window_counts(equation.operands[1])) builder.keep(1, d, at(counts, d));
  for (std::size_t i = 0; i < dims.operand_batching_dims.size(); ++i)
    builder.keep(0, dims.operand_batching_dims[i], at(counts, dims.start_indices_batching_dims[i]));
  const Ints window = spanned(operand.rank(), dims.collapsed_slice_dims, dims.operand_batching_dims);
  for (std::size_t i = 0; i < window.size(); ++i) {
    if (at(sizes, window[i]) == size(operand, window[i]) && !contains(dims.start_index_map, window[i]))
      builder.keep(0, window[i], dims.offset_dims[i]);
  }
  return builder.finish();
}

Attrs localise_gather(const EquationTypes& equation) {
  const auto& dims = equation.attrs.get<GatherDimensionNumbers>("dimension_numbers");
  const Ints window = spanned(equation.operands[0].rank(), dims.collapsed_slice_dims, dims.operand_batching_dims);
  Ints sizes = equation.attrs.ints("slice_sizes");
  for (std::size_t i = 0; i < window.size(); ++i)
    sizes[static_cast<std::size_t>(window[i])] = size(equation.results[0], dims.offset_dims[i]);
  return equation.attrs.with("slice_sizes", sizes);
}

// [operands...] [indices..., n] [updates...] -> [results...], of the operands' shape
Factors scatter_factors(const EquationTypes& equation) {
  const ScatterDimensionNumbers& dims = scatter_dims(equation.attrs);
  const std::size_t count = equation.results.size();
  const ArrayType& operand = equation.operands[0];
  const ArrayType& updates = equation.operands[count + 1];
  const Ints counts = other_dims(updates.rank(), dims.update_window_dims);
  const Ints window = spanned(operand.rank(), dims.inserted_window_dims, dims.operand_batching_dims);
  FactorBuilder builder(equation);
  for (std::size_t n = 0; n < count; ++n) {
    for (std::size_t i = 0; i < dims.operand_batching_dims.size(); ++i) {
      const int64_t d = dims.operand_batching_dims[i], in_indices = dims.scatter_indices_batching_dims[i];
      builder.keep(n, d, n, d);
      builder.keep(count, in_indices, n, d);
      builder.keep(count + 1 + n, at(counts, in_indices), n, d);
    }
    for (std::size_t i = 0; i < window.size(); ++i) {
      const int64_t d = window[i];
      if (size(updates, dims.update_window_dims[i]) != size(operand, d) ||
          contains(dims.scatter_dims_to_operand_dims, d))
        continue;
      builder.keep(n, d, n, d);
      builder.keep(count + 1 + n, dims.update_window_dims[i], n, d);
    }
  }
  return builder.finish();
}

}  // namespace capibara
