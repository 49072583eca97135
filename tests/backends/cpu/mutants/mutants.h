// Mutants: programs close to those that a rewrite recognises, which must keep their values whether or not it still
// applies.
//
// A recognizer has samples, small functions to which it applies. A mutant is a sample with one to three changes around
// the pattern: operands swapped, repeated, cast, negated, permuted or taken from elsewhere, other constants and
// comparisons, other readers, other sizes (including 0 and 1) and types, NaN, infinities and zeros of both signs in
// the values. Each runs compiled by the cpu backend, and unchanged on the reference backend.
#pragma once

#include "backends/cpu/random/random_programs.h"

#include "program/ir/build.h"

#include <functional>
#include <string>
#include <vector>

namespace capibara::mutants {

using random_programs::Dice;

// An input of a sample: its type, and the range that its elements are drawn from.
struct Input {
  ArrayType type;
  double low = -2, high = 2;
};
Input floats(Shape shape, DType dtype = DType::float32);
Input integers(Shape shape, double low, double high, DType dtype = DType::int32);
Input bools(Shape shape);

// A number of the same type, and an array of the same shape filled with it.
Array number(const Array& like, double value);
Array spread(const Array& like, double value);

struct Sample {
  std::string name;
  Ints sizes;                                             // sizes for which the recognizer applies
  std::function<std::vector<Input>(const Ints&)> inputs;  // for any sizes
  FlatFunction function;                                  // takes all sizes from its inputs
  // From the traced function, the program to compile and one that defines its meaning; none: the function itself.
  std::function<std::pair<Program, Program>(const Program&)> both = {};
  bool finite = false;         // no special values: how they propagate is unspecified
  bool donates = false;        // every mutant is called with donated inputs
  bool keeps_regions = false;  // nested programs stay: a function folded in any order has to be associative
};

struct Recognizer {
  std::string name;
  std::function<bool(const Program&)> applies;  // takes the program as written
  std::vector<Sample> samples;
  bool costly = false;  // large arrays: a short run has fewer mutants
};

// All recognizers, by room.
std::vector<Recognizer> optimiser_recognizers();  // mutants_optimiser.cpp
std::vector<Recognizer> kernel_recognizers();     // mutants_kernels.cpp
std::vector<Recognizer> region_recognizers();     // mutants_regions.cpp
std::vector<Recognizer> nest_recognizers();       // mutants_nests.cpp
std::vector<Recognizer> memory_recognizers();     // mutants_memory.cpp

// One mutant, ready to run.
struct Mutant {
  uint64_t seed = 0;
  std::string changes;     // in words
  Program written;         // the function of the sample, changed
  Program tried, trusted;  // to compile, and the definition of its meaning
  Arrays inputs;
  std::vector<bool> donated;
};

// Thrown if a drawn change does not fit the program.
struct Unfit {};

// The sample unchanged, and a mutant of it.
Mutant unchanged(const Sample& sample, uint64_t seed);
Mutant make_mutant(const Sample& sample, uint64_t seed);

// ---- changes (mutants_change.cpp) ----

// Programs are retraced equation by equation, so the equations after a change get new types.
struct Change {
  std::string name;
  int place = 0;  // index of the equation, counting nested programs
  uint64_t seed = 0;
  bool keeps_regions = false;
};
// Raises Unfit, or tracing's own error, if the change does not give a valid program.
Program changed(const Program& program, const Types& inputs, const Change& change);
const std::vector<std::string>& change_names();

// ---- comparison (mutants_compare.cpp) ----

// A program with perturbed rounding: each rounded result moves by up to one unit in the last place.
Program shaken(const Program& program, uint64_t seed);

struct Comparison {
  std::string text;          // what differs; empty where all agree
  bool informative = false;  // whether any element could have differed
};
// The spread of perturbed results around the reference backend's determines the tolerance for compiled results.
// NaN, infinities and signs of zeros on which all roundings agree are required.
Comparison compare(const Mutant& mutant);

}  // namespace capibara::mutants
