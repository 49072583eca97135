// The attributes of an operation in VHLO and in StableHLO: structures taken apart, defaults spelled out.
#pragma once

#include <vector>

#include "compiler/stablehlo/bytecode/vhlo_operations.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::stablehlo {

// `values` stand in the order of the row; what VHLO says only because it says everything is left out. Appends to
// `entries`. Raises ParseError where a value has another form than the row wants.
void add_stablehlo_attributes(const VhloOperation& row, const std::vector<Attribute>& values, const Operation& place,
                              std::vector<Dictionary::Entry>& entries);

// The values of VHLO's attributes of an operation, in the order of the row, and the attributes that VHLO has no name
// for. An attribute that is missing without a default, or whose form VHLO does not have, is a ParseError.
struct VhloValues {
  std::vector<Attribute> values;
  std::vector<Dictionary::Entry> others;
};
VhloValues vhlo_values(const VhloOperation& row, const Operation& operation);

// A list of 64-bit integers as the tensor that VHLO writes.
Attribute integer_tensor(const std::vector<std::int64_t>& values);

}  // namespace capibara::stablehlo
