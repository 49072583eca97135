// Shared by the records of elementwise primitives: accepted dtypes, type rules, derivative adapters, samples,
// lowering.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <vector>

#include "lax/families.h"
#include "lax/operators/plain_number.h"
#include "lax/rules.h"

namespace capibara::elementwise {

// Sets of dtypes that an operand may have.
enum Accept : unsigned {
  booleans = 1,
  signed_integers = 2,
  unsigned_integers = 4,
  floats = 8,
  complexes = 16,
  complex_parts = 32,  // float32 and float64, the parts of complex numbers
  keys = 64,
  wide_signed_integers = 128,  // signed integers of at least a byte
  integers = signed_integers | unsigned_integers,
  inexact = floats | complexes,
  numbers = integers | inexact,
  anything = numbers | booleans,
  bits = integers | booleans,
  ordered = integers | floats | booleans,
};

bool accepts(unsigned accepted, DType dtype);
std::vector<DType> accepted_dtypes(unsigned accepted);
// jax's text: `neg does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, complexfloating.`
void require_accepted(const std::string& op, unsigned accepted, DType dtype, int position = -1);

using ResultDType = DType (*)(DType);  // from the dtype of the first operand
inline DType same_dtype(DType dtype) { return dtype; }
inline DType always_bool(DType) { return DType::bool_; }

// `tolerated` dtypes are those of StableHLO that jax.lax rejects; its functions check them on their own.
TypeRule type_rule(std::string op, std::size_t operands, unsigned accepted, ResultDType result = same_dtype,
                   unsigned tolerated = 0);

struct SampleRange {
  double low = -2.0, high = 2.0;
};
SampleMaker sample_calls(std::size_t operands, SampleRange range = {}, std::vector<Attrs> variants = {Attrs()});

// A record with its type and batch rule, samples and cost; the family fills in the rest.
PrimitiveRecord record(std::string name, std::string doc, std::size_t operands, unsigned accepted,
                       std::string stablehlo, ResultDType result = same_dtype);

// For a binary operation that is a monoid's.
inline void combine_operands(PrimitiveRecord& r, Monoid monoid) {
  r.traits.combines = Combines::operands;
  r.traits.monoid = monoid;
}

// ---- derivatives from plain functions ---------------------------------------------------------------------------

inline Derivative from_input(Array (*rule)(const Array& g, const Array& x)) {
  return [rule](const Array& g, const Array&, std::span<const Array> in, const Attrs&) { return rule(g, in[0]); };
}
inline Derivative from_output(Array (*rule)(const Array& g, const Array& output, const Array& x)) {
  return [rule](const Array& g, const Array& y, std::span<const Array> in, const Attrs&) { return rule(g, y, in[0]); };
}
inline Derivative from_pair(Array (*rule)(const Array& g, const Array& x, const Array& y)) {
  return
      [rule](const Array& g, const Array&, std::span<const Array> in, const Attrs&) { return rule(g, in[0], in[1]); };
}
inline Derivative from_pair_output(Array (*rule)(const Array& g, const Array& output, const Array& x, const Array& y)) {
  return [rule](const Array& g, const Array& z, std::span<const Array> in, const Attrs&) {
    return rule(g, z, in[0], in[1]);
  };
}

// ---- constants and shapes ---------------------------------------------------------------------------------------

// Rank-0 constants; weak where x is.
Array zero_of(const Array& x);
Array one_of(const Array& x);
// x with its zeros replaced by ones.
Array replace_zero(const Array& x);
// Broadcasts to `shape` by broadcast_in_dim, from rank 0 or from dimensions of size 1.
Array broadcast_to(const Shape& shape, const Array& x, const Sharding& out_sharding = {});
// All operands at their common shape.
Arrays broadcast_operands(const std::string& op, std::span<const Array> operands);

// The lower rule of operations that broadcast implicitly, unlike StableHLO's. Returns nothing if the call is already
// in the subset.
LowerRule lower_broadcasting(std::string name);

// ---- functions of lax -------------------------------------------------------------------------------------------

// The name of a primitive as an argument of a template.
template <std::size_t length>
struct PrimitiveName {
  char text[length];
  consteval PrimitiveName(const char (&literal)[length]) { std::copy_n(literal, length, text); }
};

// Binds a primitive, which is looked up once. With several operands, plain C++ numbers take the dtype of the others.
template <PrimitiveName name, std::same_as<Array>... Operands>
Array call(const Operands&... operands) {
  static const Primitive p = primitive(name.text);
  if constexpr (sizeof...(Operands) == 1) {
    return bind1(p, {operands...});
  } else {
    return capibara::bind(p, adopt_numbers({operands...}))[0];
  }
}

Family arithmetic_records();
Family power_records();
Family extremum_records();
Family transcendental_records();
Family comparison_records();
Family bit_records();
Family conversion_records();

}  // namespace capibara::elementwise
