// The collective family: reductions across the lanes of a named axis. Under vmap collectives turn into plain
// operations.
#include "lax/collective.h"

#include <algorithm>

#include "trace/trace.h"

namespace capibara {

namespace lax = jax::lax;

lax::AxisNames axis_names(const Attrs& attrs, const char* key) {
  const Attr& attr = attrs[key];
  if (const auto* text = attr.get_if<std::string>()) return {*text};
  lax::AxisNames names;
  for (const Attr& entry : attrs.list(key)) names.push_back(*entry.get_if<std::string>());
  return names;
}

Effects uses(const lax::AxisNames& names) {
  Effects effects;
  for (const std::string& name : names) effects.add_axis(name);
  return effects;
}

void refuse_groups(const BatchArgs& args) {
  if (!args.attrs["axis_index_groups"].is_none()) {
    throw NotImplementedError(concat(args.primitive.name(), ": axis_index_groups are not supported under vmap"));
  }
}

namespace {

using Reduction = Array (*)(const Array&, const lax::ReduceOptions&);

BatchResult batch_collective(const BatchArgs& args, Reduction reduce, bool scale_by_size) {
  lax::AxisNames names = axis_names(args.attrs, "axes");
  bool ours = std::find(names.begin(), names.end(), args.axis.name) != names.end() && !args.axis.name.empty();
  if (!ours) return {capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims.begin(), args.dims.end()}};
  refuse_groups(args);
  Arrays reduced;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    Array x = args.inputs[i];
    if (args.mapped(i)) {
      x = reduce(x, {.axes = {args.dims[i]}});
    } else if (scale_by_size) {
      x = lax::mul(x, scalar_like(x, static_cast<double>(args.axis.size)));
    }
    reduced.push_back(x);
  }
  std::erase(names, args.axis.name);
  if (!names.empty()) {
    Attr::List rest(names.begin(), names.end());
    reduced = capibara::bind(args.primitive, reduced, args.attrs.with("axes", Attr(std::move(rest))));
  }
  return {reduced, std::vector<int64_t>(reduced.size(), not_mapped)};
}

PrimitiveRecord reduction_record(std::string name, std::string doc, Reduction reduce, bool is_sum) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.doc = std::move(doc);
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    return TypeResult(Types(types.begin(), types.end()), uses(axis_names(attrs, "axes")));
  };
  record.batch = [reduce, is_sum](const BatchArgs& args) { return batch_collective(args, reduce, is_sum); };
  record.traits.nan_checked = is_sum;
  if (is_sum) {
    record.jvp = linear_jvp();
    record.transpose = [](const TransposeArgs& args) {
      Arrays given;
      for (const Array& cotangent : args.cotangents) {
        if (cotangent.defined()) given.push_back(cotangent);
      }
      Arrays summed = capibara::bind(args.primitive, given, args.attrs), results;
      std::size_t next = 0;
      for (const Array& cotangent : args.cotangents) results.push_back(cotangent.defined() ? summed[next++] : Array());
      return results;
    };
  }
  return record;
}

}  // namespace

Family collective_family() {
  Family family;
  family.push_back(reduction_record("psum", "The sum over a named axis.", lax::reduce_sum, true));
  family.push_back(reduction_record("pmax", "The maximum over a named axis.", lax::reduce_max, false));
  family.push_back(reduction_record("pmin", "The minimum over a named axis.", lax::reduce_min, false));

  for (PrimitiveRecord& record : exchange_records()) family.push_back(std::move(record));

  PrimitiveRecord index;
  index.name = "axis_index";
  index.doc = "The position of this lane along a named axis.";
  index.differentiable = false;
  index.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    return TypeResult(Types{ArrayType{{}, DType::int32, false, false, {}}}, uses(axis_names(attrs, "axis_name")));
  };
  index.batch = [](const BatchArgs& args) { return BatchResult{{lax::iota(DType::int32, args.axis.size)}, {0}}; };
  family.push_back(std::move(index));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Attr name_list(const AxisNames& names) { return Attr(Attr::List(names.begin(), names.end())); }

Attr groups_attr(const AxisGroups& groups) {
  if (groups.empty()) return Attr();
  return Attr(Attr::List(groups.begin(), groups.end()));
}

int64_t group_size(const std::string& axis_name, const AxisGroups& groups) {
  return groups.empty() ? axis_size(axis_name) : static_cast<int64_t>(groups[0].size());
}

namespace {

Array reduce_over(const char* name, const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  for (const std::string& axis : axes) axis_size(axis);
  return bind1(primitive(name), {x}, {{"axes", name_list(axes)}, {"axis_index_groups", groups_attr(groups)}});
}

}  // namespace

int64_t axis_size(const std::string& axis_name) {
  if (std::optional<int64_t> size = current_trace()->axis_size(axis_name)) return *size;
  throw NameError(concat("unbound axis name: ", axis_name, ". Hint: name the axis with vmap(f, {.axis_name = \"",
                         axis_name, "\"})"));
}

Array psum(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  // The sum of a constant is known: no lane differs.
  if (!x.is_tracer() && groups.empty()) {
    int64_t lanes = 1;
    for (const std::string& axis : axes) lanes *= axis_size(axis);
    return mul(x, convert_element_type(Array(lanes), x.dtype()));
  }
  return reduce_over("psum", x, axes, groups);
}

Array pmean(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  int64_t lanes = 1;
  for (const std::string& axis : axes) lanes *= group_size(axis, groups);
  return psum(x, axes, groups) / Array(lanes);
}

Array pmax(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  return reduce_over("pmax", x, axes, groups);
}
Array pmin(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  return reduce_over("pmin", x, axes, groups);
}

Array axis_index(const std::string& axis_name) {
  axis_size(axis_name);
  return capibara::bind(primitive("axis_index"), {}, {{"axis_name", name_list({axis_name})}})[0];
}

}  // namespace capibara::jax::lax
