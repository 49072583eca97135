// Rules of factors shared by families of primitives, and the graph that they are built with.
#pragma once

#include <capibara/factors.h>

namespace capibara {

// Matched dimensions, joined step by step. A factor is split in two where another dimension matches a part of it.
class FactorGraph {
 public:
  ValueFactors value(const ArrayType& type);  // a new factor for each dimension; none for those of size 1
  DimensionFactors dimension(int64_t size);
  void match(const DimensionFactors& a, const DimensionFactors& b);  // of equal size: the same factors
  void match(const ValueFactors& a, const ValueFactors& b);
  void require_whole(const DimensionFactors& dimension);
  void combine(const DimensionFactors& dimension, Monoid monoid);
  DimensionFactors resolved(const DimensionFactors& dimension) const;
  ValueFactors resolved(const ValueFactors& value) const;
  Factor factor(int resolved) const { return nodes_[static_cast<std::size_t>(resolved)].factor; }
  // The factors of these values, numbered in the order of first use.
  Factors finish(const std::vector<ValueFactors>& operands, const std::vector<ValueFactors>& results) const;

 private:
  struct Node {
    Factor factor;
    int same_as = -1;            // joined with another factor
    int outer = -1, inner = -1;  // split in two
  };
  Node& node(int id) { return nodes_[static_cast<std::size_t>(id)]; }
  int root(int id) const;
  void cut(int id, int64_t outer_size);
  void join(int a, int b);
  void restrict_use(int id, FactorUse use, Monoid monoid);

  std::vector<Node> nodes_;
};

// Factors of one equation: every dimension is whole until a rule matches it.
class FactorBuilder {
 public:
  explicit FactorBuilder(const EquationTypes& equation);
  // Dimension `dim` of an operand is dimension `result_dim` of a result. Dimensions of size 1 matched with others are
  // ignored.
  void keep(std::size_t operand, int64_t dim, std::size_t result, int64_t result_dim);
  void keep(std::size_t operand, int64_t dim, int64_t result_dim) { keep(operand, dim, 0, result_dim); }
  void tie(std::size_t operand, int64_t dim, std::size_t result, int64_t result_dim);  // the same, but whole
  void pair(std::size_t operand, int64_t dim, std::size_t other, int64_t other_dim);   // two operands
  void combine(std::size_t operand, int64_t dim, Monoid monoid);
  void make(std::size_t result, int64_t dim);  // the same for every index: no operand has it
  // A dimension of a result that repeats a dimension of an operand.
  void repeat(std::size_t operand, int64_t dim, std::size_t result, int64_t result_dim);
  // All elements in row-major order: what a reshape keeps. The operand's dimensions are taken in the given order.
  void keep_order(const Ints& operand_dims);
  Factors finish();

 private:
  void allow(const DimensionFactors& dimension);

  const EquationTypes& equation_;
  FactorGraph graph_;
  std::vector<ValueFactors> operands_, results_;
  std::vector<DimensionFactors> allowed_;
};

// ---- by family ----------------------------------------------------------------------------------------------------

Factors elementwise_factors(const EquationTypes& equation);  // operands of the results' shape, or scalars
Factors pairwise_factors(const EquationTypes& equation);     // each result is elementwise in the operand of its number
Factors whole_factors(const EquationTypes& equation);        // nothing may be split
FactorRule leading_factors(int64_t trailing);  // all but `trailing` dimensions of the first operand, in all values
FactorRule factors_but(const char* axis);      // all dimensions but the one that an attribute names

Factors broadcast_in_dim_factors(const EquationTypes& equation);
Factors reshape_factors(const EquationTypes& equation);
Factors squeeze_factors(const EquationTypes& equation);
Factors transpose_factors(const EquationTypes& equation);
Factors rev_factors(const EquationTypes& equation);
Factors tile_factors(const EquationTypes& equation);
Factors pad_factors(const EquationTypes& equation);
Factors iota_factors(const EquationTypes& equation);
Factors empty_factors(const EquationTypes& equation);
LocaliseRule result_shape_as(const char* name);  // the attribute is the shape of the result
Attrs localise_tile(const EquationTypes& equation);

Factors slice_factors(const EquationTypes& equation);
Attrs localise_slice(const EquationTypes& equation);
Factors dynamic_slice_factors(const EquationTypes& equation);
Factors dynamic_update_slice_factors(const EquationTypes& equation);
Factors gather_factors(const EquationTypes& equation);
Attrs localise_gather(const EquationTypes& equation);
Factors scatter_factors(const EquationTypes& equation);

Factors dot_general_factors(const EquationTypes& equation);
Factors ragged_dot_factors(const EquationTypes& equation);
Factors convolution_factors(const EquationTypes& equation);

Factors reduction_factors(const EquationTypes& equation);   // attribute axes; combined by the monoid of the record
Factors kept_factors(const EquationTypes& equation);        // attribute axes or dimensions, which stay whole
Factors batch_norm_factors(const EquationTypes& equation);  // the feature dimension
Factors window_factors(const EquationTypes& equation);
Factors fft_factors(const EquationTypes& equation);
Factors key_factors(const EquationTypes& equation);  // draws from arrays of keys
Factors all_gather_factors(const EquationTypes& equation);
Factors reduce_scatter_factors(const EquationTypes& equation);
Factors all_to_all_factors(const EquationTypes& equation);

// ---- of programs --------------------------------------------------------------------------------------------------

Factors call_factors(const EquationTypes& equation);
Attrs localise_call(const EquationTypes& equation);
Factors scan_factors(const EquationTypes& equation);
Attrs localise_scan(const EquationTypes& equation);
Factors while_factors(const EquationTypes& equation);
Attrs localise_while(const EquationTypes& equation);
Factors cond_factors(const EquationTypes& equation);
Attrs localise_cond(const EquationTypes& equation);
Factors lowered_factors(const EquationTypes& equation);  // of the composition that the record's lower rule builds

}  // namespace capibara
