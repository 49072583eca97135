// lax.custom_root: roots differentiated by the implicit function theorem, a composition of transforms.
#include "lax/control/linear_solve.h"
#include "program/derive/custom_rules.h"
#include "transforms/flat.h"

namespace capibara::jax::lax::detail {

namespace {

// The functions of custom_root and the number of consts of each among the operands, in the order f, solve, tangent
// solve; the guess comes last.
struct Root {
  Program f, solve, tangent_solve;
  std::size_t f_consts = 0, solve_consts = 0, tangent_consts = 0;

  Arrays part(std::span<const Array> all, std::size_t begin, std::size_t count) const {
    return Arrays(all.begin() + static_cast<std::ptrdiff_t>(begin),
                  all.begin() + static_cast<std::ptrdiff_t>(begin + count));
  }
};

Arrays call_root(const Root& root, std::span<const Array> operands);

// f(m, u(m)) = 0 gives du = -(df/du)^-1 (df/dm) dm.
JvpResult root_jvp(const Root& root, std::span<const Array> primals, std::span<const Array> tangents) {
  Arrays solution = call_root(root, primals);
  std::size_t unknowns = root.f.outputs().size();
  Arrays point = root.part(solution, 0, unknowns);
  FlatFunction at_solution = [&](std::span<const Array> consts) {
    return evaluate_program(root.f, joined(consts, point));
  };
  Arrays right = jvp_flat(at_solution, primals.first(root.f_consts), tangents.first(root.f_consts)).tangents;
  Arrays operands = root.part(primals, root.f_consts + root.solve_consts, root.tangent_consts);
  append(operands, point);
  for (std::size_t i = 0; i < unknowns; ++i) operands.push_back(capibara::instantiate(right[i], point[i].type()));
  JvpResult result{solution, {}};
  for (const Array& change : evaluate_program(root.tangent_solve, operands)) result.tangents.push_back(neg(change));
  for (std::size_t i = unknowns; i < solution.size(); ++i)
    result.tangents.push_back(zeros(tangent_type(solution[i].type())));
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
  auto rule = [root](std::span<const Array> primals, std::span<const Array> tangents) {
    return root_jvp(root, primals, tangents);
  };
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
  Root root{function.program,       solver.program,       tangent.program,
            function.consts.size(), solver.consts.size(), tangent.consts.size()};
  Arrays operands = function.consts;
  append(operands, solver.consts);
  append(operands, tangent.consts);
  append(operands, initial_guess);
  return call_root(root, operands);
}

}  // namespace capibara::jax::lax::detail
