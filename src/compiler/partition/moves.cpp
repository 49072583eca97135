// The steps of resharding as operations on the array of one device.
#include <capibara/collective.h>
#include <capibara/lax.h>

#include <algorithm>
#include <numeric>

#include "compiler/partition/reshard.h"
#include "lax/rules.h"
#include "program/ir/handles.h"

namespace capibara::sharding {

namespace lax = jax::lax;

namespace {

Array index_number(int64_t value) { return scalar_of(DType::int32, static_cast<double>(value)); }

// The index of the block that a device holds, from its coordinates along all axes of a mesh.
Ints block_of(const Mesh& mesh, const Layout& layout, const Ints& coordinates) {
  Ints block;
  for (const Axes& axes : layout) {
    int64_t index = 0;
    for (const int axis : axes)
      index = index * mesh.axis_sizes[static_cast<std::size_t>(axis)] + coordinates[static_cast<std::size_t>(axis)];
    block.push_back(index);
  }
  return block;
}

// Pairs of (sender, receiver) among the devices along some axes that bring each device its target block.
std::vector<std::pair<int64_t, int64_t>> senders(const Mesh& mesh, const Axes& axes, const Layout& from,
                                                 const Layout& to) {
  const int64_t count = parts_of(mesh, axes);
  std::map<Ints, Ints> holders, receivers;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t device = 0; device < count; ++device) {
    Ints coordinates(mesh.axis_sizes.size(), 0);
    int64_t rest = device;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(axes[i]);
      coordinates[axis] = rest % mesh.axis_sizes[axis];
      rest /= mesh.axis_sizes[axis];
    }
    const Ints has = block_of(mesh, from, coordinates), wants = block_of(mesh, to, coordinates);
    if (has == wants) {
      pairs.emplace_back(device, device);
      continue;
    }
    holders[has].push_back(device);
    receivers[wants].push_back(device);
  }
  for (const auto& [block, devices] : receivers) {
    for (std::size_t i = 0; i < devices.size(); ++i) pairs.emplace_back(holders.at(block)[i], devices[i]);
  }
  return pairs;
}

}  // namespace

Array position_along(const Mesh& mesh, const Axes& axes) {
  Array index;
  for (const int axis : axes) {
    const Array own = lax::axis_index(mesh.axis_names[static_cast<std::size_t>(axis)]);
    if (!index.defined()) {
      index = own;
      continue;
    }
    const Array before = lax::mul(index, index_number(mesh.axis_sizes[static_cast<std::size_t>(axis)]));
    index = lax::add(before, own);
  }
  return index.defined() ? index : index_number(0);
}

Array combined_over(const Mesh& mesh, const Array& x, const Axes& axes, Monoid monoid) {
  const AxisList names = names_of(mesh, axes);
  switch (monoid) {
    case Monoid::add:
      return lax::psum(x, names);
    case Monoid::max:
      return lax::pmax(x, names);
    case Monoid::min:
      return lax::pmin(x, names);
    default:
      break;
  }
  const Array all = lax::all_gather(x, names, {});
  const lax::ReduceOptions first{.axes = {0}};
  switch (monoid) {
    case Monoid::mul:
      return lax::reduce_prod(all, first);
    case Monoid::bit_and:
      return lax::reduce_and(all, first);
    case Monoid::bit_or:
      return lax::reduce_or(all, first);
    default:
      return lax::reduce_xor(all, first);
  }
}

std::string name_of(const Move& move, Monoid monoid) {
  switch (move.kind) {
    case Move::Kind::slice:
      return "slice";
    case Move::Kind::gather:
      return prim::all_gather().name();
    case Move::Kind::exchange:
      return prim::all_to_all().name();
    case Move::Kind::permute:
      return prim::ppermute().name();
    case Move::Kind::scatter:
      return "psum_scatter";
    case Move::Kind::combine:
      break;
  }
  if (monoid == Monoid::add) return prim::psum().name();
  if (monoid == Monoid::max) return prim::pmax().name();
  return monoid == Monoid::min ? prim::pmin().name() : prim::all_gather().name();
}

Array moved(const Mesh& mesh, const Array& x, const Move& move, Monoid monoid) {
  const auto dim = static_cast<int64_t>(move.dim);
  const AxisList names = names_of(mesh, move.axes);
  switch (move.kind) {
    case Move::Kind::slice: {
      const int64_t size = x.shape()[move.dim] / parts_of(mesh, move.axes);
      const Array position = position_along(mesh, move.axes);
      return lax::dynamic_slice_in_dim(x, lax::mul(position, index_number(size)), size, dim);
    }
    case Move::Kind::gather:
      return lax::all_gather(x, names, {.axis = dim, .tiled = true, .axis_index_groups = {}});
    case Move::Kind::exchange:
      return lax::all_to_all(x, names, static_cast<int64_t>(move.other), dim, {.tiled = true, .axis_index_groups = {}});
    case Move::Kind::scatter:
      return lax::psum_scatter(x, names, {.scatter_dimension = dim, .tiled = true, .axis_index_groups = {}});
    case Move::Kind::combine:
      return combined_over(mesh, x, move.axes, monoid);
    case Move::Kind::permute:
      break;
  }
  Axes axes = used_axes(move.from);
  for (const int axis : used_axes(move.to)) {
    if (!contains(axes, axis)) axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end());
  return lax::ppermute(x, names_of(mesh, axes), senders(mesh, axes, move.from, move.to));
}

}  // namespace capibara::sharding
