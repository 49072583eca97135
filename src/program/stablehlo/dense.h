// Decodes the literal of dense<...> into the bytes of an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/stablehlo/lexer.h"
#include "program/stablehlo/syntax.h"

namespace capibara::stablehlo {

// The literal is the text between the brackets, from `begin` to `end`: one element, nested lists of them, a string
// "0x..." of hexadecimal bytes, or nothing for a tensor without elements.
DenseElements decode_dense(const Lexer& lexer, std::size_t begin, std::size_t end, const Type& type);

// Elements of `width` bytes each, as a splat where they are all alike.
DenseElements make_dense(const Type& type, std::vector<std::uint8_t> bytes, std::size_t width);

// The bits of `value` in a floating format of at most 32 bits (f16, bf16, f8E4M3FN, ...), rounded to nearest even.
// What is too large becomes infinity, or NaN where the format has none, or its largest value where it has neither.
std::uint32_t round_to_float_bits(double value, const DTypeRow& format);

}  // namespace capibara::stablehlo
