// Elements of each dtype in registers and in memory, and conversions between dtypes.
#include "backends/cpu/elements/element.h"

#include <cstring>

#include "backends/cpu/elements/small_float.h"
#include "core/array/element.h"

namespace capibara::cpu {

namespace {

// Two-byte floats: memory holds a float that the hardware converts.
bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

Address part_address(const Address& address, int parts, int part) {
  if (parts == 1) return address;
  Address result = address;
  result.offset = address.offset * parts + part;
  for (Term& term : result.terms) term.factor *= parts;
  return result;
}

// Converts one part from its form in memory to that in registers, and back.
Value widen(Builder& b, DType dtype, Value stored) {
  if (is_half(dtype)) return b.convert(Op::float_convert, Scalar::f32, stored);
  if (is_coded_float(dtype)) return decode_small_float(b, dtype, stored);
  return stored;
}

Value narrow(Builder& b, DType dtype, Value value) {
  if (is_half(dtype)) return b.convert(Op::float_convert, stored_type(dtype), value);
  if (is_coded_float(dtype)) return encode_small_float(b, dtype, value);
  return value;
}

// Truncates an i8 to the width of an integer dtype narrower than a byte.
Value cut(Builder& b, DType dtype, Value value) {
  const int width = bits(dtype);
  if (is_unsigned(dtype)) return b.compute(Op::bit_and, value, b.constant_int(Scalar::i8, (1 << width) - 1));
  const Value places = b.constant_int(Scalar::i8, 8 - width);
  return b.compute(Op::shift_right_arithmetic, b.compute(Op::shift_left, value, places), places);
}

// A double as the f32 from which every narrower format rounds to the same number: the truncated bits set the last bit
// that is kept (a sticky bit).
Value round_to_odd(Builder& b, Value value) {
  const Value word = b.convert(Op::bitcast, Scalar::i64, value);
  const int64_t tail = (int64_t{1} << 29) - 1;
  const Value rest = b.compute(Op::bit_and, word, b.constant_int(Scalar::i64, tail));
  const Value mark = b.compute(Op::select, b.compute(Op::ne, rest, b.index(0)), b.index(tail + 1), b.index(0));
  const Value kept = b.compute(Op::bit_and, word, b.constant_int(Scalar::i64, ~tail));
  const Value marked = b.convert(Op::bitcast, Scalar::f64, b.compute(Op::bit_or, kept, mark));
  return b.convert(Op::float_convert, Scalar::f32, marked);
}

// A power of two; the smallest, 2^-127, is a denormal of f32, which the hardware flushes to zero.
Value widen_power_of_two(Builder& b, Value value) {
  const Value word = b.convert(Op::bitcast, Scalar::i32, value);
  const Value is_least = b.compute(Op::eq, word, b.constant_int(Scalar::i32, 0x00400000));
  const Value widened = b.convert(Op::float_convert, Scalar::f64, value);
  return b.compute(Op::select, is_least, b.constant(Scalar::f64, 0x1p-127), widened);
}

// Denormals of float32 and float64 count as zero; those of narrower types, which are computed in float32, are
// recognised by their bits, as in jax.
Value is_nonzero(Builder& b, DType from, Value value) {
  const Scalar type = b.type(value);
  if (type == Scalar::i1) return value;
  if (!is_float(type)) return b.compute(Op::ne, value, b.constant_int(type, 0));
  if (bits(from) >= 32) return b.compute(Op::ne, value, b.constant(type, 0));
  const Scalar integer = type == Scalar::f64 ? Scalar::i64 : Scalar::i32;
  const Value word = b.convert(Op::bitcast, integer, b.compute(Op::abs, value));
  return b.compute(Op::ne, word, b.constant_int(integer, 0));
}

Value convert_integer(Builder& b, DType from, Scalar to, Value value) {
  const int old_size = byte_size(b.type(value)), new_size = byte_size(to);
  if (b.type(value) == Scalar::i1) return b.convert(Op::zero_extend, to, value);
  if (old_size == new_size) return value;
  if (old_size > new_size) return b.convert(Op::narrow, to, value);
  return b.convert(is_signed(from) ? Op::sign_extend : Op::zero_extend, to, value);
}

// Saturates at the limits of the dtype.
Value float_to_integer(Builder& b, DType to, Value value) {
  const Scalar type = computed_type(to);
  Value whole = b.convert(is_signed(to) ? Op::float_to_signed : Op::float_to_unsigned, type, value);
  if (!is_sub_byte(to)) return whole;
  const int width = bits(to);
  const int64_t high = is_signed(to) ? (1 << (width - 1)) - 1 : (1 << width) - 1;
  const Value greatest = b.constant_int(type, high);
  whole = b.compute(Op::select, b.compute(is_signed(to) ? Op::gt : Op::gt_unsigned, whole, greatest), greatest, whole);
  if (is_unsigned(to)) return whole;
  const Value least = b.constant_int(type, -high - 1);
  return b.compute(Op::select, b.compute(Op::lt, whole, least), least, whole);
}

// Converts one number of a real dtype; the result is not yet rounded to `to`.
Value convert_part(Builder& b, DType from, DType to, Value value) {
  const Scalar type = computed_type(to);
  if (is_bool(to) || to == DType::float0) return is_nonzero(b, from, value);
  const bool from_float = is_float(b.type(value));
  if (is_integer(to)) return from_float ? float_to_integer(b, to, value) : convert_integer(b, from, type, value);
  if (!from_float) {
    const bool is_one_bit = b.type(value) == Scalar::i1;
    return b.convert(is_one_bit || is_unsigned(from) ? Op::unsigned_to_float : Op::signed_to_float, type, value);
  }
  // A double reaches bfloat16 through float32 rounded to nearest, as XLA does it.
  const bool small = is_floating(to) && bits(to) <= 16 && to != DType::bfloat16;
  if (b.type(value) == Scalar::f64 && small) return round_to_odd(b, value);
  if (from == DType::float8_e8m0fnu && type == Scalar::f64) return widen_power_of_two(b, value);
  return b.convert(Op::float_convert, type, value);
}

}  // namespace

bool has_element(DType dtype) { return dtype != DType::token; }

int part_count(DType dtype) {
  if (is_complex(dtype)) return 2;
  return is_key(dtype) ? static_cast<int>(key_words(dtype)) : 1;
}

Scalar stored_type(DType dtype) {
  switch (dtype) {
    case DType::bool_:
    case DType::float0:
      return Scalar::i1;
    case DType::float16:
      return Scalar::f16;
    case DType::bfloat16:
      return Scalar::bf16;
    case DType::float32:
    case DType::complex64:
      return Scalar::f32;
    case DType::float64:
    case DType::complex128:
      return Scalar::f64;
    default:
      break;
  }
  if (is_key(dtype)) return Scalar::i32;
  switch (storage_size(dtype)) {
    case 1:
      return Scalar::i8;
    case 2:
      return Scalar::i16;
    case 4:
      return Scalar::i32;
    default:
      return Scalar::i64;
  }
}

Scalar computed_type(DType dtype) {
  if (is_floating(dtype)) return dtype == DType::float64 ? Scalar::f64 : Scalar::f32;
  return stored_type(dtype);
}

Element load_element(Builder& builder, DType dtype, const Address& address) {
  Element element;
  element.count = part_count(dtype);
  for (int i = 0; i < element.count; ++i) {
    element.parts[i] = builder.load(stored_type(dtype), part_address(address, element.count, i));
  }
  if (stored_type(dtype) != computed_type(dtype)) {
    element.stored = element.parts[0];
    element.parts[0] = widen(builder, dtype, element.stored);
  }
  if (is_sub_byte(dtype) && is_integer(dtype)) element.parts[0] = cut(builder, dtype, element.parts[0]);
  return element;
}

void store_element(Builder& builder, DType dtype, const Address& address, const Element& element) {
  if (stored_type(dtype) != computed_type(dtype)) {
    builder.store(stored_value(builder, dtype, element), address);
    return;
  }
  for (int i = 0; i < element.count; ++i) builder.store(element.parts[i], part_address(address, element.count, i));
}

Value stored_value(Builder& builder, DType dtype, const Element& element) {
  return element.stored != no_value ? element.stored : narrow(builder, dtype, element.parts[0]);
}

Element element_of_stored(Builder& builder, DType dtype, Value stored) {
  Element element(widen(builder, dtype, stored));
  if (stored_type(dtype) != computed_type(dtype)) element.stored = stored;
  return element;
}

Element constant_element(Builder& builder, DType dtype, const std::byte* stored) {
  Element element;
  element.count = part_count(dtype);
  const int size = byte_size(stored_type(dtype));
  for (int i = 0; i < element.count; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, stored + i * size, static_cast<std::size_t>(size));
    if (stored_type(dtype) == Scalar::i1) word = word != 0;
    if (stored_type(dtype) != computed_type(dtype)) {
      element.stored = builder.constant_bits(stored_type(dtype), word);
      element.parts[0] = builder.constant(computed_type(dtype), element_as_double(dtype, stored, 0));
    } else {
      element.parts[i] = builder.constant_bits(stored_type(dtype), word);
    }
  }
  if (is_sub_byte(dtype) && is_integer(dtype)) {
    element.parts[0] = builder.constant_int(Scalar::i8, element_as_int64(dtype, stored, 0));
  }
  return element;
}

