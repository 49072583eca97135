// Traits: properties of a primitive, in its record, by which passes, backends and tools classify it.
#pragma once

#include <cstdint>
#include <optional>

namespace capibara {

// Whether each output element depends only on the operands at the same index, and which operands may be scalars
// next to arrays.
enum class Elementwise : uint8_t {
  no,
  same_shapes,
  any_scalar,
  scalar_choice /* the first */,
  scalar_bounds /* all but the second */
};

// Work for one element of an elementwise operation.
enum class Cost : uint8_t {
  simple,    // a few instructions
  division,  // a slow instruction
  root,      // also slow; cost models count it as a transcendental function
  function,  // dozens of instructions: exp, sin, pow
  series,    // loops or hundreds of instructions: zeta, random bits
};

// Operations that compute nothing: where the elements of the output come from.
enum class Moves : uint8_t {
  no,
  index,    // each from one index of the first operand: transpose, slice
  pieces,   // parts from different operands: concatenate, pad
  several,  // several operations of these kinds, as given by the record's lower rule: split, tile
};

// Associative and commutative operations with an identity.
enum class Monoid : uint8_t { add, mul, max, min, bit_and, bit_or, bit_xor };

// What a primitive combines by its monoid, or by a region of scalars if it has none.
enum class Combines : uint8_t { nothing, operands, axes, prefixes, windows, updates /* scatter */, order /* sort */ };

// Primitives that run whole programs.
enum class Control : uint8_t { none, call, scan, while_loop, cond, solve, device_map /* of a mesh */ };

// What a primitive does along named mesh axes. Unless it is `none`, the type rule determines what varies along them.
enum class MeshAxes : uint8_t {
  none,
  named,      // only binds them, or returns the position of a device
  cast,       // the identity, cast to a type with other varying axes
  exchanged,  // devices along them exchange values
};

struct Traits {
  Elementwise elementwise = Elementwise::no;
  Cost cost = Cost::simple;
  Moves moves = Moves::no;
  Combines combines = Combines::nothing;
  std::optional<Monoid> monoid;
  Control control = Control::none;
  const char* called_program = nullptr;  // of a call: the attribute that holds its program
  MeshAxes mesh_axes = MeshAxes::none;
  bool own_partition = false;      // its attributes define each device's computation: the partitioner keeps its program
  bool region = false;             // holds a program on scalars, which its flops count
  bool free_to_recompute = false;  // no more expensive to compute than to read
  bool expands = false;            // large output from little input: not worth storing as a constant
  bool repeatable = true;          // equal operands give equal results: may be computed once, twice or never
  bool only_order = false;         // depends only on the order, signs and NaNs of numbers
  bool multiple_results = false;   // returns a list in Python
  bool nan_checked = false;        // checkify checks its results for NaN
  float element_nanoseconds =
      0;                         // approximate cost on one core of 2.6 GHz, unless a load and a store dominate the cost
  float matrix_nanoseconds = 0;  // per element of a matrix, times its number of rows
};

}  // namespace capibara
