// Factors of an equation: the sizes that dimensions of its operands and results share, and how each may be split.
#pragma once

#include <capibara/primitive.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara {

// The inputs from which the factors of an equation are derived.
struct EquationTypes {
  const Primitive& primitive;
  std::span<const ArrayType> operands;
  std::span<const ArrayType> results;
  const Attrs& attrs;
};

// How a factor behaves when an equation is computed part by part.
enum class FactorUse : uint8_t {
  free,      // each part of the operands gives a part of the results
  combined,  // absent from the results: partial results are combined by the monoid
  whole,     // it must not be split
};

struct Factor {
  int64_t size = 1;
  FactorUse use = FactorUse::free;
  Monoid monoid = Monoid::add;  // of a combined factor
};

// The factors of one dimension, outermost first. Their product is the dimension's size; an empty list means that the
// dimension (of size 1, broadcast against larger ones) does not take part.
using DimensionFactors = std::vector<int>;
using ValueFactors = std::vector<DimensionFactors>;  // one entry per dimension

struct Factors {
  std::vector<Factor> factors;
  std::vector<ValueFactors> operands, results;

  int add(int64_t size, FactorUse use = FactorUse::free, Monoid monoid = Monoid::add);
};

// The factors of an equation from its record, or from the traits of its primitive.
Factors factors_of(const EquationTypes& equation);
// True if the record defines factors, directly or by traits.
bool has_factors(const PrimitiveRecord& record);
// The factors as text: (i j) (j k) -> (i k), j: sum.
std::string to_string(const Factors& factors);
// The operand and result types of an equation on one part.
struct PartTypes {
  Types operands, results;
};
// The types on one part if a factor is split into parts; empty if its size is not divisible.
PartTypes part_types(const EquationTypes& equation, const Factors& factors, int factor, int64_t parts);

}  // namespace capibara
