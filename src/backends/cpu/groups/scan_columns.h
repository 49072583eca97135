// Scans whose steps are elementwise: an element of every carry depends on the same element of other values alone, so
// that blocks of elements pass through all steps one after another, each in the cache.
//
//   for step: for e: c[e] = f(c[e], x[step, e])     becomes     for block: for step: for e in block: c[e] = f(c[e],
//   x[step, e])
//
// A sequence that is stored with its steps last (jnp.moveaxis puts them first) is read and written as it is stored.
#pragma once

#include "backends/cpu/groups/access.h"

namespace capibara::cpu {

// How the elements of a sequence are placed.
struct SequenceLayout {
  bool columns = false;   // steps are the last dimension, not the first
  bool reversed = false;  // the last step is stored first
};

// Values are numbers, or have one shape.
struct ElementwiseScan {
  Shape shape;
  int64_t widest = 1;  // bytes of an element in memory or in registers
};
// Nothing where elements of a scan depend on each other.
std::optional<ElementwiseScan> elementwise_scan(const Equation& scan);
// Whether an equation gives a value of one element another shape, which computes nothing.
bool stretches(const Program& body, const Equation& equation);

// Whether a scan runs block by block; of arrays too large for registers.
bool runs_in_blocks(const Equation& scan);
// Elements of a block; with sequences in columns, the rows of a tile. The shape alone decides.
int64_t block_elements(const Equation& scan);
// Of the xs, then of the ys.
std::vector<SequenceLayout> layouts_of(const Equation& scan);

// Such scans read and write sequences through transposes and reversals, which are left out.
Program read_columns(const Program& program);

}  // namespace capibara::cpu
