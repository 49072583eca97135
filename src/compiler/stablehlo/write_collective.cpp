// Writes collectives: each takes its device numbers from the attribute `devices` of its equation.
#include "compiler/stablehlo/write_collective.h"

#include <algorithm>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/writer.h"
#include "core/sharding/placed_memory.h"
#include "lax/shard_map/shard_map.h"
#include "program/ir/handles.h"
#include "program/trace/stage.h"

namespace capibara::stablehlo {

namespace {

// dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>; -1 pads short rows.
std::string groups_text(const Attrs& attrs) {
  std::size_t width = 0;
  for (const Attr& group : attrs.list("devices")) width = std::max(width, group.get_if<Ints>()->size());
  std::string rows;
  for (const Attr& group : attrs.list("devices")) {
    Ints row = *group.get_if<Ints>();
    row.resize(width, -1);
    rows += (rows.empty() ? "" : ", ") + list_text(row);
  }
  return concat("dense<[", rows, "]> : tensor<", attrs.list("devices").size(), "x", width, "xi64>");
}

Program combining(const Primitive& combine, DType dtype) {
  const ArrayType scalar{{}, dtype, false, false, {}};
  return stage([&](std::span<const NdArray> pair) { return capibara::bind(combine, pair, {}); }, Types{scalar, scalar},
               combine.name())
      .program;
}

const Primitive& combine_of(const Primitive& primitive) {
  if (primitive == prim::pmax()) return prim::max();
  return primitive == prim::pmin() ? prim::min() : prim::add();
}

std::string named_axes(const Attrs& attrs) {
  const Attr* named = attrs.find("axes");
  if (!named) named = attrs.find("axis_name");
  if (const auto* one = named->get_if<std::string>()) return concat("'", *one, "'");
  std::string text;
  for (const Attr& name : **named->get_if<std::shared_ptr<const Attr::List>>())
    text += concat(text.empty() ? "'" : ", '", *name.get_if<std::string>(), "'");
  return text;
}

// [<@mesh, [{"x"}, {}]>, ..] of operands or results. `open`: the compiler may also split dimensions along axes that
// remain its own.
std::string shardings_text(const std::string& mesh, std::span<const PartitionSpec> specs,
                           std::span<const ArrayType> types, bool open) {
  std::string text;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    Ints dims;
    for (int64_t dim = 0; open && dim < types[i].rank(); ++dim) dims.push_back(dim);
    text += concat(i ? ", <" : "<", mesh, ", ", shardy_text(specs[i], types[i].shape.size(), dims), ">");
  }
  return "[" + text + "]";
}

}  // namespace

bool is_collective(const Primitive& primitive) {
  return primitive == prim::psum() || primitive == prim::pmax() || primitive == prim::pmin() ||
         primitive == prim::all_gather() || primitive == prim::reduce_scatter() || primitive == prim::all_to_all() ||
         primitive == prim::ppermute();
}

std::optional<CollectiveText> find_collective(const Primitive& primitive, const WriteArgs& args) {
  if (!is_collective(primitive)) return std::nullopt;
  const Attrs& attrs = args.attrs;
  if (!attrs.has("devices")) {
    throw NotImplementedError(concat("to_stablehlo: ", primitive.name(), " over ", named_axes(attrs),
                                     " is outside of shard_map, and no mesh says which devices take part",
                                     "\nHint: write it inside a function of shard_map"));
  }
  CollectiveText text{primitive->stablehlo, {}, std::nullopt};
  const auto add = [&](const char* name, std::string value) { text.attributes.push_back({name, std::move(value)}); };
  const auto dimension = [&](const char* name) { return integer_text(attrs.integer(name)); };
  if (primitive == prim::ppermute()) {
    add("source_target_pairs", groups_text(attrs));
    return text;
  }
  if (primitive == prim::all_gather()) add("all_gather_dim", dimension("all_gather_dimension"));
  if (primitive == prim::all_to_all()) {
    add("concat_dimension", dimension("concat_axis"));
    add("replica_groups", groups_text(attrs));
    add("split_count", integer_text(static_cast<int64_t>(attrs.list("devices")[0].get_if<Ints>()->size())));
    add("split_dimension", dimension("split_axis"));
    return text;
  }
  add("replica_groups", groups_text(attrs));
  if (primitive == prim::reduce_scatter()) add("scatter_dimension", dimension("scatter_dimension"));
  add("use_global_device_ids", "unit");
  if (primitive != prim::all_gather()) text.combine = combining(combine_of(primitive), args.inputs[0].dtype);
  return text;
}

