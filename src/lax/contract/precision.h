// The precision of dot products and convolutions: by name, or by the name of an algorithm.
#pragma once

#include <capibara/dtype.h>
#include <capibara/program.h>

#include <optional>
#include <string>

namespace capibara {

// Operand and accumulation dtypes of the algorithms that XLA's CPU backend supports.
struct DotAlgorithm {
  const char* name;
  std::optional<DType> operand;
  DType accumulator;
};
const DotAlgorithm* find_algorithm(const std::string& name);  // null if there is none

// A pair like (Precision.HIGHEST, Precision.HIGHEST), or an algorithm's name.
std::optional<std::string> print_precision(const std::string& name, const Attr& attr);

// precision None | "default" | "high" | "highest" (and their synonyms) | a pair "high,highest" | a DotAlgorithmPreset,
// as the attribute; an empty text takes the configuration's default. Raises ValueError.
Attr precision_attr(const std::string& op, const std::string& precision);

}  // namespace capibara
