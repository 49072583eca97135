// An operation's attributes in VHLO and in StableHLO: structures split into fields, defaults made explicit.
#pragma once

#include <vector>

#include "compiler/stablehlo/bytecode/vhlo_operations.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// `values` are in the order of the row; those that only encode absence are omitted. Appends to `entries`. Raises
// ParseError if a value's form is not that of the row.
void add_stablehlo_attributes(const VhloOperation& row, const std::vector<Attribute>& values, const Operation& place,
                              std::vector<Dictionary::Entry>& entries);

// The values of an operation's VHLO attributes, in the order of the row, and the attributes for which VHLO has no name.
// Raises ParseError if an attribute without a default is missing, or has a form that VHLO does not have.
struct VhloValues {
  std::vector<Attribute> values;
  std::vector<Dictionary::Entry> others;
};
VhloValues vhlo_values(const VhloOperation& row, const Operation& operation);

// A list of 64-bit integers as a VHLO tensor.
Attribute integer_tensor(const std::vector<std::int64_t>& values);

}  // namespace capibara::stablehlo
