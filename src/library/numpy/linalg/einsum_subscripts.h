// The subscripts of einsum, read and checked, and the order in which pairs of operands are contracted.
#pragma once

#include <capibara/numpy/contraction.h>

#include <array>
#include <map>
#include <unordered_map>

namespace capibara {

using Labels = std::u32string;  // one axis each

inline bool has(const Labels& labels, char32_t label) { return labels.find(label) != Labels::npos; }

// A value for each label; those of ASCII are found at once.
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
  std::map<char32_t, int64_t> sizes;  // the greater one where an axis of size one is broadcast
  LabelTable<double> elements;        // the same as numbers to multiply

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
