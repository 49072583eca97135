// Attention by its definition, step by step as a program writes it out, a few queries at a time.
//
// NaN and infinities appear where the program has them: no key is skipped, no exponential is computed in another way.
// It is for the rare calls whose values fused attention does not promise this for; it needs no array of all queries by
// keys.
#pragma once

#include "kernels/attention/plain.h"

namespace capibara::kernels {

// [batch, heads or groups, length, feature]; what hides keys and biases broadcast to [batch, heads, queries, keys].
struct DefinedOperands {
  Array query, key, value;
  Array mask;  // undefined: there is none
  Arrays biases;
};

class AttentionDefinition {
 public:
  // `seen`: the limits of positions; its masks are in the operands.
  AttentionDefinition(const PlainAttention& plain, const Seen& seen, const DefinedOperands& operands);

  // The output as it is where `ordinary` is true, else made anew.
  Array attend(const Array& output, const Array& ordinary) const;
  // Of queries, keys and values in their type; of the sum of biases in the type of sums, where `bias` is its shape.
  Arrays pull_back(const Array& cotangent, DType product, const Shape* bias) const;

 private:
  struct Rows {
    Array exponentials, totals, seen;  // [batch, heads, rows, keys], totals [batch, heads, rows]
  };

  Array rows_of(const Array& x, const Array& start) const;
  Array grouped(const Array& x) const;
  Array by_head(const Array& x) const;
  Array multiply(const Array& left, const Array& right, int64_t contracted, DType dtype) const;
  Array add_over_rows(const Array& slopes, const Array& rows) const;
  Array seen_of(const Array& start) const;
  Array hidden_by(const Array& seen, const Array& x, double hidden) const;
  Rows rows(const Array& start) const;
  Array shares(const Rows& rows) const;

  const PlainAttention& plain_;
  const Seen& seen_;
  const DefinedOperands& operands_;
  DType wide_;
  int64_t size_, blocks_;  // queries of a block, and how many blocks there are
};

}  // namespace capibara::kernels
