// Devices of one process as lanes of one program: each manual axis of a shard_map is a vmap over it.
//
//   b = shard_map[mesh=x:4 in_specs=(P('x'),) out_specs=(P(),) jaxpr={ c. d = psum[x] c in d }] a      a:f32[8,3]
// becomes
//   c = reshape[4,2,3] a;  d = reduce_sum[axes=0] c
// Values that are the same on all devices are not mapped: they are computed and stored once.
//
// If the mesh spans processes, the lanes are the devices of this process: it takes its part of the operands, which
// every process holds whole, and exchanges lanes with the others in collectives and for results that are split.
#include "lax/shard_map/shard_map.h"

#include <algorithm>

#include "lax/collective/collective.h"
#include "lax/collective/process_exchange.h"
#include "lax/elementwise/elementwise.h"
#include "lax/shard_map/shard_map_local.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

constexpr int64_t no_lane = not_mapped;

// ---- parts of operands and results ------------------------------------------------------------------------------

struct Lanes {
  Array array;
  std::vector<int64_t> dims;  // of each manual axis: its position while those before it are still there; or no_lane
};

// The lanes of this process along each axis that crosses processes.
Array own_lanes(Array x, const std::vector<std::string>& labels, const LaneAxes& axes) {
  for (std::size_t dim = 0; dim < labels.size(); ++dim) {
    if (labels[dim].empty() || !axes.crosses(labels[dim])) continue;
    const ProcessAxis& own = axes.grid.axis(labels[dim]);
    x = lax::slice_in_dim(x, own.first, own.first + own.block, 1, static_cast<int64_t>(dim));
  }
  return x;
}

// An unreduced value as [axis, ...]: the first device has all of it, the others
// zeros.
Array as_first_summand(const Array& x, int64_t devices) {
  Shape shape = x.shape();
  shape.insert(shape.begin(), 1);
  std::vector<lax::PadDim> behind(shape.size());
  behind[0].high = devices - 1;
  return lax::pad(lax::reshape(x, shape), scalar_like(x, 0), behind);
}

// An operand with its split dimensions reshaped: [.., axis, axis, part, ..].
Lanes cut(Array x, PartitionSpec spec, const ShardMapView& map, const LaneAxes& axes) {
  spec.dims.resize(x.shape().size());
  for (const std::string& axis : spec.unreduced) {
    x = as_first_summand(x, map.mesh().axis_size(axis));
    spec.dims.insert(spec.dims.begin(), AxisList{axis});
  }
  Shape shape;
  std::vector<std::string> labels;  // of the dimensions of `shape`; empty: not a lane
  for (std::size_t dim = 0; dim < x.shape().size(); ++dim) {
    int64_t size = x.shape()[dim];
    if (dim < spec.dims.size()) {
      for (const std::string& axis : spec.dims[dim]) {
        shape.push_back(map.mesh().axis_size(axis));
        labels.push_back(axis);
        size /= shape.back();
      }
    }
    if (dim < spec.unreduced.size()) continue;
    shape.push_back(size);
    labels.emplace_back();
  }
  Lanes lanes{own_lanes(shape.size() == x.shape().size() ? x : lax::reshape(x, shape), labels, axes), {}};
  for (const std::string& axis : map.manual()) {
    const auto it = std::find(labels.begin(), labels.end(), axis);
    lanes.dims.push_back(it == labels.end() ? no_lane : it - labels.begin());
    if (it != labels.end()) labels.erase(it);
  }
  return lanes;
}

// One dimension of a result with lanes: an axis, or a dimension of each part.
struct Dimension {
  std::string axis;  // empty: not a lane
  int64_t part = 0;
};

std::vector<Dimension> dimensions_of(const Lanes& result, const ShardMapView& map) {
  const auto count = std::count_if(result.dims.begin(), result.dims.end(), [](int64_t dim) { return dim != no_lane; });
  std::vector<Dimension> labels;
  for (int64_t i = 0; i < result.array.ndim() - count; ++i) labels.push_back({{}, i});
  for (std::size_t k = map.manual().size(); k-- > 0;) {
    if (result.dims[k] != no_lane) labels.insert(labels.begin() + result.dims[k], Dimension{map.manual()[k], 0});
  }
  return labels;
}

std::size_t position_of(const std::vector<Dimension>& labels, const std::string& axis, int64_t part) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i].axis == axis && (!axis.empty() || labels[i].part == part)) return i;
  }
  return labels.size();
}

