// Collectives by their definitions: the results of each device from the values of all devices of its group.
#include "backends/reference/devices.h"

#include <capibara/collective.h>
#include <capibara/lax.h>

#include <algorithm>
#include <unordered_map>

#include "lax/collective/collective.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"

namespace capibara::reference {

namespace lax = jax::lax;

namespace {

using Members = std::vector<Arrays>;

Arrays operand_of(const Members& members, std::size_t operand) {
  Arrays values;
  for (const Arrays& member : members) values.push_back(member[operand]);
  return values;
}

template <Array (*reduce)(const Array&, const lax::ReduceOptions&)>
Arrays reduced(const Attrs&, std::size_t, const Members& members) {
  Arrays results;
  for (std::size_t i = 0; i < members[0].size(); ++i)
    results.push_back(reduce(lax::stack(operand_of(members, i)), {.axes = {0}}));
  return results;
}

Array joined_along(const Arrays& parts, int64_t dim, bool tiled) {
  return tiled ? lax::concatenate(parts, dim) : lax::stack(parts, dim);
}

// Part `place` of `count`, one per member.
Array part_of(const Array& x, std::size_t place, std::size_t count, int64_t dim, bool tiled) {
  const auto at = static_cast<int64_t>(place);
  if (!tiled) return lax::index_in_dim(x, at, dim, false);
  const int64_t size = x.shape(dim) / static_cast<int64_t>(count);
  return lax::slice_in_dim(x, at * size, (at + 1) * size, 1, dim);
}

Arrays gathered(const Attrs& attrs, std::size_t, const Members& members) {
  return {joined_along(operand_of(members, 0), attrs.integer("all_gather_dimension"), attrs.boolean("tiled"))};
}

Arrays scattered(const Attrs& attrs, std::size_t place, const Members& members) {
  const Array sum = reduced<lax::reduce_sum>(attrs, place, members)[0];
  return {part_of(sum, place, members.size(), attrs.integer("scatter_dimension"), attrs.boolean("tiled"))};
}

Arrays swapped(const Attrs& attrs, std::size_t place, const Members& members) {
  const bool tiled = attrs.boolean("tiled");
  Arrays received;
  for (const Array& x : operand_of(members, 0))
    received.push_back(part_of(x, place, members.size(), attrs.integer("split_axis"), tiled));
  return {joined_along(received, attrs.integer("concat_axis"), tiled)};
}

Arrays permuted(const Attrs& attrs, std::size_t place, const Members& members) {
  for (const Attr& entry : attrs.list("perm")) {
    const Ints& pair = *entry.get_if<Ints>();
    if (pair[1] == static_cast<int64_t>(place)) return members[static_cast<std::size_t>(pair[0])];
  }
  return {lax::zeros_like(members[place][0])};
}

Arrays from_source(const Attrs& attrs, std::size_t, const Members& members) {
  return members[static_cast<std::size_t>(attrs.integer("source"))];
}

Arrays own_place(const Attrs&, std::size_t place, const Members&) {
  const auto index = static_cast<int32_t>(place);
  return {Array::from_host(DType::int32, {}, &index)};
}

Arrays own_value(const Attrs&, std::size_t place, const Members& members) { return members[place]; }

using Meaning = Arrays (*)(const Attrs&, std::size_t place, const Members&);

const std::unordered_map<const PrimitiveRecord*, Meaning>& meanings() {
  static const auto& table = *new std::unordered_map<const PrimitiveRecord*, Meaning>{
      {&prim::psum().record(), reduced<lax::reduce_sum>},
      {&prim::psum_invariant().record(), reduced<lax::reduce_sum>},
      {&prim::pmax().record(), reduced<lax::reduce_max>},
      {&prim::pmin().record(), reduced<lax::reduce_min>},
      {&prim::all_gather().record(), gathered},
      {&prim::all_gather_invariant().record(), gathered},
      {&prim::unreduced_psum().record(), reduced<lax::reduce_sum>},
      {&prim::all_gather_reduced().record(), gathered},
      {&prim::unreduced_reduce_scatter().record(), scattered},
      {&prim::reduce_scatter().record(), scattered},
      {&prim::all_to_all().record(), swapped},
      {&prim::ppermute().record(), permuted},
      {&prim::pbroadcast().record(), from_source},
      {&prim::axis_index().record(), own_place},
      {&prim::pvary().record(), own_value}};
  return table;
}

}  // namespace

std::size_t DeviceGrid::count() const {
  int64_t product = 1;
  for (const DeviceAxis& axis : axes_) product *= axis.size;
  return static_cast<std::size_t>(product);
}

std::size_t DeviceGrid::axis_number(const std::string& axis) const {
  const auto it = std::find_if(axes_.begin(), axes_.end(), [&](const DeviceAxis& own) { return own.name == axis; });
  return static_cast<std::size_t>(it - axes_.begin());
}

bool DeviceGrid::has(const std::string& axis) const { return axis_number(axis) < axes_.size(); }

int64_t DeviceGrid::coordinate(std::size_t device, const std::string& axis) const {
  auto rest = static_cast<int64_t>(device);
  for (std::size_t i = axes_.size() - 1; i > axis_number(axis); --i) rest /= axes_[i].size;
  return rest % axes_[axis_number(axis)].size;
}

int64_t DeviceGrid::position(std::size_t device, const std::vector<std::string>& names) const {
  int64_t position = 0;
  for (const std::string& name : names) position = position * axes_[axis_number(name)].size + coordinate(device, name);
  return position;
}

std::vector<std::size_t> DeviceGrid::line(std::size_t device, const std::vector<std::string>& names) const {
  std::vector<std::size_t> members;
  for (std::size_t other = 0; other < count(); ++other) {
    const bool differs = std::any_of(axes_.begin(), axes_.end(), [&](const DeviceAxis& axis) {
      const bool named = std::find(names.begin(), names.end(), axis.name) != names.end();
      return !named && coordinate(other, axis.name) != coordinate(device, axis.name);
    });
    if (!differs) members.push_back(other);
  }
  std::sort(members.begin(), members.end(),
            [&](std::size_t a, std::size_t b) { return position(a, names) < position(b, names); });
  return members;
}

bool is_collective(const Primitive& primitive) { return meanings().contains(&primitive.record()); }

Arrays exchanged(const Primitive& primitive, const Attrs& attrs, std::size_t place,
                 const std::vector<Arrays>& members) {
  return meanings().at(&primitive.record())(attrs, place, members);
}

std::vector<std::size_t> group_on_line(const Attrs& attrs, std::size_t position, std::size_t size) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < size; ++i) all.push_back(i);
  if (!attrs.has("axis_index_groups")) return all;
  for (const Ints& group : lax::index_groups(attrs)) {
    if (std::find(group.begin(), group.end(), static_cast<int64_t>(position)) != group.end())
      return {group.begin(), group.end()};
  }
  return all;
}

}  // namespace capibara::reference
