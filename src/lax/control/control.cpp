// The control family: code shared by primitives that hold programs, and the list of them.
#include "lax/control/control.h"

#include "program/ir/manual_axes.h"
#include "program/ir/varying.h"

#include <capibara/config.h>
#include <capibara/control.h>

#include "core/array/promotion.h"

#include <algorithm>

namespace capibara {

Family control_family() {
  Family family = call_records();
  for (PrimitiveRecord& record : Family{scan_record(), while_record(), cond_record(), checkpoint_record(),
                                        name_record(), linear_solve_record()}) {
    family.push_back(std::move(record));
  }
  for (PrimitiveRecord& record : custom_rule_records()) family.push_back(std::move(record));
  return family;
}

Types tangent_types(std::span<const ArrayType> types, const Mask& mask) {
  Types result = where(types, mask);
  for (ArrayType& type : result) type = tangent_type(type);
  return result;
}

ProgramSplit partial_eval_offering(const Program& program, const Mask& unknown, const Mask& instantiate,
                                   const SavePolicy& policy) {
  const std::size_t outputs = program.outputs().size();
  std::vector<int> twice;  // the outputs, then each again for the staged half
  for (std::size_t i = 0; i < 2 * outputs; ++i) twice.push_back(static_cast<int>(i % outputs));
  const Mask first = instantiate.empty() ? Mask(outputs, false) : instantiate;
  ProgramSplit split =
      partial_eval_program(reorder_outputs(program, twice), unknown, join({first, Mask(outputs, true)}), &policy);
  split.unknown_outputs.resize(outputs);
  std::vector<int> order;
  const int unknowns = static_cast<int>(count(split.unknown_outputs));
  for (int i = 0; i < unknowns; ++i) order.push_back(i);
  for (std::size_t i = 0; i < outputs; ++i) {
    if (!split.unknown_outputs[i]) order.push_back(unknowns + static_cast<int>(i));
  }
  split.staged = reorder_outputs(split.staged, order);
  return split;
}

JvpResult jvp_of_call(const Program& program, const JvpArgs& args, const ProgramCall& call) {
  Mask nonzero = defined_mask(args.tangents);
  JvpProgram derived = jvp_program(program, nonzero);
  Arrays operands(args.primals.begin(), args.primals.end());
  append(operands, where(args.tangents, nonzero));
  Arrays outputs = call(derived.program, operands);
  std::size_t count = program.outputs().size();
  return {part(outputs, 0, count), spread(part(outputs, count, outputs.size()), derived.nonzero_outputs)};
}

DceRule dce_of_call(const char* program_attr) {
  return [program_attr](const Attrs& attrs, const Mask& used) {
    DceProgram pruned = dce_program(attrs.program(program_attr), used);
    return DceResult{pruned.used_inputs, attrs.with(program_attr, pruned.program), {}};
  };
}

void check_operands(const char* op, const Program& program, std::span<const ArrayType> types) {
  if (types.size() != program.invars().size()) {
    throw TypeError(concat(op, ": the program takes ", program.invars().size(), " operands, got ", types.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ArrayType& expected = program.type(program.invars()[i]);
    if (types[i].shape != expected.shape || types[i].dtype != expected.dtype || types[i].ref != expected.ref) {
      throw TypeError(concat(op, ": operand ", i, " must be ", to_string(expected), ", got ", to_string(types[i])));
    }
  }
}

Types types_of(std::span<const Array> arrays) {
  Types types;
  for (const Array& array : arrays) types.push_back(array.type());
  return types;
}

Arrays joined(std::span<const Array> a, std::span<const Array> b) {
  Arrays all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

bool all_concrete(std::initializer_list<const Arrays*> lists) {
  for (const Arrays* list : lists) {
    for (const Array& array : *list) {
      if (array.is_tracer()) return false;
    }
  }
  return true;
}

bool strengthen(Arrays& init, std::span<const ArrayType> outputs) {
  bool changed = false;
  for (std::size_t i = 0; i < init.size(); ++i) {
    const ArrayType& in = init[i].type();
    const ArrayType& out = outputs[i];
    if (!in.weak_type || in.dtype == out.dtype) continue;  // a difference in weakness alone is ignored
    ScalarType joint = promote_types({in.dtype, in.weak_type}, {out.dtype, out.weak_type}, config().enable_x64);
    if (joint.dtype != out.dtype) continue;
    init[i] = jax::lax::convert_element_type(init[i], out.dtype, out.weak_type);
    changed = true;
  }
  return changed;
}

namespace {

// The pcast that makes a type vary as `wanted`; empty if it already does.
std::string pcast_application(const ArrayType& type, const ArrayType& wanted, const std::string& what) {
  const AxisList axes = missing_axes(type, wanted.sharding.varying());
  if (axes.empty()) return "";
  std::string names;
  for (const std::string& axis : axes) names += concat(names.empty() ? "'" : " '", axis, "',");
  if (axes.size() > 1) names.pop_back();
  return concat("applying `jax.lax.pcast(..., (", names, "), to='varying')` to ", what);
}

std::string carry_hints(std::span<const ArrayType> in, std::span<const ArrayType> out) {
  std::vector<std::string> hints;
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::string hint = pcast_application(in[i], out[i], concat("the initial value of leaf ", i, " of the carry"));
    if (!hint.empty()) hints.push_back(std::move(hint));
  }
  if (hints.empty()) return "";
  if (hints.size() == 1) return concat("\nThis might be fixed by ", hints[0], ".");
  std::string text = "\nThis might be fixed by:";
  for (std::size_t i = 0; i < hints.size(); ++i) text += concat("\n  * ", hints[i], i + 1 == hints.size() ? "." : ";");
  return text;
}

// What the user may change where two types of a carry differ.
std::string carry_advice(const ArrayType& in, const ArrayType& out) {
  if (in.shape != out.shape) {
    return "\nHint: a carry keeps its shape in all iterations; write into an array of the final shape, or return the "
           "parts as outputs of scan.";
  }
  if (in.dtype == out.dtype) return "";
  return concat("\nHint: convert the new carry to ", to_string(in.dtype), ", or start with ", to_string(out.dtype),
                ".");
}

}  // namespace

void check_carry_types(const char* name, std::span<const ArrayType> in, std::span<const ArrayType> out) {
  if (in.size() != out.size()) {
    throw TypeError(concat(name,
                           " body function carry input and carry output must have the same number of leaves, but ",
                           "they differ: ", in.size(), " enter and ", out.size(), " leave"));
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (same_type_and_axes(in[i], out[i])) continue;
    throw TypeError(concat(name, " body function carry input and carry output must have equal types, but they differ: ",
                           "leaf ", i, " of the carry enters as ", to_string(in[i]), " and leaves as ",
                           to_string(out[i]), carry_advice(in[i], out[i]), carry_hints(in, out)));
  }
}

std::vector<int> forwarded_inputs(std::span<const Program> branches) {
  std::vector<int> common;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    const std::vector<Var>& inputs = branches[b].invars();
    for (std::size_t i = 0; i < branches[b].outputs().size(); ++i) {
      const Atom& output = branches[b].outputs()[i];
      auto it = !output.is_literal() ? std::find(inputs.begin(), inputs.end(), output.var()) : inputs.end();
      const int own = it == inputs.end() ? -1 : static_cast<int>(it - inputs.begin());
      if (b == 0) common.push_back(own);
      if (common[i] != own) common[i] = -1;
    }
  }
  return common;
}

bool same_type_and_axes(const ArrayType& a, const ArrayType& b) {
  if (a.sharding.is_explicit() && b.sharding.is_explicit() && !(a.sharding.spec() == b.sharding.spec())) return false;
  const ManualAxes own = manual_axes_of(a), other = manual_axes_of(b);
  if (own.unreduced != other.unreduced || own.reduced != other.reduced) return false;
  return a.shape == b.shape && a.dtype == b.dtype && missing_axes(a, b.sharding.varying()).empty() &&
         missing_axes(b, a.sharding.varying()).empty();
}

std::string pcast_hint(const ArrayType& type, const ArrayType& wanted, const std::string& what) {
  const std::string application = pcast_application(type, wanted, what);
  return application.empty() ? application : concat("; this might be fixed by ", application);
}

}  // namespace capibara

namespace capibara::jax::lax::detail {

void check_carry(const char* name, const TreeDef& in, const TreeDef& out) {
  if (in == out) return;
  if (std::string(name) == "cond") {
    throw TypeError(concat("cond branches must have the same structure: ", tree_difference(in, out)));
  }
  throw TypeError(concat(
      name, " body function carry input and carry output must have the same structure: ", tree_difference(in, out)));
}

}  // namespace capibara::jax::lax::detail
