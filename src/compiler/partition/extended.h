// Factors that an equation has with some help: split dimensions that its primitive alone needs whole.
#pragma once

#include "compiler/partition/assign.h"
#include "compiler/partition/windows.h"

namespace capibara::sharding {

enum class Help : uint8_t {
  iota,             // counts from where the part begins
  gather_rows,      // rows that other devices hold count as zero; the sum has each once
  scatter_rows,     // updates of rows that other devices hold are dropped
  scatter_updates,  // each device adds its updates to zeros, one of them to the operand; the sum has all
  extreme_index,    // argmax, argmin: the extremes of parts are compared
  prefix,           // cumsum and its kin: what the parts before it yield is added
  window,           // neighbours lend the borders of parts
};

struct ExtendedFactors {
  Factors factors;
  std::map<int, Help> helped;  // factors by number
};
ExtendedFactors extended_factors(const EquationTypes& equation);

// The results on one device of an equation whose helped factors are split. What is pending is combined by the caller,
// but for extreme_index, which is complete. Adds to `noted` the collectives of the help, without line and cause.
Arrays helped_results(const Mesh& mesh, const EquationTypes& whole, const ExtendedFactors& extended,
                      const Assignment& assignment, Arrays operands, const Attrs& local_attrs,
                      std::vector<InsertedCollective>& noted);
bool needs_help(const ExtendedFactors& extended, const Assignment& assignment);

}  // namespace capibara::sharding
