// Which elements of its operands an element of an equation's output reads, as sums of loop indices.
#pragma once

#include <capibara/primitive.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace capibara::cpu {

// A position as a container counts it.
inline std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

// Something an index depends on: a loop of the region, or a number found when the program runs.
using Symbol = int32_t;

// The terms of a sum. Most indices are one loop's: a single term needs no memory of its own.
class Terms {
 public:
  using Term = std::pair<Symbol, int64_t>;

  const Term* begin() const { return more_.empty() ? &one_ : more_.data(); }
  const Term* end() const { return begin() + size(); }
  std::size_t size() const { return more_.empty() ? (has_one_ ? 1 : 0) : more_.size(); }
  bool empty() const { return size() == 0; }
  const Term& operator[](std::size_t i) const { return begin()[i]; }
  const Term& back() const { return *(end() - 1); }

  void add(Symbol symbol, int64_t factor);  // to the term of this symbol; terms of the factor 0 vanish

  friend bool operator==(const Terms& a, const Terms& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  Term one_;
  bool has_one_ = false;    // where `more_` is empty
  std::vector<Term> more_;  // all of them, where there are several
};

// constant + the sum of symbol * factor; terms are sorted by symbol, none has the factor 0.
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
// The position in memory of an array of this shape, in elements.
Affine linear(const Index& index, std::span<const int64_t> shape);
// The position of element `number` in row-major order.
Index constant_index(int64_t number, std::span<const int64_t> shape);

// The symbol of the start of a dynamic slice along one dimension, clamped to where the slice fits.
using StartSymbol = std::function<Symbol(const Equation&, int64_t dimension, int64_t last_start)>;

// Primitives that only move elements: the output's element at `index` is the first operand's at the result. Nothing
// where the place is no sum of symbols (a reshape that cuts a dimension, a pad or a concatenation at a loop index).
inline bool moves_elements(const Primitive& primitive) { return primitive->traits.moves == Moves::index; }
std::optional<Index> moved_index(const Equation& equation, const Index& index, std::span<const int64_t> operand,
                                 std::span<const int64_t> output, const StartSymbol& start);

// An elementwise operand at the output's index: dimensions of size 1 and operands of rank 0 are stretched.
Index stretched_index(const Index& index, std::span<const int64_t> operand);

// A reshape whose result is the operand in other words.
std::optional<Index> reshaped_index(const Index& index, std::span<const int64_t> from, std::span<const int64_t> to);

// Whether the sizes other than 1 are the same, in order: such a reshape costs nothing anywhere.
bool differs_by_units(std::span<const int64_t> from, std::span<const int64_t> to);

}  // namespace capibara::cpu
