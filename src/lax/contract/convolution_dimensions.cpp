// The dimension numbers of convolutions: given as numbers or as letters.
#include "lax/contract/convolution_dimensions.h"

#include "lax/contract/contract.h"

namespace capibara::jax::lax {

namespace {

// Positions [first, second, space...] of a spec; space in the order of the kernel's letters.
Ints spec_positions(const std::string& spec, char first, char second, const std::string& kernel, const char* argument) {
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (spec.find(spec[i], i + 1) != std::string::npos) {
      throw TypeError(
          concat("convolution dimension_numbers: ", argument, " cannot have duplicate characters, got ", spec, "."));
    }
  }
  if (spec.find(first) == std::string::npos || spec.find(second) == std::string::npos) {
    throw TypeError(concat("convolution dimension_numbers: ", argument, " must contain the characters '", first,
                           "' and '", second, "' exactly once, got ", spec, "."));
  }
  Ints positions = {static_cast<int64_t>(spec.find(first)), static_cast<int64_t>(spec.find(second))};
  for (char letter : kernel) {
    if (letter == 'O' || letter == 'I') continue;
    std::size_t position = spec.find(letter);
    if (position == std::string::npos) {
      throw TypeError(
          concat("convolution dimension_numbers elements must each have the same set of spatial characters, got ", spec,
                 " and ", kernel, "."));
    }
    positions.push_back(static_cast<int64_t>(position));
  }
  if (positions.size() != spec.size()) {
    throw TypeError(
        concat("convolution dimension_numbers elements must each have the same set of spatial characters, got ", spec,
               " and ", kernel, "."));
  }
  return positions;
}

}  // namespace

Shape taken_sizes(const Shape& shape, const Ints& dims, std::size_t from) {
  Shape sizes;
  for (std::size_t i = from; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= static_cast<int64_t>(shape.size())) {
      throw TypeError(concat("conv_general_dilated: dimension ", dims[i], " is out of range for rank ", shape.size(),
                             " (argument 'dimension_numbers')"));
    }
    sizes.push_back(shape[static_cast<std::size_t>(dims[i])]);
  }
  return sizes;
}

ConvDimensionNumbers numbers_or_default(const std::optional<ConvDimensionNumbers>& numbers, int64_t rank) {
  if (numbers) return *numbers;
  Ints order = counting(0, static_cast<std::size_t>(rank));
  return {order, order, order};
}

ConvDimensionNumbers conv_dimension_numbers(const std::string& lhs, const std::string& rhs, const std::string& out) {
  if (lhs.size() != rhs.size() || lhs.size() != out.size()) {
    throw TypeError(
        concat("convolution dimension_numbers must have equal lengths, got ", lhs, ", ", rhs, " and ", out, "."));
  }
  return {spec_positions(lhs, 'N', 'C', rhs, "lhs"), spec_positions(rhs, 'O', 'I', rhs, "rhs"),
          spec_positions(out, 'N', 'C', rhs, "out")};
}

}  // namespace capibara::jax::lax
