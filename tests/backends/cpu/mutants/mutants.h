// Mutants: programs next to those that a rewrite recognises, which must keep their values whether it still applies or
// not.
//
// A recognizer has samples, small functions that make it apply. A mutant is a sample with one to three changes around
// the pattern: operands swapped, repeated, cast, negated, permuted or taken from elsewhere, other constants and
// comparisons, other readers, other sizes (0 and 1 among them) and types, NaN, infinities and zeros of both signs in
// the values. Each runs as the cpu backend compiles it, and as it is written on the reference backend.
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

// A number of the same type, and as many of them.
Array number(const Array& like, double value);
Array spread(const Array& like, double value);

struct Sample {
  std::string name;
  Ints sizes;                                             // at which the recognizer applies
  std::function<std::vector<Input>(const Ints&)> inputs;  // for any sizes
  FlatFunction function;                                  // takes all sizes from its inputs
  // The program to compile, and the one that says what it means, of the traced function; none: the function itself.
  std::function<std::pair<Program, Program>(const Program&)> both = {};
  bool finite = false;         // no special values: where they spread to is left open
  bool donates = false;        // every mutant is called with donated inputs
  bool keeps_regions = false;  // programs inside stay: what folds in any order is associative
};

struct Recognizer {
  std::string name;
  std::function<bool(const Program&)> applies;  // to a program as it was written
  std::vector<Sample> samples;
  bool costly = false;  // large arrays: a short run takes fewer mutants
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
  Program tried, trusted;  // to compile, and what it means
  Arrays inputs;
  std::vector<bool> donated;
};

// Thrown where a change was drawn that does not suit the program.
struct Unfit {};

// The sample as it is, and a mutant of it.
Mutant unchanged(const Sample& sample, uint64_t seed);
Mutant make_mutant(const Sample& sample, uint64_t seed);

// ---- changes (mutants_change.cpp) ----

// Programs are traced anew, equation by equation: what follows a change is typed anew with it.
struct Change {
  std::string name;
  int place = 0;  // of the equation, counted through nested programs
  uint64_t seed = 0;
  bool keeps_regions = false;
};
// Raises Unfit, or what tracing raises, where the change leads to no program.
Program changed(const Program& program, const Types& inputs, const Change& change);
const std::vector<std::string>& change_names();

// ---- comparison (mutants_compare.cpp) ----

// A program that rounds otherwise: each result that is rounded moves by up to a unit in the last place.
Program shaken(const Program& program, uint64_t seed);

struct Comparison {
  std::string text;          // what differs; empty where all agree
  bool informative = false;  // whether any element could have differed
};
// How far the results of other roundings are from those of the reference backend says how far compiled ones may be.
// NaN, infinities and signs of zeros that all roundings agree on are required.
Comparison compare(const Mutant& mutant);

}  // namespace capibara::mutants
