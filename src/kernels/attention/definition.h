// Attention by its definition, step by step as a program writes it out, on a few queries of one group of heads at a
// time.
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
  // Where a block begins: [batch, head, query] of arrays of queries, [batch, group] of keys.
  struct Block {
    Array number, batch, group, head, row;
  };
  struct Rows {
    Array query, key, value;           // [heads of a group * rows, feature], [keys, feature]
    Array exponentials, totals, seen;  // [1, heads of a group, rows, keys], totals without the keys
  };

  Block block(const Array& number) const;
  Arrays start_of(const Array& x, const Block& at) const;
  Array rows_of(const Array& x, const Block& at) const;
  Array group_of(const Array& x, const Block& at) const;
  Array by_head(const Array& x) const;
  Array seen_of(const Block& at) const;
  Array hidden_by(const Array& seen, const Array& x, double hidden) const;
  Rows rows(const Block& at) const;
  Array shares(const Rows& rows) const;
  Array logit_slopes(const Rows& rows, const Array& dshares) const;
  Array product_slopes(Array slopes) const;

  const PlainAttention& plain_;
  const Seen& seen_;
  const DefinedOperands& operands_;
  DType wide_;
  int64_t heads_, size_, blocks_;  // heads of a group; queries of a block; blocks of queries
};

}  // namespace capibara::kernels
