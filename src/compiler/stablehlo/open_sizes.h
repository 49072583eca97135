// Texts in which sizes stay open: they are read for the sizes of one call, which decide all others.
#pragma once

#include <span>
#include <string>

#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

class BodyReader;

bool has_open_sizes(const Module& module);
bool has_open_sizes(const Type& type);

// Whether shapes may be computed from a value: a few integers that are known while the text is read.
bool is_known(const NdArray& array);
// What a function is read for: the types of its operands, and the values of those that are known.
std::string call_key(std::span<const NdArray> operands);
// Whether an operation is to be computed while the text is read, since shapes may be computed from its results.
bool gives_sizes(const Operation& operation, std::span<const NdArray> operands);

// Whether an operation is read after `close_sizes`, which replaces open sizes in the types of results by those that
// operands say, and takes away operands that say nothing else. Raises UnsupportedError where an operation needs the
// size of its result and nothing says it.
bool needs_sizes(const Operation& operation);
void close_sizes(Operation& operation, Arrays& operands);

// Raises ValueError with the operation's own message where its condition does not hold.
Arrays read_shape_assertion(const Operation& operation, const Arrays& operands);
// Windows whose sizes, strides, dilations and paddings are operands, which jax writes as a call of a function that
// reduces two elements.
Arrays read_dynamic_window(BodyReader& body, const Operation& operation, const Arrays& operands);
// A slice of known sizes from positions that the program computes; its ends are written as the positions plus the
// sizes.
Arrays read_slice_at(BodyReader& body, const Operation& operation, const Arrays& operands);

}  // namespace capibara::stablehlo