// sdy.manual_computation(%a) in_shardings=[..] out_shardings=[..] manual_axes={"x"} (%b: type) { .. } : signature
void FunctionWriter::write_manual(Names& names, const Operands& own, int level) {
  const ShardMapView map(own.equation.attrs);
  const std::string mesh = module_.mesh_symbol(map.mesh());
  module_.note_devices(map.mesh().size());
  const bool open = map.manual().size() < map.mesh().axis_names.size();
  std::string operands, axes, arguments;
  for (const std::string& name : own.names) operands += (operands.empty() ? "" : ", ") + name;
  for (const std::string& axis : map.manual()) axes += (axes.empty() ? "" : ", ") + quoted_text(axis);
  Names inner(map.program());
  for (const Var var : map.program().invars())
    arguments += (arguments.empty() ? "" : ", ") + new_argument(map.program(), var, inner);
  line(level, concat(define(names, own.equation), "sdy.manual_computation(", operands,
                     ") in_shardings=", shardings_text(mesh, map.in_specs(), own.inputs, open),
                     " out_shardings=", shardings_text(mesh, map.out_specs(), own.outputs, open), " manual_axes={",
                     axes, "} (", arguments, ") {"));
  std::vector<std::map<std::string, std::string>> outside;  // values that the region does not see
  std::swap(outside, literals_);
  write_body(map.program(), inner, level + 1, "sdy.return");
  std::swap(outside, literals_);
  line(level, "} : " + signature_text(own.inputs, own.outputs), own.equation.source);
}

// The number of a device is its position in the mesh.
void FunctionWriter::write_axis_index(Names& names, const Equation& equation, int level) {
  if (!equation.attrs.has("place")) {
    throw NotImplementedError(concat("to_stablehlo: axis_index along ", named_axes(equation.attrs),
                                     " is outside of shard_map, and no mesh says where the axis is",
                                     "\nHint: write it inside a function of shard_map"));
  }
  const Ints& place = equation.attrs.ints("place");
  std::string value = new_value();
  line(level, value + " = stablehlo.partition_id : tensor<ui32>", equation.source);
  const auto apply = [&](const char* operation, int64_t number) {
    const std::string constant = new_value(), result = new_value();
    line(level, concat(constant, " = stablehlo.constant dense<", number, "> : tensor<ui32>"));
    line(level, concat(result, " = ", operation, " ", value, ", ", constant, " : tensor<ui32>"), equation.source);
    value = result;
  };
  apply("stablehlo.divide", place[0]);
  apply("stablehlo.remainder", place[1]);
  line(level, concat(define(names, equation), "stablehlo.convert ", value, " : (tensor<ui32>) -> tensor<i32>"),
       equation.source);
}

void FunctionWriter::write_collective(CollectiveText text, Names& names, const Operands& own, int level) {
  text.attributes.push_back(
      {"channel_handle", concat("#stablehlo.channel_handle<handle = ", module_.next_channel(), ", type = 1>")});
  std::sort(text.attributes.begin(), text.attributes.end(),
            [](const AttributeText& a, const AttributeText& b) { return a.name < b.name; });
  std::vector<Region> regions;
  if (text.combine) regions.push_back({*text.combine, {}});
  write_generic(text.operation, text.attributes, regions, names, own.equation, own.names, own.inputs, own.outputs,
                level);
}

}  // namespace capibara::stablehlo
