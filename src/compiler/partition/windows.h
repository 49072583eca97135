// Dimensions along which a window slides: their parts need borders from their neighbours.
#pragma once

#include <capibara/partition.h>

#include "compiler/partition/layout.h"

namespace capibara::sharding {

// A dimension of operand 0 and of the result that can be split together: parts of the operand have `stride` elements
// per element of the result.
struct SlidDimension {
  std::size_t operand, result;
  std::size_t place;  // index in the attribute `padding`
  int64_t stride;
  int64_t before, after;  // elements that a part needs from its neighbours
};
// Such dimensions of convolutions, and of sums, maxima and minima over windows.
std::vector<SlidDimension> slid_dimensions(const EquationTypes& equation);
// Gives each of them one factor, that of the result; returns the numbers of these factors.
std::vector<int> join_slid_dimensions(const std::vector<SlidDimension>& slid, const EquationTypes& equation,
                                      Factors& factors);

// Operand 0 extended by the borders of its neighbours along these axes; where there is no neighbour, by the padding,
// which is `nothing`. Appends what is sent to `noted`.
Array with_borders(const Mesh& mesh, const Axes& axes, const SlidDimension& slid, const Array& x, const Array& nothing,
                   std::vector<InsertedCollective>& noted);
// The attributes of an equation whose operand has borders along these dimensions instead of padding.
Attrs without_padding(const Attrs& attrs, const std::vector<SlidDimension>& bordered);

}  // namespace capibara::sharding
