// Factors of an equation that take help: dimensions that its primitive alone needs whole, but that can be split.
#pragma once

#include "compiler/partition/assign.h"
#include "compiler/partition/windows.h"

namespace capibara::sharding {

enum class Help : uint8_t {
  iota,             // counts from the start of the part
  gather_rows,      // rows on other devices count as zero; the sum has each row once
  scatter_rows,     // updates of rows on other devices are dropped
  scatter_updates,  // each device adds its updates to zeros, one of them to the operand; the sum has all of them
  extreme_index,    // argmax, argmin: the extremes of the parts are compared
  prefix,           // cumsum and related functions: the totals of the preceding parts are added
  window,           // parts exchange borders with their neighbours
};

struct ExtendedFactors {
  Factors factors;
  std::map<int, Help> helped;  // factors by number
};
ExtendedFactors extended_factors(const EquationTypes& equation);

// The results on one device of an equation whose helped factors are split. The caller combines pending results; those
// of extreme_index are complete. Appends the collectives of the help to `noted`, without line and cause.
Arrays helped_results(const Mesh& mesh, const EquationTypes& whole, const ExtendedFactors& extended,
                      const Assignment& assignment, Arrays operands, const Attrs& local_attrs,
                      std::vector<InsertedCollective>& noted);
bool needs_help(const ExtendedFactors& extended, const Assignment& assignment);

}  // namespace capibara::sharding
