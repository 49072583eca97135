// Varying types: the axes over which an equation's results vary, and pvary where its operands disagree.
//
//   c:f32[2]{V:x} = mul a b     a:f32[2]{V:x} b:f32[]
// becomes
//   d:f32[]{V:x} = pvary[axes=('x',)] b
//   c:f32[2]{V:x} = mul a d
// so that the transpose of the program sums the cotangent of b over x.
#include "program/ir/varying.h"

#include <algorithm>

#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"
#include "program/ir/nested.h"
#include "program/ir/views.h"

namespace capibara {

namespace prim {

#define CAPIBARA_HANDLE(function, name)                               \
  const Primitive& function() {                                       \
    static const Primitive& handle = *new Primitive(primitive(name)); \
    return handle;                                                    \
  }
CAPIBARA_HANDLE(all_gather_reduced, "all_gather_reduced")
CAPIBARA_HANDLE(unreduced_reduce_scatter, "unreduced_reduce_scatter")
CAPIBARA_HANDLE(unreduced_psum, "unreduced_psum")
CAPIBARA_HANDLE(preduced, "preduced")
CAPIBARA_HANDLE(vary_unreduced_cast, "vary_unreduced_cast_p")
CAPIBARA_HANDLE(reduced_vary_cast, "reduced_vary_cast_p")
#undef CAPIBARA_HANDLE

}  // namespace prim

namespace {

bool names_axis(const Attrs& attrs, const std::string& axis) {
  for (const char* key : {"axes", "axis_name"}) {
    const Attr* attr = attrs.find(key);
    if (!attr) continue;
    if (const auto* text = attr->get_if<std::string>()) return *text == axis;
    if (const auto* list = attr->get_if<std::shared_ptr<const Attr::List>>()) {
      return std::any_of((*list)->begin(), (*list)->end(), [&](const Attr& entry) {
        const auto* text = entry.get_if<std::string>();
        return text && *text == axis;
      });
    }
  }
  return false;
}

Atom varied(ProgramBuilder& builder, const Primitive& cast, Atom atom, const AxisList& axes, Source source) {
  Attr::List names(axes.begin(), axes.end());
  const ArrayType type = builder.type(atom);
  Equation equation{cast, {atom}, {}, {{"axes", Attr(std::move(names))}}, {}, source};
  equation.outputs = {builder.new_var(type)};
  builder.add_equation(equation);
  return equation.outputs[0];
}

// Applies pvary to an operand, and updates its type. A value reduced over exactly these axes is cast instead, so that
// its cotangent stays unreduced.
void vary(ProgramBuilder& builder, Atom& atom, ArrayType& type, const Sharding& wanted, Source source) {
  if (type.ref || type.dtype == DType::token) return;
  const AxisList axes = missing_axes(type, wanted.varying());
  if (axes.empty()) return;
  ManualAxes own = manual_axes_of(type);
  const bool announced = own.reduced == axes;
  if (!announced) refuse_sums_over("pvary", type, axes);
  atom = varied(builder, announced ? prim::reduced_vary_cast() : prim::pvary(), atom, axes, source);
  if (announced) {
    own.varying.insert(own.varying.end(), axes.begin(), axes.end());
    own.reduced.clear();
    type.sharding = manual_sharding(type.sharding.mesh(), type.shape.size(), std::move(own));
  } else {
    type.sharding = joined_varying(type.sharding, wanted);
  }
  builder.body().var_types[static_cast<std::size_t>(atom.code)].sharding = type.sharding;
}

// The programs that each device runs by its own predicate.
std::vector<Program> chosen_programs(const Primitive& primitive, const Attrs& attrs) {
  if (primitive->traits.control == Control::cond) return CondView(attrs).branches();
  const WhileView loop(attrs);
  return {loop.condition(), loop.body()};
}

Sharding predicate_of(const Primitive& primitive, const Types& types, const Attrs& attrs) {
  if (primitive->traits.control == Control::cond) return types[0].sharding;
  if (primitive->traits.control == Control::while_loop) return WhileView(attrs).condition().output_types()[0].sharding;
  return {};
}

void refuse_diverging(const Primitive& primitive, const Sharding& predicate, const Attrs& attrs) {
  for (const std::string& axis : predicate.varying()) {
    for (const Program& program : chosen_programs(primitive, attrs)) {
      if (!communicates(program, axis)) continue;
      throw ValueError(concat(primitive.name(), ": a collective over the mesh axis '", axis, "' is inside ",
                              primitive.name(), " whose predicate varies over '", axis,
                              "': some devices would wait for ever. Make the predicate the same on all of them, "
                              "for example with lax.pmax over '",
                              axis, "'."));
    }
  }
}

// Operands vary at least as much as the inputs of the program that takes them.
void match_program(ProgramBuilder& builder, const Primitive& primitive, std::vector<Atom>& inputs, Types& types,
                   const Attrs& attrs, Source source) {
  const char* name = primitive->traits.control == Control::scan ? "jaxpr" : primitive->traits.called_program;
  if (!name) return;
  const Program& program = attrs.program(name);
  if (program.invars().size() != inputs.size()) return;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    vary(builder, inputs[i], types[i], program.type(program.invars()[i]).sharding, source);
}

// A result of branches varies over the axes of any of them.
TypeResult joined_branches(TypeResult result, const Attrs& attrs) {
  const CondView view(attrs);
  for (const Program& branch : view.branches()) {
    const Types types = branch.output_types();
    for (std::size_t i = 0; i < types.size(); ++i)
      result.types[i].sharding = joined_varying(result.types[i].sharding, types[i].sharding);
  }
  return result;
}

TypeResult with_varying(TypeResult result, const Sharding& varying) {
  for (ArrayType& type : result.types) type.sharding = joined_varying(type.sharding, varying);
  return result;
}

// The sharding with these axes as the varying ones.
Sharding with_varying_axes(const Sharding& sharding, AxisList axes) {
  if (sharding.is_explicit()) return Sharding::explicit_over(sharding.mesh(), sharding.spec(), std::move(axes));
  return axes.empty() ? Sharding() : Sharding::varying_over(sharding.mesh(), std::move(axes));
}

// If a collective changed the rank of an unreduced or reduced value, its sharding is adapted.
TypeResult with_ranks(TypeResult result) {
  for (ArrayType& type : result.types) {
    if (!type.sharding.is_explicit() || type.sharding.mesh().any_is(AxisType::Explicit)) continue;
    type.sharding = manual_sharding(type.sharding.mesh(), type.shape.size(), manual_axes_of(type));
  }
  return result;
}

}  // namespace

ManualAxes manual_axes_of(const ArrayType& type) {
  ManualAxes axes{type.sharding.varying(), {}, {}};
  if (!type.sharding.is_explicit()) return axes;
  const Mesh& mesh = type.sharding.mesh();
  for (const std::string& axis : type.sharding.spec().unreduced) {
    if (mesh.type_of(axis) == AxisType::Manual) axes.unreduced.push_back(axis);
  }
  for (const std::string& axis : type.sharding.spec().reduced) {
    if (mesh.type_of(axis) == AxisType::Manual) axes.reduced.push_back(axis);
  }
  return axes;
}

Sharding manual_sharding(Mesh mesh, std::size_t rank, ManualAxes axes) {
  if (!axes.has_sums()) return Sharding::varying_over(std::move(mesh), std::move(axes.varying));
  mesh.axis_types.assign(mesh.axis_names.size(), AxisType::Manual);
  PartitionSpec spec{std::vector<AxisList>(rank), std::move(axes.unreduced), std::move(axes.reduced)};
  return Sharding::explicit_over(std::move(mesh), std::move(spec), std::move(axes.varying));
}

void refuse_sums_over(const char* operation, const ArrayType& type, const AxisList& axes) {
  const ManualAxes own = manual_axes_of(type);
  for (const bool taken : {true, false}) {
    for (const std::string& axis : taken ? own.unreduced : own.reduced) {
      if (!lists_axis(axes, axis)) continue;
      std::string named;
      for (const std::string& one : axes) named += concat(named.empty() ? "'" : ", '", one, "'");
      throw ValueError(concat(operation, " cannot accept args which are ", taken ? "unreduced" : "reduced", ". Got ",
                              short_string(type), " and axes={", named, "}"));
    }
  }
}

Sharding joined_varying(const Sharding& a, const Sharding& b) {
  if (b.varying().empty() || a == b) return a;
  if (a.single_device()) return Sharding::varying_over(b.mesh(), b.varying());
  AxisList axes = a.varying();
  for (const std::string& axis : b.varying()) {
    if (!lists_axis(axes, axis)) axes.push_back(axis);
  }
  return with_varying_axes(a, std::move(axes));
}

Sharding without_varying(const Sharding& sharding, const AxisList& axes) {
  AxisList left;
  for (const std::string& axis : sharding.varying()) {
    if (!lists_axis(axes, axis)) left.push_back(axis);
  }
  return sharding.single_device() ? Sharding() : with_varying_axes(sharding, std::move(left));
}

AxisList missing_axes(const ArrayType& type, const AxisList& wanted) {
  AxisList missing;
  for (const std::string& axis : wanted) {
    if (!varies_over(type, axis)) missing.push_back(axis);
  }
  return missing;
}

bool varies_over(const ArrayType& type, const std::string& axis) { return lists_axis(type.sharding.varying(), axis); }

bool is_cast(const Primitive& primitive) { return primitive->traits.mesh_axes == MeshAxes::cast; }

bool is_collective(const Primitive& primitive) { return primitive->traits.mesh_axes == MeshAxes::exchanged; }

bool communicates(const Program& program, const std::string& axis) {
  if (!lists_axis(program.effects().axes, axis)) return false;
  for (const Equation& equation : program.equations()) {
    if (is_collective(equation.primitive) && names_axis(equation.attrs, axis)) return true;
    if (any_program(equation.attrs, [&](const Program& nested) { return communicates(nested, axis); })) return true;
  }
  return false;
}

TypeResult varying_types(ProgramBuilder& builder, const Primitive& primitive, std::vector<Atom>& inputs, Types& types,
                         const Attrs& attrs, Source source) {
  if (primitive->traits.mesh_axes != MeshAxes::none) return with_ranks(primitive->type(types, attrs));
  if (primitive->traits.control != Control::none || (holds_programs(attrs) && !primitive->traits.region)) {
    const Sharding predicate = predicate_of(primitive, types, attrs);
    if (!predicate.varying().empty()) refuse_diverging(primitive, predicate, attrs);
    match_program(builder, primitive, inputs, types, attrs, source);
    TypeResult result = primitive->type(types, attrs);
    if (primitive->traits.control != Control::cond) return result;
    return with_varying(joined_branches(std::move(result), attrs), predicate);
  }
  Sharding all;
  for (const ArrayType& type : types) all = joined_varying(all, type.sharding);
  for (std::size_t i = 0; i < inputs.size(); ++i) vary(builder, inputs[i], types[i], all, source);
  const Types given = types;
  for (ArrayType& type : types) type.sharding = {};
  TypeResult result = with_varying(primitive->type(types, attrs), all);
  if (any_splits(given) || requested_sharding(attrs)) split_results(primitive, given, attrs, result.types);
  return result;
}

}  // namespace capibara
