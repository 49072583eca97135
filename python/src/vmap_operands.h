// The leaves of a call that vmap sees; the others are passed to the function unchanged and need not be arrays.
#pragma once

#include <capibara/sharding.h>
#include <capibara/transforms.h>

#include <optional>
#include <vector>

#include "bindings.h"
#include "calls.h"

namespace capibara::python {

struct VmapOperands {
  Arrays leaves;
  std::vector<int64_t> mapped_axes;    // of the mapped leaves, which come first
  std::vector<std::size_t> positions;  // among all leaves of the call
  std::vector<jax::Axes> leaf_axes;

  using LeafAxes = std::vector<std::optional<int64_t>>;

  VmapOperands(const std::vector<nb::object>& objects, const LeafAxes& axes) {
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (!axes[i]) continue;
      mapped_axes.push_back(*axes[i]);
      add(to_operand(objects[i], "vmap"), i, jax::Axes(*axes[i]));
    }
  }

  // Adds unmapped leaves with Explicit types, which must not be sharded along the mapped axis.
  void add_typed(const std::vector<nb::object>& objects, const LeafAxes& axes) {
    for (std::size_t i = 0; explicit_types_exist() && i < objects.size(); ++i) {
      if (axes[i] || !nb::isinstance<Array>(objects[i])) continue;
      const Array leaf = to_operand(objects[i], "vmap");
      if (leaf.type().sharding.is_explicit()) add(leaf, i, jax::Axes(std::nullopt));
    }
  }

 private:
  void add(Array leaf, std::size_t position, jax::Axes axis) {
    leaves.push_back(std::move(leaf));
    positions.push_back(position);
    leaf_axes.push_back(std::move(axis));
  }
};

}  // namespace capibara::python
