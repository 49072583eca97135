// Result dtypes and dimension arithmetic shared by dot products, ragged dot products and convolutions.
#pragma once

#include <capibara/config.h>
#include <capibara/primitive.h>

#include <optional>

namespace capibara {

// Result shape of a dot product: batch, lhs free, rhs free; `rhs_ignored` dimensions of the rhs take no part. Raises
// TypeError if the dimension numbers do not fit.
Shape dot_shape(const std::string& op, const ArrayType& lhs, const ArrayType& rhs, const DotDimensionNumbers& numbers,
                const Ints& rhs_ignored = {});
// The dtype of a product of two dtypes, or preferred_element_type if given.
DType dot_dtype(const std::string& op, DType lhs, DType rhs, const Attrs& attrs);

// 0 .. rank-1 without the named dimensions.
Ints remaining_dims(int64_t rank, const Ints& a, const Ints& b = {}, const Ints& c = {});
// `count` consecutive numbers from `start`.
Ints counting(int64_t start, std::size_t count);
// The permutation that sorts.
Ints argsort(const Ints& values);
// values[order[0]], values[order[1]], ...
Ints taken(const Ints& values, const Ints& order);

// The sharding of an operand's cotangent. If its type has no mesh but the other operand's or the result's
// cotangent's type has, it is unsplit.
Sharding operand_cotangent_sharding(const ArrayType& operand, const ArrayType& other, const ArrayType& cotangent);

// New dimension numbers, and the position of the mapped axis in the result.
std::pair<DotDimensionNumbers, int64_t> batched_dot_numbers(int64_t lhs_rank, int64_t rhs_rank, int64_t lhs_dim,
                                                            int64_t rhs_dim, const DotDimensionNumbers& numbers,
                                                            const Ints& rhs_ignored = {});

// An optional dtype as an attribute, canonicalised by the configuration.
inline Attr canonical_attr(const std::optional<DType>& dtype) {
  return dtype ? Attr(canonicalize(*dtype, config().enable_x64)) : Attr();
}

}  // namespace capibara
