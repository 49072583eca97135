// Elements of arrays in generated code: how each dtype is held in registers, and what each elementwise primitive
// writes.
//
// Every result is rounded to its dtype after each primitive, as in the reference backend: floats narrower than 32 bits
// are computed in f32 and rounded down and up, integers narrower than a byte in i8 and truncated to their width.
#pragma once

#include <capibara/primitive.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "backends/cpu/loops/builder.h"
#include "lax/reduce/monoid.h"

namespace capibara::cpu {

// One value; two for a complex number (real, imaginary), one per 32-bit word for a key.
struct Element {
  Value parts[4] = {no_value, no_value, no_value, no_value};
  int count = 1;
  // The element as memory holds it, if that differs from the registers and is known: stored without rounding again, so
  // that elements that are only moved keep every bit.
  Value stored = no_value;

  Element() = default;
  explicit Element(Value value) : parts{value, no_value, no_value, no_value} {}
  Element(Value real, Value imaginary) : parts{real, imaginary, no_value, no_value}, count(2) {}
};

bool has_element(DType dtype);      // dtypes that generated code can hold: all except tokens
Scalar stored_type(DType dtype);    // of one part in memory
Scalar computed_type(DType dtype);  // of one part in registers
int part_count(DType dtype);        // values per element

// `address` counts elements of the array.
Element load_element(Builder& builder, DType dtype, const Address& address);
void store_element(Builder& builder, DType dtype, const Address& address, const Element& element);
Element constant_element(Builder& builder, DType dtype, const std::byte* stored);

// One part as memory holds it, and the element made from it.
Value stored_value(Builder& builder, DType dtype, const Element& element);
Element element_of_stored(Builder& builder, DType dtype, Value stored);

// Rounds an element whose parts are already in registers to a value of the dtype.
Element rounded_element(Builder& builder, DType dtype, Element element);
// convert_element_type.
Element convert_element(Builder& builder, DType from, DType to, const Element& element);
// condition (i1) ? yes : no
Element select_element(Builder& builder, Value condition, const Element& yes, const Element& no);

// ---- primitives ---------------------------------------------------------------------------------------------------

// True if generated code supports the primitive on these operands; `output` is the dtype of its first result.
bool is_elementwise(const Primitive& primitive, std::span<const DType> inputs, DType output);
// Costs more than a few instructions: never recomputed.
inline bool is_expensive(const Primitive& primitive) { return primitive->traits.cost != Cost::simple; }
// One result of the primitive (threefry2x32 has two; requesting both emits the shared part once).
Element apply_elementwise(Builder& builder, const Primitive& primitive, const Attrs& attrs,
                          std::span<const DType> in_types, DType out_type, std::span<const Element> inputs,
                          int output = 0);

// The same value by a call of code that all such calls in the function share: for a primitive that occurs many times
// and would take long to compile if it were inlined each time. Short primitives are inlined here too.
Element apply_shared(Builder& builder, const Primitive& primitive, const Attrs& attrs, std::span<const DType> in_types,
                     DType out_type, std::span<const Element> inputs);

// ---- reductions ---------------------------------------------------------------------------------------------------

// Parts may be wider than the dtype's own computed type (f64 sums of f32 elements); floats are not rounded to the
// dtype.
Element combine(Builder& builder, Monoid monoid, DType dtype, const Element& a, const Element& b);
Element identity_element(Builder& builder, Monoid monoid, DType dtype);
// The operation that combines lanes part by part (Carry::combine); nullopt if parts mix (products and extrema of
// complex numbers) or if a combination must be truncated to the dtype's width.
std::optional<Op> combine_op(Monoid monoid, DType dtype);

}  // namespace capibara::cpu
