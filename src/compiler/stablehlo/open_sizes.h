// Texts with dynamic sizes: they are read for the sizes of a particular call, which determine all others.
#pragma once

#include <span>
#include <string>

#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

class BodyReader;

bool has_open_sizes(const Module& module);
bool has_open_sizes(const Type& type);

// True if shapes may be computed from a value: a few integers that are known while the text is read.
bool is_known(const NdArray& array);
// A function's key for one call: the types of its operands, and the values of those that are known.
std::string call_key(std::span<const NdArray> operands);
// True if an operation must be computed while the text is read, since shapes may be computed from its results.
bool gives_sizes(const Operation& operation, std::span<const NdArray> operands);

// True if an operation is read after `close_sizes`, which replaces dynamic sizes in result types by those derived from
// operands, and removes operands that serve no other purpose. Raises UnsupportedError if an operation needs the size of
// its result and nothing determines it.
bool needs_sizes(const Operation& operation);
void close_sizes(Operation& operation, Arrays& operands);

// Raises ValueError with the operation's own message if its condition does not hold.
Arrays read_shape_assertion(const Operation& operation, const Arrays& operands);
// Windows whose sizes, strides, dilations and paddings are operands; jax writes them as a call of a function that
// reduces two elements.
Arrays read_dynamic_window(BodyReader& body, const Operation& operation, const Arrays& operands);
// A slice of known sizes at starts that the program computes;
// its limits are written as the starts plus the sizes.
Arrays read_slice_at(BodyReader& body, const Operation& operation, const Arrays& operands);

}  // namespace capibara::stablehlo
