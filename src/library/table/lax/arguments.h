// The arguments that only jax.lax has: dimension numbers, precisions, modes, paddings and axis names.
#pragma once

#include <capibara/lax.h>

#include "library/table/function.h"

namespace capibara::library {

// jax.lax does not promote: operands of different dtypes raise TypeError. Keys are checked by the operation.
void require_same_dtypes(const Arguments& arguments, std::initializer_list<Array> operands);

// A sequence of integers; unlike Arguments::ints, a single number raises TypeError. None is empty if allowed.
Ints integer_sequence(const Arguments& arguments, std::string_view name);
Ints optional_integer_sequence(const Arguments& arguments, std::string_view name);
// An axis of x for functions that index its shape; IndexError if x has no such axis.
int64_t indexed_axis(const Arguments& arguments, std::string_view name, const Array& x);

// None, "high", ("high", "highest"), or an algorithm, in the form that the options of contractions take.
std::string precision_text(const Arguments& arguments, std::string_view name);
struct PaddingArgument {
  std::string mode;  // if given by name
  std::optional<jax::lax::Padding> pairs;
};
PaddingArgument padding_argument(const Arguments& arguments, std::string_view name);
std::optional<jax::lax::GatherScatterMode> gather_scatter_mode(const Arguments& arguments, std::string_view name);

// The entries of a named or plain tuple of integer tuples; absent ones are empty.
std::vector<Ints> integer_tuples(const Arguments& arguments, std::string_view name, std::size_t least,
                                 std::size_t most);
// ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)); a single dimension need not be in a tuple.
DotDimensionNumbers dot_dimension_numbers(const std::string& function, const Value& value);
// None, three strings like NCHW, or three tuples of positions.
ConvDimensionNumbers conv_dimension_numbers(const Arguments& arguments, std::string_view name, int64_t lhs_rank,
                                            int64_t rhs_rank);

// One name or several.
jax::lax::AxisNames axis_names(const Arguments& arguments, std::string_view name = "axis_name");
std::string single_axis_name(const Arguments& arguments);
jax::lax::AxisGroups axis_groups(const Arguments& arguments);

// Applies a function to every leaf of nested sequences.
Value map_leaves(const Value& value, const std::function<Value(const Value&)>& function);
// A leaf as an array; TypeError if it is not one.
Array leaf_array(const Arguments& arguments, const Value& leaf);

}  // namespace capibara::library
