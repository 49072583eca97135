// Layouts: the axes of a mesh, by number, that split each dimension of a value; and layouts seen as axes of factors.
#pragma once

#include <capibara/factors.h>
#include <capibara/placement.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::sharding {

using Axes = std::vector<int>;     // numbers of mesh axes, the outermost first
using Layout = std::vector<Axes>;  // one entry for each dimension

int64_t parts_of(const Mesh& mesh, const Axes& axes);
int64_t parts_of(const Mesh& mesh, const Layout& layout);
Shape local_shape(const Mesh& mesh, Shape shape, const Layout& layout);
ArrayType part_type(const Mesh& mesh, const ArrayType& type, const Layout& layout);  // of what one device has
bool divides(const Mesh& mesh, const Shape& shape, const Layout& layout);
AxisList names_of(const Mesh& mesh, const Axes& axes);
bool contains(const Axes& axes, int axis);
bool is_prefix(const Axes& prefix, const Axes& axes);
Axes used_axes(const Layout& layout);
std::string layout_text(const Mesh& mesh, const Layout& layout);  // P('x', None)

// Nothing where a specification names axes that the mesh does not have.
std::optional<Layout> layout_of(const Mesh& mesh, const PartitionSpec& spec, std::size_t rank);
PartitionSpec spec_of(const Mesh& mesh, const Layout& layout);  // without trailing dimensions that are not split

// One value of an equation as its factors see it.
struct Projection {
  std::vector<Axes> axes;      // of each factor of the equation; empty where the value does not have it
  std::vector<bool> present;   // which factors the value has
  std::vector<bool> overflow;  // factors of dimensions whose axes do not fall on factors: these stay as they are
};
Projection projected(const Mesh& mesh, const Factors& factors, const ValueFactors& value, const Layout& layout);

// The layout of a value whose factors are split so. Nothing where parts would not be runs of a dimension: an inner
// factor is split although the one around it is not split into single elements.
std::optional<Layout> layout_from(const Mesh& mesh, const Factors& factors, const ValueFactors& value,
                                  const std::vector<Axes>& axes);

}  // namespace capibara::sharding