Element rounded_element(Builder& builder, DType dtype, Element element) {
  if (is_inexact(dtype)) {
    // Sums may have been kept in higher precision.
    for (int i = 0; i < element.count; ++i) {
      element.parts[i] = builder.convert(Op::float_convert, computed_type(dtype), element.parts[i]);
    }
  }
  if (stored_type(dtype) != computed_type(dtype)) {
    return element_of_stored(builder, dtype, narrow(builder, dtype, element.parts[0]));
  }
  if (is_sub_byte(dtype)) element.parts[0] = cut(builder, dtype, element.parts[0]);
  return element;
}

Element convert_element(Builder& builder, DType from, DType to, const Element& element) {
  if (from == to) return element;
  if (is_complex(to)) {
    const DType part = real_dtype(to);
    const Value real = convert_part(builder, real_dtype(from), part, element.parts[0]);
    if (!is_complex(from)) return Element(real, builder.constant(computed_type(to), 0));
    return Element(real, convert_part(builder, real_dtype(from), part, element.parts[1]));
  }
  Element result(convert_part(builder, real_dtype(from), to, element.parts[0]));
  const bool saturated = is_integer(to) && is_float(builder.type(element.parts[0]));
  return saturated ? result : rounded_element(builder, to, result);
}

Element select_element(Builder& builder, Value condition, const Element& yes, const Element& no) {
  Element result;
  result.count = yes.count;
  for (int i = 0; i < yes.count; ++i) {
    result.parts[i] = builder.compute(Op::select, condition, yes.parts[i], no.parts[i]);
  }
  if (yes.stored != no_value && no.stored != no_value) {
    result.stored = builder.compute(Op::select, condition, yes.stored, no.stored);
  }
  return result;
}

}  // namespace capibara::cpu
