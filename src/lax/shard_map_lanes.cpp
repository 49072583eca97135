// Devices of one process as lanes of one program: each manual axis of a shard_map is a vmap over it.
//
//   b = shard_map[mesh=x:4 in_specs=(P('x'),) out_specs=(P(),) jaxpr={ c. d = psum[x] c in d }] a      a:f32[8,3]
// becomes
//   c = reshape[4,2,3] a;  d = reduce_sum[axes=0] c
// What is the same on all devices is not mapped: it is computed and stored once.
#include "lax/shard_map.h"

#include <algorithm>

#include "lax/collective.h"
#include "lax/elementwise.h"
#include "program/handles.h"
#include "program/memo.h"
#include "program/nested.h"

#include <capibara/config.h>

namespace capibara {

namespace lax = jax::lax;

namespace {

constexpr int64_t no_lane = not_mapped;

// ---- the local program without types that vary and with collectives over one axis each --------------------------

class LocalFormTrace final : public Trace {
 public:
  LocalFormTrace(std::shared_ptr<Trace> outer, const Mesh& mesh) : mesh_(mesh) { parent = std::move(outer); }
  const char* kind() const override { return "shard_map"; }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    TraceScope scope(parent);
    if (primitive == prim::pvary()) return Arrays(inputs.begin(), inputs.end());
    if (primitive == prim::psum_invariant())
      return parent->bind(prim::psum(), inputs, attrs.with("axis_index_groups", Attr()));
    if (primitive == prim::all_gather_invariant())
      return bind_gather(inputs[0], attrs.with("axis_index_groups", Attr()));
    if (primitive == prim::all_gather()) return bind_gather(inputs[0], attrs);
    const bool moves =
        primitive == prim::reduce_scatter() || primitive == prim::all_to_all() || primitive == prim::ppermute();
    if (moves && axis_names(attrs, "axis_name").size() > 1) return {moved(primitive, inputs[0], attrs)};
    if (!holds_programs(attrs)) return parent->bind(primitive, inputs, attrs);
    Attrs own = rewrite_programs(attrs, [this](const Program& program) { return local_form(program, mesh_); });
    if (primitive == prim::shard_map()) own = own.with("check_vma", false);
    return parent->bind(primitive, inputs, own);
  }

  static Program local_form(const Program& program, const Mesh& mesh) {
    Types types = program.input_types();
    for (ArrayType& type : types) type.sharding = {};
    return stage(
               [&](std::span<const Array> inputs) {
                 auto trace = std::make_shared<LocalFormTrace>(current_trace(), mesh);
                 TraceEnd end(trace);
                 TraceScope scope(trace);
                 return evaluate_program(program, inputs);
               },
               types, program.name())
        .program;
  }

 private:
  Array gathered(const Array& x, const std::string& axis, int64_t dim) const {
    return bind1(prim::all_gather(), {x},
                 {{"all_gather_dimension", dim},
                  {"axis_index_groups", Attr()},
                  {"axis_name", lax::name_list({axis})},
                  {"axis_size", mesh_.axis_size(axis)},
                  {"tiled", false}});
  }

  // [first axis, second axis, ...] x the dimensions of x.
  Array gathered_in_front(Array x, const lax::AxisNames& names) const {
    for (auto name = names.rbegin(); name != names.rend(); ++name) x = gathered(x, *name, 0);
    return x;
  }

  int64_t lanes(const lax::AxisNames& names) const {
    int64_t size = 1;
    for (const std::string& name : names) size *= mesh_.axis_size(name);
    return size;
  }

  Arrays bind_gather(const Array& x, const Attrs& attrs) {
    const lax::AxisNames names = axis_names(attrs, "axis_name");
    if (names.size() == 1) return parent->bind(prim::all_gather(), std::span(&x, 1), attrs);
    Shape shape = x.shape();
    shape.insert(shape.begin(), lanes(names));
    const int64_t dim = attrs.integer("all_gather_dimension");
    const Array stacked = move_axis(lax::reshape(gathered_in_front(x, names), shape), 0, dim);
    if (!attrs.boolean("tiled")) return {stacked};
    Shape tiled = x.shape();
    tiled[static_cast<std::size_t>(dim)] *= lanes(names);
    return {lax::reshape(stacked, tiled)};
  }

  // The position among all lanes of the axes.
  Array lane(const lax::AxisNames& names) const {
    Array index = scalar_of(DType::int32, 0);
    for (const std::string& name : names) {
      const Array own = bind1(prim::axis_index(), {}, {{"axis_name", name}});
      index = lax::add(lax::mul(index, scalar_of(DType::int32, static_cast<double>(mesh_.axis_size(name)))), own);
    }
    return index;
  }

