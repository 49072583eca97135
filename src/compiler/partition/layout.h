// Layouts: the mesh axes, by number, that split each dimension of a value; and layouts as axes of factors.
#pragma once

#include <capibara/factors.h>
#include <capibara/placement.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::sharding {

using Axes = std::vector<int>;     // numbers of mesh axes, the outermost first
using Layout = std::vector<Axes>;  // one entry per dimension

int64_t parts_of(const Mesh& mesh, const Axes& axes);
int64_t parts_of(const Mesh& mesh, const Layout& layout);
Shape local_shape(const Mesh& mesh, Shape shape, const Layout& layout);
ArrayType part_type(const Mesh& mesh, const ArrayType& type, const Layout& layout);  // of the part on one device
bool divides(const Mesh& mesh, const Shape& shape, const Layout& layout);
AxisList names_of(const Mesh& mesh, const Axes& axes);
bool contains(const Axes& axes, int axis);
bool is_prefix(const Axes& prefix, const Axes& axes);
Axes used_axes(const Layout& layout);
std::string layout_text(const Mesh& mesh, const Layout& layout);  // P('x', None)

// nullopt if a specification names axes that the mesh does not have.
std::optional<Layout> layout_of(const Mesh& mesh, const PartitionSpec& spec, std::size_t rank);
PartitionSpec spec_of(const Mesh& mesh, const Layout& layout);  // without trailing dimensions that are not split

// A value's layout in terms of the factors of an equation.
struct Projection {
  std::vector<Axes> axes;      // per factor of the equation; empty if the value does not have it
  std::vector<bool> present;   // which factors the value has
  std::vector<bool> overflow;  // factors of dimensions whose axes do not match factors: these are left unchanged
};
Projection projected(const Mesh& mesh, const Factors& factors, const ValueFactors& value, const Layout& layout);

// The layout of a value whose factors are split in this way. nullopt if parts would not be contiguous in a dimension:
// an inner factor is split although the one around it is not split into single elements.
std::optional<Layout> layout_from(const Mesh& mesh, const Factors& factors, const ValueFactors& value,
                                  const std::vector<Axes>& axes);

}  // namespace capibara::sharding
