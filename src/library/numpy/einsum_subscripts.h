// The subscripts of einsum, read and checked, and the order in which pairs of operands are contracted.
#pragma once

#include <capibara/numpy/contraction.h>

#include <map>

namespace capibara {

using Labels = std::u32string;  // one axis each

struct Subscripts {
  std::vector<Labels> inputs;
  Labels output;
  std::map<char32_t, int64_t> sizes;  // the greater one where an axis of size one is broadcast

  double size_of(const Labels& labels) const;
};

// Ellipses become unused letters; a missing output is made of the letters that occur once, sorted.
Subscripts parse_subscripts(const char* name, const std::string& subscripts, const std::vector<Shape>& shapes);

// The operands contracted in one step, greatest place first, the labels that vanish, and the labels of the result.
struct Contraction {
  Ints places;
  std::vector<Labels> inputs;
  Labels removed;
  Labels result;
};
jax::numpy::ContractionPath find_path(const char* name, const Subscripts& equation,
                                      const jax::numpy::EinsumOptions& options);
std::vector<Contraction> contractions(const char* name, const Subscripts& equation,
                                      const jax::numpy::ContractionPath& path);

std::string to_text(const Labels& labels);

}  // namespace capibara