// The sum over the devices of an axis over which a result is unreduced.
Array summed(Array x, const std::string& axis, std::vector<Dimension>& labels, const ShardMapView& map,
             const LaneAxes& axes) {
  const std::size_t at = position_of(labels, axis, 0);
  if (at == labels.size()) return lax::mul(x, scalar_like(x, static_cast<double>(map.mesh().axis_size(axis))));
  Array lanes = move_axis(x, static_cast<int64_t>(at), 0);
  if (axes.crosses(axis)) lanes = process_all_gather(lanes, "shard_map", axes.grid.axis(axis));
  labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(at));
  return tree_sum(lanes);
}

// The whole of a result: its axes precede the dimensions that they split. If it differs along an axis that the
// specification does not name, the first device's part is taken.
Array glued(Lanes result, const PartitionSpec& spec, const ShardMapView& map, const LaneAxes& axes) {
  std::vector<Dimension> labels = dimensions_of(result, map);
  Array x = result.array;
  for (const std::string& axis : spec.unreduced) x = summed(std::move(x), axis, labels, map, axes);
  for (const std::string& axis : map.unnamed(spec)) {
    const std::size_t at = position_of(labels, axis, 0);
    if (at == labels.size()) continue;
    x = lax::index_in_dim(x, 0, static_cast<int64_t>(at), false);
    labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (std::size_t at = 0; at < labels.size(); ++at) {
    if (labels[at].axis.empty() || !axes.crosses(labels[at].axis)) continue;
    const auto dim = static_cast<int64_t>(at);
    x = move_axis(process_all_gather(move_axis(x, dim, 0), "shard_map", axes.grid.axis(labels[at].axis)), 0, dim);
  }
  std::vector<int64_t> order;
  Shape whole, with_axes;
  Ints kept;
  int64_t parts = 0;
  for (const Dimension& label : labels) parts += label.axis.empty() ? 1 : 0;
  for (int64_t part = 0; part < parts; ++part) {
    whole.push_back(1);
    const auto entry =
        static_cast<std::size_t>(part) < spec.dims.size() ? spec.dims[static_cast<std::size_t>(part)] : AxisList{};
    for (const std::string& axis : entry) {
      const std::size_t at = position_of(labels, axis, 0);
      if (at != labels.size()) {
        order.push_back(static_cast<int64_t>(at));
        kept.push_back(static_cast<int64_t>(with_axes.size()));
      }
      with_axes.push_back(map.mesh().axis_size(axis));
      whole.back() *= with_axes.back();
    }
    const std::size_t at = position_of(labels, {}, part);
    order.push_back(static_cast<int64_t>(at));
    kept.push_back(static_cast<int64_t>(with_axes.size()));
    with_axes.push_back(x.shape()[at]);
    whole.back() *= with_axes.back();
  }
  if (!std::is_sorted(order.begin(), order.end())) x = lax::transpose(x, order);
  if (kept.size() != with_axes.size()) x = lax::broadcast_in_dim(x, with_axes, kept);
  return x.shape() == whole ? x : lax::reshape(x, whole);
}

// ---- one vmap for each axis -------------------------------------------------------------------------------------

struct Batched {
  const Program& program;
  const ShardMapView& map;
  const LaneAxes& axes;
  const std::vector<Lanes>& operands;
  std::vector<std::vector<int64_t>> dims;  // of the results, for each axis

  Arrays run(std::size_t axis, std::span<const Array> inputs) {
    if (axis == map.manual().size()) return evaluate_program(program, inputs);
    std::vector<int64_t> in;
    for (const Lanes& operand : operands) in.push_back(operand.dims[axis]);
    const std::string& name = map.manual()[axis];
    BatchResult result = vmap_in_place([&](std::span<const Array> xs) { return run(axis + 1, xs); }, inputs, in,
                                       {name, axes.lanes(name)});
    dims[axis] = result.dims;
    return result.outputs;
  }
};

}  // namespace

Arrays run_in_lanes(std::span<const Array> inputs, const Attrs& attrs) {
  const ShardMapView map(attrs);
  const LaneAxes axes(map);
  const Program program = local_form(map.program(), axes);
  std::vector<Lanes> operands;
  Arrays parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back(cut(inputs[i], map.in_specs()[i], map, axes));
    parts.push_back(operands.back().array);
  }
  Batched batched{program, map, axes, operands, std::vector<std::vector<int64_t>>(map.manual().size())};
  const Arrays results = batched.run(0, parts);
  Arrays outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Lanes result{results[i], {}};
    for (const std::vector<int64_t>& dims : batched.dims) result.dims.push_back(dims[i]);
    outputs.push_back(glued(std::move(result), map.out_specs()[i], map, axes));
  }
  return outputs;
}

}  // namespace capibara
