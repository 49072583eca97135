// Decodes the literal of dense<...> into the bytes of an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/stablehlo/syntax/lexer.h"
#include "compiler/stablehlo/syntax/syntax.h"
#include "core/array/small_float.h"

namespace capibara::stablehlo {

// The literal is the text between the brackets, from `begin` to `end`: one element, nested lists of them, a string
// "0x..." of hexadecimal bytes, or nothing for a tensor without elements.
DenseElements decode_dense(const Lexer& lexer, std::size_t begin, std::size_t end, const Type& type);

// Elements of `width` bytes each; a splat if they are all equal.
DenseElements make_dense(const Type& type, std::vector<std::uint8_t> bytes, std::size_t width);

// The bit layout of a floating dtype of at most 16 bits; null for other dtypes.
const SmallFormat* find_small_format(DType dtype);

}  // namespace capibara::stablehlo
