// The subscripts of einsum, parsed and checked, and the order in which pairs of operands are contracted.
#pragma once

#include <capibara/numpy/contraction.h>

#include <array>
#include <map>
#include <unordered_map>

namespace capibara {

using Labels = std::u32string;  // one character per axis

inline bool has(const Labels& labels, char32_t label) { return labels.find(label) != Labels::npos; }

// A value for each label; ASCII labels are looked up directly.
template <class T>
class LabelTable {
 public:
  T& operator[](char32_t label) { return label < plain_.size() ? plain_[label] : others_[label]; }
  const T& at(char32_t label) const { return label < plain_.size() ? plain_[label] : others_.at(label); }

 private:
  std::array<T, 128> plain_{};
  std::unordered_map<char32_t, T> others_;
};

struct Subscripts {
  std::vector<Labels> inputs;
  Labels output;
  std::map<char32_t, int64_t> sizes;  // the larger one if an axis of size one is broadcast
  LabelTable<double> elements;        // the same sizes as floating-point numbers

  double size_of(const Labels& labels) const;
};

// Ellipses become unused letters; a missing output consists of the letters that occur once, sorted.
Subscripts parse_subscripts(const char* name, const std::string& subscripts, const std::vector<Shape>& shapes);

// The operands contracted in one step, in decreasing order of position, the labels that vanish, and those that remain.
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
