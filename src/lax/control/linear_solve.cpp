// custom_linear_solve: the solution of a linear system by the user's solver, whose derivatives are solutions too.
//
// Operands are the consts of matvec, vecmat, solve and transpose_solve, then the right-hand side b; `jaxprs` holds the
// four programs on (consts, x); those of the transposed system are None if the user gave no solver for it.
#include "lax/control/linear_solve.h"
#include "lax/control/control.h"
#include "lax/sharding/factors.h"

namespace capibara {

namespace {

enum Part : std::size_t { matvec, vecmat, solver, transpose_solver, part_count };
const char* const part_names[] = {"matvec", "vecmat", "solve", "transpose_solve"};

struct System {
  Ints lengths;
  std::vector<Program> programs;  // undefined where absent
  std::size_t consts = 0;

  explicit System(const Attrs& attrs) : lengths(attrs.ints("const_lengths")) {
    for (const Attr& attr : attrs.list("jaxprs")) {
      const auto* program = attr.get_if<std::shared_ptr<const Program>>();
      programs.push_back(program ? **program : Program());
    }
    for (int64_t length : lengths) consts += static_cast<std::size_t>(length);
  }

  template <class List>
  auto consts_of(const List& list, std::size_t which) const {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < which; ++i) begin += static_cast<std::size_t>(lengths[i]);
    return part(list, begin, begin + static_cast<std::size_t>(lengths[which]));
  }
  template <class List>
  auto right_side_of(const List& list) const {
    return part(list, consts, list.size());
  }

  std::size_t unknowns() const { return programs[matvec].outputs().size(); }
  std::size_t aux() const { return programs[solver].outputs().size() - unknowns(); }
};

Attrs attrs_of(const Ints& lengths, const std::vector<Program>& programs) {
  Attr::List list;
  for (const Program& program : programs) list.push_back(program.defined() ? Attr(program) : Attr());
  return {{"const_lengths", lengths}, {"jaxprs", std::move(list)}};
}

TypeResult solve_type(std::span<const ArrayType> types, const Attrs& attrs) {
  System system(attrs);
  if (types.size() != system.consts + system.unknowns()) {
    throw TypeError(
        concat("custom_linear_solve: ", system.consts + system.unknowns(), " operands are needed, got ", types.size()));
  }
  Types out(types.begin() + static_cast<std::ptrdiff_t>(system.consts), types.end());
  for (std::size_t which : {matvec, solver}) {
    std::size_t begin = which == matvec ? 0 : static_cast<std::size_t>(system.lengths[0] + system.lengths[1]);
    Types in(types.begin() + static_cast<std::ptrdiff_t>(begin),
             types.begin() + static_cast<std::ptrdiff_t>(begin) + system.lengths[which]);
    in.insert(in.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(system.unknowns()));
    check_operands("custom_linear_solve", system.programs[which], in);
  }
  Types solved = system.programs[solver].output_types();
  out.insert(out.end(), solved.begin() + static_cast<std::ptrdiff_t>(system.unknowns()), solved.end());
  return TypeResult(std::move(out), system.programs[solver].effects());
}

Arrays lower_rule(std::span<const Array> inputs, const Attrs& attrs) {
  System system(attrs);
  Arrays operands = system.consts_of(inputs, solver);
  append(operands, system.right_side_of(inputs));
  return evaluate_program(system.programs[solver], operands);
}

// A x = b gives A dx = db - dA x: one more solve with the same A.
JvpResult jvp_solve(const JvpArgs& args) {
  System system(args.attrs);
  Arrays x = capibara::bind(args.primitive, args.primals, args.attrs);
  Arrays right = system.right_side_of(args.tangents);
  Mask nonzero = defined_mask(system.consts_of(args.tangents, matvec));
  if (any(nonzero)) {
    JvpProgram derived = jvp_program(system.programs[matvec], join({nonzero, Mask(right.size(), false)}));
    Arrays operands = system.consts_of(args.primals, matvec);
    append(operands, part(x, 0, right.size()));
    append(operands, where(system.consts_of(args.tangents, matvec), nonzero));
    Arrays out = evaluate_program(derived.program, operands);
    Arrays change = spread(part(out, right.size(), out.size()), derived.nonzero_outputs);
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (change[i].defined()) right[i] = add_tangents(right[i], jax::lax::neg(change[i]));
    }
  }
  if (!any(defined_mask(right))) return {x, Arrays(x.size())};
  Arrays operands = part(args.primals, 0, system.consts);
  for (std::size_t i = 0; i < right.size(); ++i) operands.push_back(instantiate(right[i], x[i].type()));
  Arrays tangents = capibara::bind(args.primitive, operands, args.attrs);
  for (std::size_t i = right.size(); i < tangents.size(); ++i) tangents[i] = Array();
  return {std::move(x), std::move(tangents)};
}

