// Factors of an equation: the sizes that dimensions of its operands and results share, and how each may be split.
#pragma once

#include <capibara/primitive.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara {

// What the factors of an equation follow from.
struct EquationTypes {
  const Primitive& primitive;
  std::span<const ArrayType> operands;
  std::span<const ArrayType> results;
  const Attrs& attrs;
};

// What becomes of a factor when an equation is computed part by part.
enum class FactorUse : uint8_t {
  free,      // parts of operands give parts of results
  combined,  // no result has it: parts of results are combined by the monoid
  whole,     // it must not be split
};

struct Factor {
  int64_t size = 1;
  FactorUse use = FactorUse::free;
  Monoid monoid = Monoid::add;  // of a combined factor
};

// The factors of one dimension, outermost first. Their sizes multiply to the dimension's, or there are none: the
// dimension (of size 1, where others have more) takes no part.
using DimensionFactors = std::vector<int>;
using ValueFactors = std::vector<DimensionFactors>;  // one entry for each dimension

struct Factors {
  std::vector<Factor> factors;
  std::vector<ValueFactors> operands, results;

  int add(int64_t size, FactorUse use = FactorUse::free, Monoid monoid = Monoid::add);
};

// The factors of an equation by its record, or by the traits of its primitive.
Factors factors_of(const EquationTypes& equation);
// Whether the record says its factors, itself or by traits.
bool has_factors(const PrimitiveRecord& record);
// The factors as text: (i j) (j k) -> (i k), j: sum.
std::string to_string(const Factors& factors);
// The types of an equation's operands and results on one part.
struct PartTypes {
  Types operands, results;
};
// The types on one part where a factor is cut into parts; none where its size does not divide.
PartTypes part_types(const EquationTypes& equation, const Factors& factors, int factor, int64_t parts);

}  // namespace capibara
