// Structured control flow on trees: scan, while_loop, fori_loop, cond, switch_, map and associative_scan.
#pragma once

#include <capibara/lax.h>
#include <capibara/tree.h>

#include <functional>
#include <optional>
#include <utility>

namespace capibara::jax::lax {

namespace detail {
using FlatFunction = std::function<Arrays(std::span<const Array>)>;

// False, for a static_assert that a branch of `if constexpr` reaches.
template <class...>
inline constexpr bool never = false;

template <class T>
concept IsPair = requires {
  std::tuple_size<T>::value;
}
&&std::tuple_size<T>::value == 2;

// The result type of f for such arguments; void if it does not take them.
template <class F, class... Arguments>
using result_or_void =
    typename std::conditional_t<std::is_invocable_v<F&, const Arguments&...>,
                                std::invoke_result<F&, const Arguments&...>, std::type_identity<void>>::type;

// The body maps (carry, slices) to (carry, ys); `ys` receives the number of stacked outputs.
Arrays scan_flat(const FlatFunction& body, const Arrays& init, const Arrays& xs, std::optional<int64_t> length,
                 bool reverse, int64_t unroll);
Arrays while_flat(const FlatFunction& condition, const FlatFunction& body, const Arrays& init);
Arrays cond_flat(const Array& index, const std::vector<FlatFunction>& branches, const Arrays& operands);
Array predicate_index(const Array& predicate);              // bool[] -> int32[]
Array branch_index(const Array& index, std::size_t count);  // clamped int32[]
using Combine = std::function<Arrays(const Arrays&, const Arrays&)>;
Arrays associative_scan_flat(const Combine& combine, Arrays elements, int64_t axis, bool reverse, bool fused = false);
// Splits the leading dimension of each array into blocks; the remainder, if any, comes second.
std::pair<Arrays, Arrays> split_in_blocks(const Arrays& xs, int64_t batch_size);
Arrays join_blocks(const Arrays& blocks, const Arrays& rest);
Arrays vmap_over_front(const FlatFunction& function, const Arrays& xs);
void check_carry(const char* name, const TreeDef& in, const TreeDef& out);

}  // namespace detail

struct ScanOptions {
  std::optional<int64_t> length;  // required if there are no xs
  bool reverse = false;
  int64_t unroll = 1;
};

// Loops over the leading axis of xs with f(carry, x) -> pair(carry, y); returns the last carry and the stacked ys.
template <class F, class Carry, class Xs>
auto scan(F f, const Carry& init, const Xs& xs, const ScanOptions& options = {}) {
  using Result = std::decay_t<detail::result_or_void<F, Carry, Xs>>;
  if constexpr (!std::is_invocable_v<F&, const Carry&, const Xs&>) {
    static_assert(detail::never<F>, "scan: the function must take two arguments, the carry and a slice of xs");
  } else if constexpr (!detail::IsPair<Result>) {
    static_assert(detail::never<F>,
                  "scan: the function must return a pair, the next carry and the output of this step");
  } else {
    using Ys = std::decay_t<decltype(std::get<1>(std::declval<Result>()))>;
    Arrays carry_leaves = tree::leaves(init), xs_leaves = tree::leaves(xs);
    TreeDef carry_tree = tree::structure(init), xs_tree = tree::structure(xs), ys_tree;
    std::size_t carries = carry_leaves.size();
    Arrays flat = detail::scan_flat(
        [&](std::span<const Array> in) {
          Result result = f(tree::unflatten<Carry>(carry_tree, in.first(carries)),
                            tree::unflatten<Xs>(xs_tree, in.subspan(carries)));
          detail::check_carry("scan", carry_tree, tree::structure(std::get<0>(result)));
          Arrays out = tree::leaves(std::get<0>(result));
          Arrays ys = tree::leaves(std::get<1>(result));
          ys_tree = tree::structure(std::get<1>(result));
          out.insert(out.end(), ys.begin(), ys.end());
          return out;
        },
        carry_leaves, xs_leaves, options.length, options.reverse, options.unroll);
    std::span<const Array> all(flat);
    return std::pair<Carry, Ys>(tree::unflatten<Carry>(carry_tree, all.first(carries)),
                                tree::unflatten<Ys>(ys_tree, all.subspan(carries)));
  }
}

// Repeats state = body(state) while condition(state) is true.
template <class Condition, class Body, class State>
State while_loop(Condition condition, Body body, const State& init) {
  if constexpr (!std::is_constructible_v<Array, detail::result_or_void<Condition, State>>) {
    static_assert(detail::never<State>, "while_loop: the condition must take the state and return a bool Array");
    return init;
  } else if constexpr (!std::is_convertible_v<detail::result_or_void<Body, State>, State>) {
    static_assert(detail::never<State>,
                  "while_loop: the body must take the state and return the next one, of the same type");
    return init;
  } else {
    TreeDef structure = tree::structure(init);
    Arrays flat = detail::while_flat(
        [&](std::span<const Array> in) { return Arrays{Array(condition(tree::unflatten<State>(structure, in)))}; },
        [&](std::span<const Array> in) {
          State next = body(tree::unflatten<State>(structure, in));
          detail::check_carry("while_loop", structure, tree::structure(next));
          return tree::leaves(next);
        },
        tree::leaves(init));
    return tree::unflatten<State>(structure, flat);
  }
}

namespace detail {

template <class Body, class State>
constexpr bool is_fori_body() {
  constexpr bool fits = std::is_convertible_v<result_or_void<Body, Array, State>, State>;
  static_assert(fits,
                "fori_loop: the body must take the index and the state, and return the next state, of the same type");
  return fits;
}

}  // namespace detail

// Repeats state = body(i, state) for i in [lower, upper). A scan with static bounds, differentiable in reverse.
template <class Body, class State>
State fori_loop(int64_t lower, int64_t upper, Body body, const State& init) {
  if constexpr (!detail::is_fori_body<Body, State>()) {
    return init;
  } else {
    if (upper <= lower) return init;
    auto step = [&](const std::pair<Array, State>& carry, std::monostate) {
      Array next = lax::add(carry.first, Array(1));
      return std::pair(std::pair<Array, State>(next, body(carry.first, carry.second)), std::monostate{});
    };
    return scan(step, std::pair<Array, State>(Array(lower), init), std::monostate{}, {.length = upper - lower})
        .first.second;
  }
}

// The same with bounds known only at run time: a while loop, differentiable in forward mode only.
template <class Body, class State>
State fori_loop(const Array& lower, const Array& upper, Body body, const State& init) {
  if constexpr (!detail::is_fori_body<Body, State>()) {
    return init;
  } else {
    using Carry = std::tuple<Array, Array, State>;
    Carry result = while_loop([](const Carry& c) { return lax::lt(std::get<0>(c), std::get<1>(c)); },
                              [&](const Carry& c) {
                                Array next = lax::add(std::get<0>(c), Array(1));
                                return Carry(next, std::get<1>(c), body(std::get<0>(c), std::get<2>(c)));
                              },
                              Carry(lower, upper, init));
    return std::get<2>(result);
  }
}

namespace detail {

template <class Result, class... Operands>
auto run_branches(const Array& index, const std::vector<std::function<Result(const Operands&...)>>& functions,
                  const Operands&... operands) {
  auto packed = std::make_tuple(operands...);
  using Packed = decltype(packed);
  TreeDef structure = tree::structure(packed);
  std::optional<TreeDef> result_structure;
  std::vector<FlatFunction> flat;
  for (const auto& function : functions) {
    flat.push_back([&](std::span<const Array> in) {
      Result result = std::apply(function, tree::unflatten<Packed>(structure, in));
      TreeDef own = tree::structure(result);
      if (!result_structure) result_structure = own;
      check_carry("cond", *result_structure, own);
      return tree::leaves(result);
    });
  }
  Arrays outputs = cond_flat(index, flat, tree::leaves(packed));
  return tree::unflatten<Result>(*result_structure, outputs);
}

}  // namespace detail

// Applies on_true or on_false to the operands; both must return the same types.
template <class True, class False, class... Operands>
auto cond(const Array& predicate, True on_true, False on_false, const Operands&... operands) {
  using Result = std::decay_t<detail::result_or_void<True, Operands...>>;
  if constexpr (!std::is_invocable_v<True&, const Operands&...> || !std::is_invocable_v<False&, const Operands&...>) {
    static_assert(detail::never<True>, "cond: both branches must take the operands");
  } else if constexpr (std::is_void_v<Result> ||
                       !std::is_convertible_v<detail::result_or_void<False, Operands...>, Result>) {
    static_assert(detail::never<True>, "cond: both branches must return a value of the same type");
  } else {
    std::vector<std::function<Result(const Operands&...)>> branches = {on_false, on_true};
    return detail::run_branches<Result, Operands...>(detail::predicate_index(predicate), branches, operands...);
  }
}

// Applies the branch that `index` selects to the operands; an index out of range is clamped.
template <class Result, class... Operands>
Result switch_(const Array& index, const std::vector<std::function<Result(const Operands&...)>>& branches,
               const Operands&... operands) {
  if (branches.empty()) throw ValueError("switch: at least one branch is needed, got none");
  return detail::run_branches<Result, Operands...>(detail::branch_index(index, branches.size()), branches, operands...);
}

struct MapOptions {
  std::optional<int64_t> batch_size;  // slices handled at once by vmap; by default one at a time
};

// Applies f to every slice along the leading axis.
template <class F, class Xs>
auto map(F f, const Xs& xs, const MapOptions& options = {}) {
  using Y = std::decay_t<detail::result_or_void<F, Xs>>;
  static_assert(!std::is_void_v<Y>, "map: the function must take a slice of xs and return a value");
  auto one_by_one = [&](const Xs& stacked) {
    return scan([&](std::monostate, const Xs& x) { return std::pair(std::monostate{}, f(x)); }, std::monostate{},
                stacked)
        .second;
  };
  if (!options.batch_size) return one_by_one(xs);
  TreeDef xs_tree = tree::structure(xs), ys_tree;
  detail::FlatFunction flat = [&](std::span<const Array> in) {
    Y y = f(tree::unflatten<Xs>(xs_tree, in));
    ys_tree = tree::structure(y);
    return tree::leaves(y);
  };
  auto [blocks, rest] = detail::split_in_blocks(tree::leaves(xs), *options.batch_size);
  Arrays done;
  if (blocks.empty() || blocks[0].shape(0) > 0) {
    done = detail::scan_flat(
        [&](std::span<const Array> in) { return detail::vmap_over_front(flat, Arrays(in.begin(), in.end())); }, {},
        blocks, std::nullopt, false, 1);
  }
  Arrays rest_done;
  if (!rest.empty()) rest_done = detail::vmap_over_front(flat, rest);
  return tree::unflatten<Y>(ys_tree, detail::join_blocks(done, rest_done));
}

struct AssociativeScanOptions {
  bool reverse = false;
  int64_t axis = 0;
  bool tpu_optimized = false;  // linear recurrences, (a1 * a2, a2 * b1 + b2), run as kernels::linear_recurrence
};

// Combines all prefixes by an associative function of two trees, in logarithmic depth.
template <class F, class Tree>
Tree associative_scan(F combine, const Tree& elements, const AssociativeScanOptions& options = {}) {
  TreeDef structure = tree::structure(elements);
  Arrays flat = detail::associative_scan_flat(
      [&](const Arrays& a, const Arrays& b) {
        return tree::leaves(combine(tree::unflatten<Tree>(structure, a), tree::unflatten<Tree>(structure, b)));
      },
      tree::leaves(elements), options.axis, options.reverse, options.tpu_optimized);
  return tree::unflatten<Tree>(structure, flat);
}

}  // namespace capibara::jax::lax
