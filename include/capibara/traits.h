// Traits: facts about a primitive by which passes, backends and tools classify it. They stand in its record.
#pragma once

#include <cstdint>
#include <optional>

namespace capibara {

// Whether the output at an index depends on the operands at that index alone, and which operands may be scalars beside
// arrays.
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
  root,      // one more, which cost models count among the transcendental functions
  function,  // dozens of instructions: exp, sin, pow
  series,    // loops or hundreds of instructions: zeta, random bits
};

// Operations that compute nothing: where the elements of the output come from.
enum class Moves : uint8_t {
  no,
  index,    // each from one index of the first operand: transpose, slice
  pieces,   // from one operand here, from another there: concatenate, pad
  several,  // as several operations of these kinds, which the record's lower rule writes: split, tile
};

// Associative and commutative operations with an identity.
enum class Monoid : uint8_t { add, mul, max, min, bit_and, bit_or, bit_xor };

// What a primitive combines by its monoid, or by a region of scalars where it has none.
enum class Combines : uint8_t { nothing, operands, axes, prefixes, windows, updates /* scatter */, order /* sort */ };

// Primitives that run programs as a whole.
enum class Control : uint8_t { none, call, scan, while_loop, cond, solve, device_map /* of a mesh */ };

// What a primitive does along named axes of a mesh. Where it does something, its type rule says what varies along them.
enum class MeshAxes : uint8_t {
  none,
  named,      // no more than bind them, or tell the position of a device
  cast,       // the identity, into a type that says something else of them
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
  bool own_partition = false;      // its attributes say what each device computes: the partitioner keeps its program
  bool region = false;             // holds a program on scalars, which its flops count
  bool free_to_recompute = false;  // costs no more to make than to read
  bool expands = false;            // makes much from little: worth no constant
  bool repeatable = true;          // equal operands, equal results: may be computed once, twice or not at all
  bool only_order = false;         // sees only order, signs and NaNs of numbers
  bool multiple_results = false;   // returns a list in Python
  bool nan_checked = false;        // checkify looks for NaN in its results
  float element_nanoseconds =
      0;                         // rough figures for one core of 2.6 GHz, where a load and a store do not tell the cost
  float matrix_nanoseconds = 0;  // of each element of a matrix, times its rows
};

}  // namespace capibara
