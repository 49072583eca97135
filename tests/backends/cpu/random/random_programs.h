// Random programs with inputs and error bounds, the comparison of two implementations, and reduction to small
// programs.
#pragma once

#include <capibara/primitive.h>

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace capibara::random_programs {

// Random numbers from a seed, the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {}

  int64_t below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  double real(double low, double high) { return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937_64 random_;
};

struct RandomProgram {
  uint64_t seed = 0;
  Program program;
  Arrays inputs;
  std::vector<double> tolerances;  // one per output: the maximum difference; 0: identical bits
};

// Programs for meshes have sizes that meshes divide, and more operations that the partitioner treats specially; smooth
// ones are programs for meshes in float64 that have derivatives.
enum class Kind { any, for_meshes, smooth };

// The seed determines everything. About one program in twenty works on arrays large enough for several threads.
RandomProgram make_random_program(uint64_t seed, Kind kind = Kind::any);

// A concrete, strongly typed array converted from doubles (pairs for complex types).
Array array_of(const ArrayType& type, const std::vector<double>& parts);

// The number of equations in a program, including nested programs.
int equation_count(const Program& program);

using Runner = std::function<Arrays(const Program&, std::span<const Array>)>;

// Empty if the outputs agree within their tolerances. NaN agrees with NaN.
std::string difference(const Arrays& got, const Arrays& want, const std::vector<double>& tolerances);
// Compares two runners on a program; an exception counts as a difference.
std::string difference(const RandomProgram& program, const Runner& trusted, const Runner& tried);

// Removes outputs and equations; returns the smallest program found for which the two runners still differ.
RandomProgram shrink(RandomProgram program, const Runner& trusted, const Runner& tried);

// The gradient of a sum over a program's float results, or its forward derivative if it has no gradient (while loops);
// no program if it has neither. Tolerances follow from the magnitude of the trusted runner's results.
RandomProgram derivative(const RandomProgram& program, const Runner& trusted);

// Seed, program, small inputs.
std::string describe(const RandomProgram& program);

}  // namespace capibara::random_programs