  // Exchanges over several axes: every lane takes its part of all values.
  Array moved(const Primitive& primitive, const Array& x, const Attrs& attrs) const {
    const lax::AxisNames names = axis_names(attrs, "axis_name");
    Shape shape = x.shape();
    shape.insert(shape.begin(), lanes(names));
    const Array all = lax::reshape(gathered_in_front(x, names), shape);  // [lane, ...]
    if (primitive == prim::ppermute()) return permuted(all, lane(names), attrs);
    const bool tiled = attrs.boolean("tiled");
    if (primitive == prim::reduce_scatter())
      return own_part(lax::reduce_sum(all, {.axes = {0}}), lane(names), lanes(names),
                      attrs.integer("scatter_dimension"), tiled);
    const int64_t split = attrs.integer("split_axis") + 1, at = attrs.integer("concat_axis");
    const Array parts = move_axis(own_part(all, lane(names), lanes(names), split, tiled), 0, at);
    if (!tiled) return parts;
    Shape joined = parts.shape();
    joined[static_cast<std::size_t>(at)] *= joined[static_cast<std::size_t>(at) + 1];
    joined.erase(joined.begin() + at + 1);
    return lax::reshape(parts, joined);
  }

  static Array own_part(const Array& x, const Array& lane, int64_t lanes, int64_t dim, bool tiled) {
    if (!tiled) return lax::dynamic_index_in_dim(x, lane, dim, false);
    const int64_t size = x.shape(dim) / lanes;
    return lax::dynamic_slice_in_dim(x, lax::mul(lane, scalar_of(DType::int32, static_cast<double>(size))), size, dim);
  }

  static Array permuted(const Array& all, const Array& lane, const Attrs& attrs) {
    Ints source(static_cast<std::size_t>(all.shape(0)), -1);
    for (const Attr& entry : attrs.list("perm"))
      source[static_cast<std::size_t>((*entry.get_if<Ints>())[1])] = (*entry.get_if<Ints>())[0];
    return lax::dynamic_index_in_dim(picked_lanes(all, source), lane, 0, false);
  }

  Mesh mesh_;
};

// ---- parts of operands and results ------------------------------------------------------------------------------

struct Lanes {
  Array array;
  std::vector<int64_t> dims;  // of each manual axis: where it is, while those before it are still there; or no_lane
};

// An operand whose split dimensions are cut: [.., axis, axis, part, ..].
Lanes cut(const Array& x, const PartitionSpec& spec, const ShardMapView& map) {
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
    shape.push_back(size);
    labels.emplace_back();
  }
  Lanes lanes{shape.size() == x.shape().size() ? x : lax::reshape(x, shape), {}};
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

// The whole of a result: its axes in front of the dimensions that they split. Of what differs along an axis that the
// specification does not name, the first device's part counts.
Array glued(Lanes result, const PartitionSpec& spec, const ShardMapView& map) {
  std::vector<Dimension> labels = dimensions_of(result, map);
  Array x = result.array;
  for (const std::string& axis : map.unnamed(spec)) {
    const std::size_t at = position_of(labels, axis, 0);
    if (at == labels.size()) continue;
    x = lax::index_in_dim(x, 0, static_cast<int64_t>(at), false);
    labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(at));
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
  const std::vector<Lanes>& operands;
  std::vector<std::vector<int64_t>> dims;  // of the results, for each axis

  Arrays run(std::size_t axis, std::span<const Array> inputs) {
    if (axis == map.manual().size()) return evaluate_program(program, inputs);
    std::vector<int64_t> in;
    for (const Lanes& operand : operands) in.push_back(operand.dims[axis]);
    const std::string& name = map.manual()[axis];
    BatchResult result = vmap_in_place([&](std::span<const Array> xs) { return run(axis + 1, xs); }, inputs, in,
                                       {name, map.mesh().axis_size(name)});
    dims[axis] = result.dims;
    return result.outputs;
  }
};

Program local_form(const Program& program, const Mesh& mesh) {
  static Memo<Program> memo;
  std::string axes;
  for (std::size_t i = 0; i < mesh.axis_names.size(); ++i)
    axes += concat(mesh.axis_names[i], ":", mesh.axis_sizes[i], " ");
  return memo.get({program, {}, {}, 0, axes, config().key()},
                  [&] { return LocalFormTrace::local_form(program, mesh); });
}

}  // namespace

Arrays run_in_lanes(std::span<const Array> inputs, const Attrs& attrs) {
  const ShardMapView map(attrs);
  const Program program = local_form(map.program(), map.mesh());
  std::vector<Lanes> operands;
  Arrays parts;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back(cut(inputs[i], map.in_specs()[i], map));
    parts.push_back(operands.back().array);
  }
  Batched batched{program, map, operands, std::vector<std::vector<int64_t>>(map.manual().size())};
  const Arrays results = batched.run(0, parts);
  Arrays outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Lanes result{results[i], {}};
    for (const std::vector<int64_t>& dims : batched.dims) result.dims.push_back(dims[i]);
    outputs.push_back(glued(std::move(result), map.out_specs()[i], map));
  }
  return outputs;
}

}  // namespace capibara