Arrays transpose_solve(const TransposeArgs& args) {
  System system(args.attrs);
  if (!system.programs[transpose_solver].defined()) {
    throw TypeError("transpose_solve required for backwards mode automatic differentiation of custom_linear_solve");
  }
  for (std::size_t i = 0; i < system.consts; ++i) {
    if (args.linear(i))
      throw NotImplementedError("custom_linear_solve: the transpose in what matvec or solve captures is not defined");
  }
  std::size_t count = system.unknowns();
  for (std::size_t i = count; i < args.cotangents.size(); ++i) {
    if (args.cotangents[i].defined())
      throw NotImplementedError("custom_linear_solve: auxiliary values have no cotangents");
  }
  Ints lengths = {system.lengths[vecmat], system.lengths[matvec], system.lengths[transpose_solver],
                  system.lengths[solver]};
  Arrays operands;
  for (std::size_t which : {vecmat, matvec, transpose_solver, solver})
    append(operands, system.consts_of(args.inputs, which));
  for (std::size_t i = 0; i < count; ++i)
    operands.push_back(instantiate(args.cotangents[i], args.types[system.consts + i]));
  Arrays all = capibara::bind(args.primitive, operands,
                              attrs_of(lengths, {system.programs[vecmat], system.programs[matvec],
                                                 system.programs[transpose_solver], system.programs[solver]}));
  Arrays results(system.consts);
  append(results, part(all, 0, count));
  return results;
}

// All four programs must agree on which parts of x and b are mapped: found by iteration.
BatchResult batch_solve(const BatchArgs& args) {
  System system(args.attrs);
  Mask mapped = mapped_mask(args), given = system.right_side_of(mapped);
  std::size_t count = system.unknowns(), aux = system.aux();
  Mask b_mapped = given, x_mapped(count + aux, false);
  std::vector<Program> programs(part_count);
  auto derive = [&](Part which, const Mask& in, const Mask& instantiate_mask) {
    BatchedProgram derived =
        batch_program(system.programs[which], args.axis, join({system.consts_of(mapped, which), in}), instantiate_mask);
    programs[which] = derived.program;
    return derived.mapped_outputs;
  };
  bool both = system.programs[transpose_solver].defined();
  for (;;) {
    Mask x_next = derive(solver, b_mapped, x_mapped);
    if (both) x_next = either(x_next, join({derive(vecmat, b_mapped, b_mapped), Mask(aux, true)}));
    Mask x_main = part(x_next, 0, count);
    Mask b_next = either(derive(matvec, x_main, b_mapped), given);
    if (both) b_next = either(b_next, part(derive(transpose_solver, x_main, x_next), 0, count));
    if (x_next == x_mapped && b_next == b_mapped) break;
    x_mapped = x_next;
    b_mapped = b_next;
  }
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    bool wanted = i < system.consts ? mapped[i] : b_mapped[i - system.consts];
    operands.push_back(wanted ? batch_at(args.inputs[i], args.dims[i], args.axis) : args.inputs[i]);
  }
  BatchResult result;
  result.outputs = capibara::bind(args.primitive, operands, attrs_of(system.lengths, programs));
  for (bool is_mapped : x_mapped) result.dims.push_back(is_mapped ? 0 : not_mapped);
  return result;
}

