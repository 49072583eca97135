// Attention by its definition, step by step as the program writes it out, on a few queries of one group of heads at a
// time.
//
// NaN and infinities appear where the program has them: no key is skipped, no exponential is computed differently.
// It is for the rare calls for whose values fused attention cannot guarantee this; it needs no array of all queries by
// all keys.
#pragma once

#include "kernels/attention/plain.h"

namespace capibara::kernels {

// [batch, heads or groups, length, feature]; mask and biases broadcast to [batch, heads, queries, keys].
struct DefinedOperands {
  Array query, key, value;
  Array mask;  // undefined: there is none
  Arrays biases;
};

class AttentionDefinition {
 public:
  // `seen`: position limits; its masks are among the operands.
  AttentionDefinition(const PlainAttention& plain, const Seen& seen, const DefinedOperands& operands);

  // Returns `output` if `ordinary` is true, else recomputes it.
  Array attend(const Array& output, const Array& ordinary) const;
  // Gradients of queries, keys and values in their type, and of the sum of biases, if `bias` is its shape, in the
  // accumulator type.
  Arrays pull_back(const Array& cotangent, DType product, const Shape* bias) const;

 private:
  // The start of a block: [batch, head, query] in arrays of queries, [batch, group] in those of keys.
  struct Block {
    Array number, batch, group, head, row;
  };
  struct Rows {
    Array query, key, value;           // [heads per group * rows, feature], [keys, feature]
    Array exponentials, totals, seen;  // [1, heads per group, rows, keys], totals without the keys
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
  Array logit_gradients(const Rows& rows, const Array& dshares) const;
  Array product_gradients(Array gradients) const;

  const PlainAttention& plain_;
  const Seen& seen_;
  const DefinedOperands& operands_;
  DType wide_;
  int64_t heads_, size_, blocks_;  // heads per group; queries per block; blocks of queries
};

}  // namespace capibara::kernels
