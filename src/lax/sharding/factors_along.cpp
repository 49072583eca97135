// Factors of operations along some dimensions: reductions, windows, sorts, prefix operations, matrices, collectives.
#include "lax/shape/shape.h"
#include "lax/sharding/factors.h"
#include "program/ir/window_shape.h"

namespace capibara {

namespace {

bool same_sizes(const ArrayType& a, int64_t dim, const ArrayType& b, int64_t other) {
  return a.shape[static_cast<std::size_t>(dim)] == b.shape[static_cast<std::size_t>(other)];
}

// The dimensions of every operand and result that are not in `whole`.
Factors all_but(const EquationTypes& equation, const Ints& whole) {
  FactorBuilder builder(equation);
  for (std::size_t r = 0; r < equation.results.size(); ++r) {
    for (std::size_t o = 0; o < equation.operands.size(); ++o) {
      const int64_t rank = std::min(equation.operands[o].rank(), equation.results[r].rank());
      for (int64_t d = 0; d < rank; ++d) {
        if (!same_sizes(equation.operands[o], d, equation.results[r], d)) continue;
        if (contains(whole, d))
          builder.tie(o, d, r, d);
        else
          builder.keep(o, d, r, d);
      }
    }
  }
  return builder.finish();
}

const Ints& reduced_axes(const EquationTypes& equation) {
  return equation.attrs.ints(equation.attrs.has("axes") ? "axes" : "dimensions");
}

// Operands that are reduced: the others are scalars, the initial values of reductions.
void keep_unreduced(FactorBuilder& builder, const EquationTypes& equation, const Ints& axes) {
  for (std::size_t r = 0; r < equation.results.size(); ++r) {
    for (std::size_t o = 0; o < equation.operands.size(); ++o) {
      if (equation.operands[o].rank() == 0) continue;
      int64_t result_dim = 0;
      for (int64_t d : other_dims(equation.operands[o].rank(), axes)) builder.keep(o, d, r, result_dim++);
    }
  }
}

}  // namespace

Factors elementwise_factors(const EquationTypes& equation) { return all_but(equation, {}); }

Factors pairwise_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  for (std::size_t i = 0; i < equation.results.size(); ++i) {
    for (int64_t d : range(equation.results[i].rank())) builder.keep(i, d, i, d);
  }
  return builder.finish();
}

Factors whole_factors(const EquationTypes& equation) { return FactorBuilder(equation).finish(); }

FactorRule leading_factors(int64_t trailing) {
  return [trailing](const EquationTypes& equation) {
    const int64_t leading = std::max<int64_t>(0, equation.operands[0].rank() - trailing);
    FactorBuilder builder(equation);
    for (int64_t d = 0; d < leading; ++d) {
      for (std::size_t r = 0; r < equation.results.size(); ++r) {
        if (d >= equation.results[r].rank()) return whole_factors(equation);
        for (std::size_t o = 0; o < equation.operands.size(); ++o) {
          if (equation.operands[o].rank() > d && same_sizes(equation.operands[o], d, equation.results[r], d))
            builder.keep(o, d, r, d);
          else if (equation.operands[o].rank() > 0)
            return whole_factors(equation);
        }
      }
    }
    return builder.finish();
  };
}

FactorRule factors_but(const char* axis) {
  return [axis](const EquationTypes& equation) {
    int64_t dim = equation.attrs.integer(axis);
    if (dim < 0) dim += equation.operands[0].rank();
    return all_but(equation, {dim});
  };
}

Factors reduction_factors(const EquationTypes& equation) {
  const Ints& axes = reduced_axes(equation);
  FactorBuilder builder(equation);
  keep_unreduced(builder, equation, axes);
  for (int64_t axis : axes) builder.combine(0, axis, *equation.primitive->traits.monoid);
  return builder.finish();
}

Factors kept_factors(const EquationTypes& equation) {
  FactorBuilder builder(equation);
  keep_unreduced(builder, equation, reduced_axes(equation));
  return builder.finish();
}

Factors window_factors(const EquationTypes& equation) {
  const Window window = Window::of(equation.attrs);
  Ints moving;
  for (std::size_t d = 0; d < window.dimensions.size(); ++d) {
    const bool sees_one = window.dimensions[d] == 1 && window.strides[d] == 1 &&
                          window.padding[d] == std::pair<int64_t, int64_t>{} &&
                          (window.base_dilation.empty() || window.base_dilation[d] == 1);
    if (!sees_one) moving.push_back(static_cast<int64_t>(d));
  }
  return all_but(equation, moving);
}

Factors batch_norm_factors(const EquationTypes& equation) {
  const int64_t feature = equation.attrs.integer("feature_index");
  const auto dim = [&](const ArrayType& type) { return type.rank() == 1 ? 0 : feature; };
  FactorBuilder builder(equation);
  for (std::size_t r = 0; r < equation.results.size(); ++r) {
    for (std::size_t o = 0; o < equation.operands.size(); ++o)
      builder.keep(o, dim(equation.operands[o]), r, dim(equation.results[r]));
  }
  return builder.finish();
}

Factors fft_factors(const EquationTypes& equation) {
  const int64_t rank = equation.operands[0].rank();
  return all_but(equation, range(rank, rank - std::ssize(equation.attrs.ints("fft_lengths"))));
}

// Each threefry key is used independently; the other generators draw for a batch of keys at once.
Factors key_factors(const EquationTypes& equation) {
  if (equation.operands[0].dtype != DType::key_fry) return whole_factors(equation);
  return all_but(equation, range(equation.results[0].rank(), equation.operands[0].rank()));
}

// ---- collectives: the dimension of the devices is whole -------------------------------------------------------------

namespace {

// An untiled collective inserts `added` in the result and removes `removed` from the operand; a tiled one keeps the
// rank.
Factors exchange_factors(const EquationTypes& equation, int64_t removed, int64_t added, bool removes, bool adds) {
  FactorBuilder builder(equation);
  Ints operand_dims = other_dims(equation.operands[0].rank(), removes ? Ints{removed} : Ints{});
  Ints result_dims = other_dims(equation.results[0].rank(), adds ? Ints{added} : Ints{});
  for (std::size_t i = 0; i < operand_dims.size(); ++i) {
    const bool exchanged = (!removes && operand_dims[i] == removed) || (!adds && result_dims[i] == added);
    if (!exchanged) builder.keep(0, operand_dims[i], result_dims[i]);
  }
  return builder.finish();
}

}  // namespace

Factors all_gather_factors(const EquationTypes& equation) {
  const int64_t dim = equation.attrs.integer("all_gather_dimension");
  return exchange_factors(equation, dim, dim, false, !equation.attrs.boolean("tiled"));
}

Factors reduce_scatter_factors(const EquationTypes& equation) {
  const int64_t dim = equation.attrs.integer("scatter_dimension");
  return exchange_factors(equation, dim, dim, !equation.attrs.boolean("tiled"), false);
}

Factors all_to_all_factors(const EquationTypes& equation) {
  const bool tiled = equation.attrs.boolean("tiled");
  return exchange_factors(equation, equation.attrs.integer("split_axis"), equation.attrs.integer("concat_axis"), !tiled,
                          !tiled);
}

}  // namespace capibara
