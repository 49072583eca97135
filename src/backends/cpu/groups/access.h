// Which elements of its operands an element of an equation's output reads, as sums of loop indices.
#pragma once

#include <capibara/primitive.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace capibara::cpu {

// An index as containers count: unsigned.
inline std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

// A symbol of an index: a loop of the region, or a number known only at run time.
using Symbol = int32_t;

// The terms of a sum. Most indices have the term of one loop: a single term needs no heap memory.
class Terms {
 public:
  using Term = std::pair<Symbol, int64_t>;

  const Term* begin() const { return more_.empty() ? &one_ : more_.data(); }
  const Term* end() const { return begin() + size(); }
  std::size_t size() const { return more_.empty() ? (has_one_ ? 1 : 0) : more_.size(); }
  bool empty() const { return size() == 0; }
  const Term& operator[](std::size_t i) const { return begin()[i]; }
  const Term& back() const { return *(end() - 1); }

  void add(Symbol symbol, int64_t factor);  // to the term of this symbol; terms whose factor becomes 0 are removed

  friend bool operator==(const Terms& a, const Terms& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  Term one_;
  bool has_one_ = false;    // if `more_` is empty
  std::vector<Term> more_;  // all of them, if there are several
};

// constant + sum of symbol * factor; terms are sorted by symbol, no factor is 0.
struct Affine {
  int64_t constant = 0;
  Terms terms;

  Affine(int64_t value = 0) : constant(value) {}
  static Affine of(Symbol symbol, int64_t factor = 1);
  bool is_constant() const { return terms.empty(); }
  int64_t factor(Symbol symbol) const;
  Affine& add(const Affine& other, int64_t factor = 1);
  friend bool operator==(const Affine&, const Affine&) = default;
};

// A position in an array, one entry per dimension.
using Index = std::vector<Affine>;

bool is_constant(const Index& index);
// The offset, in elements, in an array of this shape.
Affine linear(const Index& index, std::span<const int64_t> shape);
// The index of element `number` in row-major order.
Index constant_index(int64_t number, std::span<const int64_t> shape);

// The symbol for the start of a dynamic slice along one dimension, clamped so that the slice fits.
using StartSymbol = std::function<Symbol(const Equation&, int64_t dimension, int64_t last_start)>;

// Primitives that only move elements: the output's element at `index` is the first operand's at the result. nullopt if
// that is not an affine index (a reshape that splits a dimension, a pad or concatenation at a loop index).
inline bool moves_elements(const Primitive& primitive) { return primitive->traits.moves == Moves::index; }
std::optional<Index> moved_index(const Equation& equation, const Index& index, std::span<const int64_t> operand,
                                 std::span<const int64_t> output, const StartSymbol& start);

// An elementwise operand at the output's index: dimensions of size 1 and operands of rank 0 are broadcast.
Index stretched_index(const Index& index, std::span<const int64_t> operand);

// The operand's index for a reshape that only renames its elements.
std::optional<Index> reshaped_index(const Index& index, std::span<const int64_t> from, std::span<const int64_t> to);

// True if the sizes other than 1 are equal, in order: such a reshape is free.
bool differs_by_units(std::span<const int64_t> from, std::span<const int64_t> to);

}  // namespace capibara::cpu
