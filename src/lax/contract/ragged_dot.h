// The contracted, batch, ragged and group dimensions of a ragged dot product.
#pragma once

#include <capibara/attributes.h>

namespace capibara {

class RaggedDotDimensionNumbers final : public Opaque {
 public:
  RaggedDotDimensionNumbers(DotDimensionNumbers dot, Ints lhs_ragged, Ints rhs_group)
      : dot(std::move(dot)), lhs_ragged_dimensions(std::move(lhs_ragged)), rhs_group_dimensions(std::move(rhs_group)) {}

  bool equals(const Opaque& other) const override;
  std::size_t hash() const override;
  std::string print() const override;

  DotDimensionNumbers dot;
  Ints lhs_ragged_dimensions, rhs_group_dimensions;
};

// The kind of the lhs's ragged dimension; group sizes are [prefix..., groups].
enum class RaggedMode {
  noncontracting,  // [b,m,k] [g,b,k,n] -> [b,m,n]
  contracting,     // [b,m,k] [b,k,n]   -> [g,b,m,n]
  batch,           // [b,m,k] [b,k,n]   -> [b,m,n]
};
RaggedMode ragged_mode(const RaggedDotDimensionNumbers& numbers);
// The dimensions that precede the ragged one in its kind: those that the group sizes may depend on.
Ints ragged_prefix(RaggedMode mode, int64_t rank, int64_t ragged, const Ints& batch, const Ints& contracting);

Attr ragged_attr(DotDimensionNumbers dot, Ints lhs_ragged, Ints rhs_group);

}  // namespace capibara
