// Linear systems and roots, differentiated through the equation they satisfy rather than through the solver's steps.
#pragma once

#include <capibara/control.h>

#include <optional>
#include <type_traits>

namespace capibara::jax::lax {

namespace detail {

// Solves for x in function(x) = b; may return auxiliary values after x.
using FlatSolver = std::function<Arrays(const FlatFunction& function, std::span<const Array> b)>;

struct LinearSolveFlags {
  bool symmetric = false;
  bool has_aux = false;
};
Arrays linear_solve_flat(const FlatFunction& matvec, const Arrays& b, const FlatSolver& solve,
                         const std::optional<FlatSolver>& transpose_solve, const LinearSolveFlags& flags);
Arrays custom_root_flat(const FlatFunction& f, const Arrays& initial_guess, const FlatSolver& solve,
                        const FlatSolver& tangent_solve, bool has_aux);
void check_solve_tree(const char* name, const char* expected_name, const TreeDef& got, const TreeDef& expected);

// A solver on trees as one on leaves. The structure of its auxiliary result, if any, is stored in `aux_tree`.
template <class Tree, class Solver>
FlatSolver flat_solver(const char* name, const char* expected_name, Solver solver, const TreeDef& structure,
                       bool has_aux, TreeDef* aux_tree) {
  return [=](const FlatFunction& function, std::span<const Array> b) {
    auto on_trees = [&](const Tree& x) { return tree::unflatten<Tree>(structure, function(tree::leaves(x))); };
    std::function<Tree(const Tree&)> callable = on_trees;
    auto result = solver(callable, tree::unflatten<Tree>(structure, b));
    if constexpr (std::is_convertible_v<decltype(result), Tree>) {
      Tree x = result;
      check_solve_tree(name, expected_name, tree::structure(x), structure);
      return tree::leaves(x);
    } else {
      check_solve_tree(name, expected_name, tree::structure(std::get<0>(result)), structure);
      Arrays leaves = tree::leaves(std::get<0>(result));
      Arrays aux = tree::leaves(std::get<1>(result));
      if (aux_tree) *aux_tree = tree::structure(std::get<1>(result));
      leaves.insert(leaves.end(), aux.begin(), aux.end());
      return leaves;
    }
  };
}

template <class Tree>
FlatFunction flat_map(const char* name, const char* expected_name, std::function<Tree(const Tree&)> f,
                      const TreeDef& structure) {
  return [=](std::span<const Array> x) {
    Tree y = f(tree::unflatten<Tree>(structure, x));
    check_solve_tree(name, expected_name, tree::structure(y), structure);
    return tree::leaves(y);
  };
}

}  // namespace detail

// solve(matvec, b), differentiated implicitly: matvec must be linear, and solve must return the x for which matvec(x) =
// b. For a symmetric matvec, `solve` also solves the transposed system.
template <class Matvec, class Tree, class Solve>
Tree custom_linear_solve(Matvec matvec, const Tree& b, Solve solve, bool symmetric = false) {
  TreeDef structure = tree::structure(b);
  auto flat = detail::flat_solver<Tree>("solve", "b", solve, structure, false, nullptr);
  std::optional<detail::FlatSolver> transposed;
  if (symmetric) transposed = flat;
  Arrays x = detail::linear_solve_flat(detail::flat_map<Tree>("matvec", "b", matvec, structure), tree::leaves(b), flat,
                                       transposed, {.symmetric = symmetric});
  return tree::unflatten<Tree>(structure, x);
}

// The same with a solver of the transposed system, which reverse mode requires.
template <class Matvec, class Tree, class Solve, class TransposeSolve>
requires(!std::is_same_v<TransposeSolve, bool>) Tree
    custom_linear_solve(Matvec matvec, const Tree& b, Solve solve, TransposeSolve transpose_solve,
                        bool symmetric = false) {
  TreeDef structure = tree::structure(b);
  auto flat = detail::flat_solver<Tree>("solve", "b", solve, structure, false, nullptr);
  auto transposed = detail::flat_solver<Tree>("transpose_solve", "b", transpose_solve, structure, false, nullptr);
  Arrays x = detail::linear_solve_flat(detail::flat_map<Tree>("matvec", "b", matvec, structure), tree::leaves(b), flat,
                                       transposed, {.symmetric = symmetric});
  return tree::unflatten<Tree>(structure, x);
}

// custom_linear_solve for solvers that return pair(x, aux). The aux values carry no derivative.
template <class Aux, class Matvec, class Tree, class Solve, class TransposeSolve = std::nullopt_t>
std::pair<Tree, Aux> custom_linear_solve_with_aux(Matvec matvec, const Tree& b, Solve solve,
                                                  TransposeSolve transpose_solve = std::nullopt,
                                                  bool symmetric = false) {
  TreeDef structure = tree::structure(b), aux_tree;
  auto flat = detail::flat_solver<Tree>("solve", "b", solve, structure, true, &aux_tree);
  std::optional<detail::FlatSolver> transposed;
  if constexpr (!std::is_same_v<TransposeSolve, std::nullopt_t>) {
    transposed = detail::flat_solver<Tree>("transpose_solve", "b", transpose_solve, structure, true, nullptr);
  } else if (symmetric) {
    transposed = flat;
  }
  Arrays all = detail::linear_solve_flat(detail::flat_map<Tree>("matvec", "b", matvec, structure), tree::leaves(b),
                                         flat, transposed, {.symmetric = symmetric, .has_aux = true});
  std::size_t count = tree::leaves(b).size();
  std::span<const Array> leaves(all);
  return {tree::unflatten<Tree>(structure, leaves.first(count)), tree::unflatten<Aux>(aux_tree, leaves.subspan(count))};
}

// The root that solve(f, initial_guess) finds, differentiated by the implicit function theorem. tangent_solve(g, y)
// solves the linear system g(x) = y.
template <class F, class Tree, class Solve, class TangentSolve>
Tree custom_root(F f, const Tree& initial_guess, Solve solve, TangentSolve tangent_solve) {
  TreeDef structure = tree::structure(initial_guess);
  Arrays root = detail::custom_root_flat(
      detail::flat_map<Tree>("f", "initial_guess", f, structure), tree::leaves(initial_guess),
      detail::flat_solver<Tree>("solve", "initial_guess", solve, structure, false, nullptr),
      detail::flat_solver<Tree>("tangent_solve", "x", tangent_solve, structure, false, nullptr), false);
  return tree::unflatten<Tree>(structure, root);
}

// custom_root for solvers that return pair(root, aux).
template <class Aux, class F, class Tree, class Solve, class TangentSolve>
std::pair<Tree, Aux> custom_root_with_aux(F f, const Tree& initial_guess, Solve solve, TangentSolve tangent_solve) {
  TreeDef structure = tree::structure(initial_guess), aux_tree;
  Arrays all = detail::custom_root_flat(
      detail::flat_map<Tree>("f", "initial_guess", f, structure), tree::leaves(initial_guess),
      detail::flat_solver<Tree>("solve", "initial_guess", solve, structure, true, &aux_tree),
      detail::flat_solver<Tree>("tangent_solve", "x", tangent_solve, structure, false, nullptr), true);
  std::size_t count = tree::leaves(initial_guess).size();
  std::span<const Array> leaves(all);
  return {tree::unflatten<Tree>(structure, leaves.first(count)), tree::unflatten<Aux>(aux_tree, leaves.subspan(count))};
}

}  // namespace capibara::jax::lax
