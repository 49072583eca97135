// Scans whose steps are elementwise: an element of every carry depends on the same element of other values alone, so
// that blocks of elements pass through all steps one after another, each in the cache.
//
//   for step: for e: c[e] = f(c[e], x[step, e])     becomes     for block: for step: for e in block: c[e] = f(c[e],
//   x[step, e])
//
// A sequence stored with its steps last (jnp.moveaxis puts them first) is read and written in that layout.
#pragma once

#include "backends/cpu/groups/access.h"

namespace capibara::cpu {

// The layout of a sequence.
struct SequenceLayout {
  bool columns = false;   // steps are the last dimension, not the first
  bool reversed = false;  // the last step is stored first
};

// All values are scalars, or have one common shape.
struct ElementwiseScan {
  Shape shape;
  int64_t widest = 1;  // bytes of an element in memory or in registers
};
// nullopt if elements of a scan depend on each other.
std::optional<ElementwiseScan> elementwise_scan(const Equation& scan);
// True if an equation only broadcasts a value of one element, which computes nothing.
bool stretches(const Program& body, const Equation& equation);

// True if a scan runs block by block, over arrays too large for registers.
bool runs_in_blocks(const Equation& scan);
// Elements per block; with sequences in columns, rows per tile. Depends on the shape alone.
int64_t block_elements(const Equation& scan);
// Those of the xs, then those of the ys.
std::vector<SequenceLayout> layouts_of(const Equation& scan);

// Removes the transposes and reversals through which such scans read and write sequences.
Program read_columns(const Program& program);

}  // namespace capibara::cpu
