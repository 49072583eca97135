// Random programs with inputs and error bounds, the comparison of two ways to run them, and their reduction to small
// ones.
#pragma once

#include <capibara/primitive.h>

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace capibara::random_programs {

// Numbers drawn from a seed, the same on every machine.
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
  std::vector<double> tolerances;  // one per output: the greatest difference allowed; 0: the same bits
};

// Programs for meshes have sizes that meshes divide, and more of what a partition treats in ways of its own; smooth
// ones are such programs in float64, which have derivatives.
enum class Kind { any, for_meshes, smooth };

// Everything follows from the seed: about one program in twenty works on arrays large enough for several threads.
RandomProgram make_random_program(uint64_t seed, Kind kind = Kind::any);

// A concrete array of a strong type from doubles (pairs for complex types), converted.
Array array_of(const ArrayType& type, const std::vector<double>& parts);

// Equations of a program, those of its nested programs included.
int equation_count(const Program& program);

using Runner = std::function<Arrays(const Program&, std::span<const Array>)>;

// Empty where the outputs agree within their tolerances. NaN agrees with NaN.
std::string difference(const Arrays& got, const Arrays& want, const std::vector<double>& tolerances);
// The same for one way to run a program against another; what it throws is a difference.
std::string difference(const RandomProgram& program, const Runner& trusted, const Runner& tried);

// The smallest program found, by leaving out outputs and equations, for which the two runners still differ.
RandomProgram shrink(RandomProgram program, const Runner& trusted, const Runner& tried);

// The gradient of a sum over what a program of floats returns, or where it has none (while loops) its forward
// derivative; without a program where it has neither. Tolerances follow from the size of what the trusted runner gives.
RandomProgram derivative(const RandomProgram& program, const Runner& trusted);

// Seed, program, small inputs.
std::string describe(const RandomProgram& program);

}  // namespace capibara::random_programs
