// Linear systems and roots with derivatives by implicit differentiation: stages the user's functions and binds them.
#include <capibara/solve.h>

#include "lax/rules.h"
#include "program/custom_rules.h"
#include "transforms/flat.h"

namespace capibara::jax::lax::detail {

namespace {

Types types_of(std::span<const Array> arrays) {
  Types types;
  for (const Array& array : arrays) types.push_back(array.type());
  return types;
}

void append(Arrays& to, std::span<const Array> from) { to.insert(to.end(), from.begin(), from.end()); }

Arrays joined(std::span<const Array> a, std::span<const Array> b) {
  Arrays all(a.begin(), a.end());
  append(all, b);
  return all;
}

// A program closed over nothing: what the function captured comes before its arguments.
struct Closed {
  Program program;
  Arrays consts;

  Arrays operator()(std::span<const Array> arguments) const { return evaluate_program(program, joined(consts, arguments)); }
};

Closed close(const FlatFunction& function, const Types& types, const std::string& name) {
  Staged staged = stage(function, types, name);
  Closed closed{constants_to_inputs(staged.program), staged.program.constants()};
  append(closed.consts, staged.captured);
  return closed;
}

std::string types_text(std::span<const ArrayType> types) {
  std::string text;
  for (const ArrayType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return "[" + text + "]";
}

void check_shapes(const char* name, const char* expected_name, const Program& program, const Types& expected, bool has_aux) {
  Types got = program.output_types();
  if (has_aux && got.size() > expected.size()) got.resize(expected.size());
  bool same = got.size() == expected.size();
  for (std::size_t i = 0; same && i < got.size(); ++i) same = got[i].shape == expected[i].shape;
  if (same) return;
  throw ValueError(concat(name, "() output shapes must match ", expected_name, ", got ", types_text(got), " and ", types_text(expected)));
}

}  // namespace

void check_solve_tree(const char* name, const char* expected_name, const TreeDef& got, const TreeDef& expected) {
  if (got == expected) return;
  throw TypeError(concat(name, "() output pytree structure must match ", expected_name, ", got ", got.to_string(), " and ",
                         expected.to_string(), "."));
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
    FlatFunction vecmat = flags.symmetric ? matvec : FlatFunction([&](std::span<const Array> x) { return backward(x); });
    back_solver = close([&](std::span<const Array> x) { return (*transpose_solve)(vecmat, x); }, types, "transpose_solve");
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

namespace {

// The functions of custom_root and where their consts stand among the operands: those of f, solve, tangent solve, guess.
struct Root {
  Program f, solve, tangent_solve;
  std::size_t f_consts = 0, solve_consts = 0, tangent_consts = 0;

  Arrays part(std::span<const Array> all, std::size_t begin, std::size_t count) const {
    return Arrays(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(begin + count));
  }
};

Arrays call_root(const Root& root, std::span<const Array> operands);

// f(m, u(m)) = 0 gives du = -(df/du)^-1 (df/dm) dm.
JvpResult root_jvp(const Root& root, std::span<const Array> primals, std::span<const Array> tangents) {
  Arrays solution = call_root(root, primals);
  std::size_t unknowns = root.f.outputs().size();
  Arrays point = root.part(solution, 0, unknowns);
  FlatFunction at_solution = [&](std::span<const Array> consts) { return evaluate_program(root.f, joined(consts, point)); };
  Arrays right = jvp_flat(at_solution, primals.first(root.f_consts), tangents.first(root.f_consts)).tangents;
  Arrays operands = root.part(primals, root.f_consts + root.solve_consts, root.tangent_consts);
  append(operands, point);
  for (std::size_t i = 0; i < unknowns; ++i) operands.push_back(capibara::instantiate(right[i], point[i].type()));
  JvpResult result{solution, {}};
  for (const Array& change : evaluate_program(root.tangent_solve, operands)) result.tangents.push_back(neg(change));
  for (std::size_t i = unknowns; i < solution.size(); ++i) result.tangents.push_back(zeros(tangent_type(solution[i].type())));
  return result;
}

Arrays call_root(const Root& root, std::span<const Array> operands) {
  static const Primitive custom_jvp_call = primitive("custom_jvp_call");
  FlatFunction body = [&](std::span<const Array> in) {
    Arrays own = root.part(in, root.f_consts, root.solve_consts);
    append(own, in.subspan(root.f_consts + root.solve_consts + root.tangent_consts));
    return evaluate_program(root.solve, own);
  };
  Program program = constants_to_inputs(stage(body, types_of(operands), "_custom_root").program);
  auto rule = [root](std::span<const Array> primals, std::span<const Array> tangents) { return root_jvp(root, primals, tangents); };
  std::shared_ptr<const Opaque> opaque = std::make_shared<CustomJvpRule>("_root_jvp", rule);
  return capibara::bind(custom_jvp_call, operands,
                        {{"name", "_custom_root"},
                         {"call_jaxpr", program},
                         {"jvp_jaxpr_fun", std::move(opaque)},
                         {"num_consts", 0},
                         {"symbolic_zeros", false}});
}

}  // namespace

Arrays custom_root_flat(const FlatFunction& f, const Arrays& initial_guess, const FlatSolver& solve,
                        const FlatSolver& tangent_solve, bool has_aux) {
  Types types = types_of(initial_guess);
  Closed function = close(f, types, "f");
  check_shapes("f", "initial_guess", function.program, types, false);
  Closed solver = close([&](std::span<const Array> x) { return solve(f, x); }, types, "solve");
  check_shapes("solve", "initial_guess", solver.program, types, has_aux);
  FlatFunction linearize_and_solve = [&](std::span<const Array> in) {
    std::span<const Array> x = in.first(initial_guess.size()), b = in.subspan(initial_guess.size());
    Linearized linear = linearize_flat(f, x, std::vector<bool>(x.size(), true));
    FlatFunction g = [&](std::span<const Array> tangents) {
      Arrays out = evaluate_program(linear.linear, joined(linear.residuals, tangents));
      Arrays all;
      std::size_t next = 0;
      for (std::size_t i = 0; i < linear.nonzero_outputs.size(); ++i) {
        all.push_back(linear.nonzero_outputs[i] ? out[next++] : zeros(tangent_type(linear.outputs[i].type())));
      }
      return all;
    };
    return tangent_solve(g, b);
  };
  Types twice = types;
  twice.insert(twice.end(), types.begin(), types.end());
  Closed tangent = close(linearize_and_solve, twice, "tangent_solve");
  check_shapes("tangent_solve", "x", tangent.program, types, false);
  Root root{function.program, solver.program, tangent.program, function.consts.size(), solver.consts.size(), tangent.consts.size()};
  Arrays operands = function.consts;
  append(operands, solver.consts);
  append(operands, tangent.consts);
  append(operands, initial_guess);
  return call_root(root, operands);
}

}  // namespace capibara::jax::lax::detail