std::optional<std::string> print_attr(const std::string& name, const Attr& attr) {
  std::string text;
  auto add = [&](std::size_t i, const std::string& value) {
    text += concat(i ? ", " : "_LinearSolveTuple(", part_names[i], "=", value);
  };
  if (name == "const_lengths") {
    const Ints* lengths = attr.get_if<Ints>();
    for (std::size_t i = 0; lengths && i < lengths->size(); ++i) add(i, std::to_string((*lengths)[i]));
  } else if (name == "jaxprs") {
    const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
    for (std::size_t i = 0; list && i < (*list)->size(); ++i) {
      const auto* program = (**list)[i].get_if<std::shared_ptr<const Program>>();
      add(i, program ? (*program)->to_string() : "None");
    }
  }
  return text.empty() ? std::nullopt : std::optional(text + ")");
}

}  // namespace

PrimitiveRecord linear_solve_record() {
  PrimitiveRecord record;
  record.name = "custom_linear_solve";
  record.factors = whole_factors;
  record.traits.control = Control::solve;
  record.traits.multiple_results = true;
  record.traits.nan_checked = true;
  record.doc = "Solves a linear system with the user's solver.";
  record.type = solve_type;
  record.jvp = jvp_solve;
  record.transpose = transpose_solve;
  record.batch = batch_solve;
  record.lower = lower_rule;
  record.print_attr = print_attr;
  return record;
}

}  // namespace capibara

namespace capibara::jax::lax::detail {

namespace {

std::string types_text(std::span<const ArrayType> types) {
  std::string text;
  for (const ArrayType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return "[" + text + "]";
}

}  // namespace

Closed close(const FlatFunction& function, const Types& types, const std::string& name) {
  Staged staged = stage(function, types, name);
  Closed closed{constants_to_inputs(staged.program), staged.program.constants()};
  append(closed.consts, staged.captured);
  return closed;
}

void check_shapes(const char* name, const char* expected_name, const Program& program, const Types& expected,
                  bool has_aux) {
  Types got = program.output_types();
  if (has_aux && got.size() > expected.size()) got.resize(expected.size());
  bool same = got.size() == expected.size();
  for (std::size_t i = 0; same && i < got.size(); ++i) same = got[i].shape == expected[i].shape;
  if (same) return;
  throw ValueError(concat(name, "() output shapes must match ", expected_name, ", got ", types_text(got), " and ",
                          types_text(expected)));
}

void check_solve_tree(const char* name, const char* expected_name, const TreeDef& got, const TreeDef& expected) {
  if (got == expected) return;
  throw TypeError(concat(name, "() output pytree structure must match ", expected_name, ", got ", got.to_string(),
                         " and ", expected.to_string(), "."));
}

Arrays linear_solve_flat(const FlatFunction& matvec, const Arrays& b, const FlatSolver& solve,
                         const std::optional<FlatSolver>& transpose_solve, const LinearSolveFlags& flags) {
  Types types = types_of(b);
  Closed forward = close(matvec, types, "matvec");
  check_shapes("matvec", "b", forward.program, types, false);
  Closed solver = close([&](std::span<const Array> x) { return solve(matvec, x); }, types, "solve");
  check_shapes("solve", "b", solver.program, types, flags.has_aux);

  Closed backward, back_solver;
  if (transpose_solve) {
    if (flags.symmetric) {
      backward = forward;
    } else {
      std::vector<bool> is_linear(forward.consts.size(), false);
      is_linear.resize(forward.consts.size() + b.size(), true);
      backward.program = transpose_program(forward.program, is_linear, std::vector<bool>(b.size(), true)).program;
      backward.consts = forward.consts;
    }
    FlatFunction vecmat =
        flags.symmetric ? matvec : FlatFunction([&](std::span<const Array> x) { return backward(x); });
    back_solver =
        close([&](std::span<const Array> x) { return (*transpose_solve)(vecmat, x); }, types, "transpose_solve");
    check_shapes("transpose_solve", "b", back_solver.program, types, flags.has_aux);
  }
  Ints lengths;
  Attr::List programs;
  Arrays operands;
  for (const Closed* part : {&forward, &backward, &solver, &back_solver}) {
    lengths.push_back(static_cast<int64_t>(part->consts.size()));
    programs.push_back(part->program.defined() ? Attr(part->program) : Attr());
    append(operands, part->consts);
  }
  append(operands, b);
  static const Primitive p = primitive("custom_linear_solve");
  return capibara::bind(p, operands, {{"const_lengths", std::move(lengths)}, {"jaxprs", std::move(programs)}});
}

}  // namespace capibara::jax::lax::detail
