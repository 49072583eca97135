// Transforms of functions on trees: derivatives forward and backward, Jacobians, and maps over an axis.
//
// Positions are template arguments, since they decide what a transform returns: grad(f) differentiates argument 0,
// to grad that returns (Array, anything) has auxiliary data; the other transforms need a tag: jvp(has_aux, f, ...).
// to grad that returns (Array, anything) has auxiliary data; the other transforms are told so: jvp(has_aux, f, ...).
#pragma once

#include <capibara/callable.h>
#include <capibara/custom_derivatives.h>
#include <capibara/jit.h>
#include <capibara/remat.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

namespace capibara {

namespace jax {

struct GradOptions {
  bool holomorphic = false;
  bool allow_int = false;  // gradients of integers are float0
};
using JacobianOptions = GradOptions;

// A tree prefix of axes: one axis for everything, none, or one entry per argument, element or field.
class Axes {
 public:
  Axes(int64_t axis) : axis_(axis) {}
  Axes(std::nullopt_t) {}
  Axes(std::initializer_list<Axes> entries) : is_list_(true), entries_(entries) {}
  Axes(std::vector<Axes> entries) : is_list_(true), entries_(std::move(entries)) {}

  bool is_list() const { return is_list_; }
  const std::optional<int64_t>& axis() const { return axis_; }
  const std::vector<Axes>& entries() const { return entries_; }
  std::string to_string() const;

 private:
  bool is_list_ = false;
  std::optional<int64_t> axis_;
  std::vector<Axes> entries_;
};

struct VmapOptions {
  Axes in_axes = 0, out_axes = 0;
  std::string axis_name = {};
  std::optional<int64_t> axis_size = std::nullopt;
  std::vector<std::string> spmd_axis_name = {};  // mesh axes that the mapped axis is split over, for sharded values
};

}  // namespace jax

namespace detail {

class LinearMap;  // a function linearised at a point
struct LinearizedCall {
  Arrays outputs;  // those of the function, then its auxiliary data
  std::shared_ptr<const LinearMap> map;
};

// The leaves of the arguments at these positions; negative ones count from the end.
std::vector<bool> argument_leaves(const char* operation, const TreeDef& in, std::initializer_list<int> positions);

// `main` outputs are differentiated, the rest is auxiliary; it is read after the function has run.
LinearizedCall linearize_leaves(const FlatFunction& function, std::span<const Array> leaves,
                                const std::vector<bool>& differentiated, const std::size_t& main);
Arrays push_forward(const LinearMap& map, const TreeDef& expected, const TreeDef& got, std::span<const Array> tangents);
Arrays pull_back(const LinearMap& map, const TreeDef& expected, const TreeDef& got, std::span<const Array> cotangents);

struct GradCall {
  Arrays outputs;    // the value, then auxiliary data
  Arrays gradients;  // of the differentiated leaves
};
GradCall grad_leaves(const FlatFunction& function, std::span<const Array> leaves,
                     const std::vector<bool>& differentiated, const jax::GradOptions& options);

struct JvpCall {
  Arrays outputs, tangents;  // tangents of the `main` first outputs
};
JvpCall jvp_leaves(const FlatFunction& function, const TreeDef& in, const TreeDef& tangent_in,
                   std::span<const Array> leaves, std::span<const Array> tangents, const std::size_t& main);

struct JacobianCall {
  Arrays outputs;
  Arrays entries;  // for each main output, for each differentiated leaf
};
JacobianCall jacfwd_leaves(const FlatFunction& function, std::span<const Array> leaves,
                           const std::vector<bool>& differentiated, const jax::JacobianOptions& options,
                           const std::size_t& main);
JacobianCall jacrev_leaves(const FlatFunction& function, std::span<const Array> leaves,
                           const std::vector<bool>& differentiated, const jax::JacobianOptions& options,
                           const std::size_t& main);

// The transpose of a function declared linear.
class TransposedFunction;
std::shared_ptr<const TransposedFunction> transpose_leaves(const FlatFunction& function, const Types& types);
Arrays apply_transposed(const TransposedFunction& function, const TreeDef& expected, const TreeDef& got,
                        std::span<const Array> cotangents);

// `out` is read after the function has run.
Arrays vmap_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                   const jax::VmapOptions& options, const TreeDef& out);

struct Residuals {
  Types types;
  std::vector<std::string> origins;
};
Residuals saved_residuals(const FlatFunction& function, const Types& types);

// ---- types of results -----------------------------------------------------------------------------------------------

constexpr bool names_position(int position, int count, std::initializer_list<int> positions) {
  for (int p : positions) {
    if ((p < 0 ? p + count : p) == position) return true;
  }
  return false;
}

// Numbers at differentiated positions become Arrays.
template <int... argnums, class... Ts>
auto with_arrays(std::tuple<Ts...> arguments) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    constexpr int count = sizeof...(Ts);
    return std::tuple<
        std::conditional_t<names_position(static_cast<int>(i), count, {argnums...}) && Number<Ts>, Array, Ts>...>(
        std::get<i>(std::move(arguments))...);
  }
  (std::index_sequence_for<Ts...>());
}

template <int argnum, class Arguments>
inline constexpr int position_of = argnum < 0 ? argnum + static_cast<int>(std::tuple_size_v<Arguments>) : argnum;
template <int argnum, class Arguments>
using argument_t = std::tuple_element_t<static_cast<std::size_t>(position_of<argnum, Arguments>), Arguments>;

// The type of the differentiated arguments in a result: the argument itself, or a tuple of several.
template <class Arguments, int... argnums>
struct Differentiated {
  using type = std::tuple<argument_t<argnums, Arguments>...>;
  static TreeDef structure(const TreeDef& in) {
    return TreeDef::tuple({in.children()[static_cast<std::size_t>(position_of<argnums, Arguments>)]...});
  }
};
template <class Arguments, int argnum>
struct Differentiated<Arguments, argnum> {
  using type = argument_t<argnum, Arguments>;
  static TreeDef structure(const TreeDef& in) {
    return in.children()[static_cast<std::size_t>(position_of<argnum, Arguments>)];
  }
};

// Selects leaves in the order in which a result lists the arguments, not in that of the call.
template <class Arguments, int... argnums>
std::vector<std::size_t> leaf_order(const TreeDef& in) {
  std::vector<std::size_t> begin;
  std::size_t next = 0;
  for (int i = 0; i < static_cast<int>(in.children().size()); ++i) {
    begin.push_back(next);
    if (names_position(i, static_cast<int>(in.children().size()), {argnums...}))
      next += in.children()[static_cast<std::size_t>(i)].num_leaves();
  }
  std::vector<std::size_t> order;
  for (int position : {position_of<argnums, Arguments>...}) {
    std::size_t index = static_cast<std::size_t>(position);
    for (std::size_t i = 0; i < in.children()[index].num_leaves(); ++i) order.push_back(begin[index] + i);
  }
  return order;
}

inline Arrays reordered(const Arrays& arrays, const std::vector<std::size_t>& order, std::size_t base = 0) {
  Arrays result;
  for (std::size_t i : order) result.push_back(arrays[base + i]);
  return result;
}

// The type T with every Array replaced by X.
template <class T, class X>
struct substitute {
  static_assert(
      is_static_value<T>() || is_none<T> || std::is_same_v<X, Array>,
      "a Jacobian of a function that returns a struct exists for one Array argument only; return a tuple instead");
  using type = T;
};
template <class X>
struct substitute<Array, X> {
  using type = X;
};
template <class... Ts, class X>
struct substitute<std::tuple<Ts...>, X> {
  using type = std::tuple<typename substitute<Ts, X>::type...>;
};
template <class A, class B, class X>
struct substitute<std::pair<A, B>, X> {
  using type = std::pair<typename substitute<A, X>::type, typename substitute<B, X>::type>;
};
template <class T, class X>
struct substitute<std::vector<T>, X> {
  using type = std::vector<typename substitute<T, X>::type>;
};
template <class T, std::size_t n, class X>
struct substitute<std::array<T, n>, X> {
  using type = std::array<typename substitute<T, X>::type, n>;
};
template <class K, class T, class X>
struct substitute<std::map<K, T>, X> {
  using type = std::map<K, typename substitute<T, X>::type>;
};
template <class T, class X>
struct substitute<std::optional<T>, X> {
  using type = std::optional<typename substitute<T, X>::type>;
};

// The value part of a result, and the structure and number of its leaves.
template <bool with_aux, class Result>
struct ValuePart {
  using type = Result;
  static TreeDef structure(const TreeDef& out) { return out; }
};
template <class Result>
struct ValuePart<true, Result> {
  static_assert(auxiliary<Result>::present,
                "has_aux: the function must return a pair or a tuple of (value, auxiliary data)");
  using type = typename auxiliary<Result>::Value;
  static TreeDef structure(const TreeDef& out) { return out.children()[0]; }
};

// A typed function on leaves that also counts the leaves of its value part.
template <bool with_aux, class Arguments, class F>
FlatFunction counted(const F& f, const TreeDef& in, TreeDef& out, std::size_t& main) {
  return [flat = flattened<Arguments>(f, in, out), &out, &main](std::span<const Array> leaves) {
    Arrays outputs = flat(leaves);
    using Result = result_of<F, Arguments>;
    main = ValuePart<with_aux, Result>::structure(out).num_leaves();
    return outputs;
  };
}

template <class Result>
typename auxiliary<Result>::Extra rebuild_auxiliary(const TreeDef& out, const Arrays& outputs, std::size_t main) {
  return rebuild<typename auxiliary<Result>::Extra>(out.children()[1], std::span<const Array>(outputs).subspan(main));
}

template <class Arguments>
using as_tuple = std::conditional_t<is_tuple<Arguments>::value, Arguments, std::tuple<Arguments>>;

}  // namespace detail

namespace jax {

// ---- gradients ---------------------------------------------------------------------------------------------------

template <bool with_value, class F, int... argnums>
class Gradient {
 public:
  using parameter_types = capibara::detail::parameters_t<F>;

  Gradient(F f, GradOptions options) : f_(std::move(f)), options_(options) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    auto packed = detail::with_arrays<argnums...>(detail::pack_arguments<F>(std::forward<Args>(args)...));
    using Arguments = decltype(packed);
    using Result = detail::result_of<F, Arguments>;
    using Wrt = detail::Differentiated<Arguments, argnums...>;
    constexpr bool with_aux = !std::is_same_v<Result, Array>;
    if constexpr (with_aux && !detail::auxiliary<Result>::present) {
      static_assert(!with_aux, "grad: the function must return an Array, or (Array, auxiliary data)");
    } else {
      static_assert(std::is_same_v<typename detail::ValuePart<with_aux, Result>::type, Array>,
                    "grad: the first element of what the function returns must be an Array");
      TreeDef in = detail::make_structure(packed), out;
      Arrays leaves = detail::leaves_of(packed);
      detail::require_values("grad", in, leaves);
      detail::GradCall call = detail::grad_leaves(detail::flattened<Arguments>(f_, in, out), leaves,
                                                  detail::argument_leaves("grad", in, {argnums...}), options_);
      auto gradients = detail::rebuild<typename Wrt::type>(
          Wrt::structure(in), detail::reordered(call.gradients, detail::leaf_order<Arguments, argnums...>(in)));
      if constexpr (with_value) {
        return std::tuple<Result, typename Wrt::type>(detail::rebuild<Result>(out, call.outputs), std::move(gradients));
      } else if constexpr (with_aux) {
        return std::tuple<typename Wrt::type, typename detail::auxiliary<Result>::Extra>(
            std::move(gradients), detail::rebuild_auxiliary<Result>(out, call.outputs, 1));
      } else {
        return gradients;
      }
    }
  }

 private:
  F f_;
  GradOptions options_;
};

// The gradient of a scalar function: grad(f)(x, ...) has the type of x; with auxiliary data it is a tuple (gradient,
// auxiliary data).
template <int... argnums, class F>
auto grad(F&& f, GradOptions options = {}) {
  if constexpr (sizeof...(argnums) == 0)
    return Gradient<false, std::decay_t<F>, 0>(std::forward<F>(f), options);
  else
    return Gradient<false, std::decay_t<F>, argnums...>(std::forward<F>(f), options);
}

// The value and the gradient: value_and_grad(f)(x, ...) is a tuple (what f returns, gradient).
template <int... argnums, class F>
auto value_and_grad(F&& f, GradOptions options = {}) {
  if constexpr (sizeof...(argnums) == 0)
    return Gradient<true, std::decay_t<F>, 0>(std::forward<F>(f), options);
  else
    return Gradient<true, std::decay_t<F>, argnums...>(std::forward<F>(f), options);
}

// ---- linear maps, forward and backward ---------------------------------------------------------------------------

// Linear in the arguments of the function; made by linearize.
template <class Result, class Arguments>
class Pushforward {
 public:
  Pushforward(std::shared_ptr<const capibara::detail::LinearMap> map, TreeDef in, TreeDef out)
      : map_(std::move(map)), in_(std::move(in)), out_(std::move(out)) {}

  template <class... Tangents>
  Result operator()(Tangents&&... tangents) const {
    namespace detail = capibara::detail;
    static_assert(std::tuple_size_v<Arguments> == sizeof...(Tangents), "one tangent is needed for each argument");
    Arguments packed(std::forward<Tangents>(tangents)...);
    return detail::rebuild<Result>(
        out_, detail::push_forward(*map_, in_, detail::make_structure(packed), detail::leaves_of(packed)));
  }

 private:
  std::shared_ptr<const capibara::detail::LinearMap> map_;
  TreeDef in_, out_;
};

// Maps a cotangent of the result to the cotangents of the arguments, as a tuple; made by vjp.
template <class Result, class Arguments>
class Pullback {
 public:
  using parameter_types = std::tuple<Result>;
  Pullback(std::shared_ptr<const capibara::detail::LinearMap> map, TreeDef in, TreeDef out)
      : map_(std::move(map)), in_(std::move(in)), out_(std::move(out)) {}

  Arguments operator()(const Result& cotangent) const {
    namespace detail = capibara::detail;
    return detail::rebuild<Arguments>(
        in_, detail::pull_back(*map_, out_, detail::make_structure(cotangent), detail::leaves_of(cotangent)));
  }

 private:
  std::shared_ptr<const capibara::detail::LinearMap> map_;
  TreeDef in_, out_;
};

}  // namespace jax

namespace detail {

template <template <class, class> class Map, bool with_aux, class F, class... Args>
auto linearize_call(const char* operation, const F& f, Args&&... args) {
  auto packed = pack_arguments<F>(std::forward<Args>(args)...);
  using Arguments = decltype(packed);
  using Result = result_of<F, Arguments>;
  using Value = typename ValuePart<with_aux, Result>::type;
  TreeDef in = make_structure(packed), out;
  Arrays leaves = leaves_of(packed);
  require_values(operation, in, leaves);
  std::size_t main = 0;
  LinearizedCall call = linearize_leaves(counted<with_aux, Arguments>(f, in, out, main), leaves,
                                         std::vector<bool>(leaves.size(), true), main);
  TreeDef value = ValuePart<with_aux, Result>::structure(out);
  Map<Value, Arguments> map(std::move(call.map), in, value);
  Value result = rebuild<Value>(value, std::span<const Array>(call.outputs).first(main));
  if constexpr (with_aux) {
    return std::tuple<Value, Map<Value, Arguments>, typename auxiliary<Result>::Extra>(
        std::move(result), std::move(map), rebuild_auxiliary<Result>(out, call.outputs, main));
  } else {
    return std::tuple<Value, Map<Value, Arguments>>(std::move(result), std::move(map));
  }
}

template <bool with_aux, class F, class P, class T>
auto jvp_call(const F& f, const P& primals, const T& tangents) {
  auto pack = [](const auto&... args) { return pack_arguments<F>(args...); };
  auto packed = std::apply(pack, as_tuple<P>(primals));
  auto packed_tangents = std::apply(pack, as_tuple<T>(tangents));
  using Arguments = decltype(packed);
  using Result = result_of<F, Arguments>;
  using Value = typename ValuePart<with_aux, Result>::type;
  TreeDef in = make_structure(packed), out;
  std::size_t main = 0;
  JvpCall call = jvp_leaves(counted<with_aux, Arguments>(f, in, out, main), in, make_structure(packed_tangents),
                            leaves_of(packed), leaves_of(packed_tangents), main);
  TreeDef value = ValuePart<with_aux, Result>::structure(out);
  Value result = rebuild<Value>(value, std::span<const Array>(call.outputs).first(main));
  Value tangent = rebuild<Value>(value, call.tangents);
  if constexpr (with_aux) {
    return std::tuple<Value, Value, typename auxiliary<Result>::Extra>(
        std::move(result), std::move(tangent), rebuild_auxiliary<Result>(out, call.outputs, main));
  } else {
    return std::tuple<Value, Value>(std::move(result), std::move(tangent));
  }
}

}  // namespace detail

namespace jax {

// The forward derivative: jvp(f, std::tuple(x, y), std::tuple(dx, dy)) is (f(x, y), its tangent). A single argument
// needs no tuple.
template <class F, class Primals, class Tangents>
auto jvp(F&& f, const Primals& primals, const Tangents& tangents) {
  std::decay_t<F> function(std::forward<F>(f));
  return capibara::detail::jvp_call<false>(function, primals, tangents);
}
template <class F, class Primals, class Tangents>
auto jvp(HasAux, F&& f, const Primals& primals, const Tangents& tangents) {
  std::decay_t<F> function(std::forward<F>(f));
  return capibara::detail::jvp_call<true>(function, primals, tangents);
}

// The reverse derivative: vjp(f, x, y) is (f(x, y), pullback). pullback(cotangent) is the tuple of the arguments'
// cotangents.
template <class F, class... Args>
requires(!std::is_same_v<std::decay_t<F>, HasAux>) auto vjp(F&& f, Args&&... args) {
  std::decay_t<F> function(std::forward<F>(f));
  return capibara::detail::linearize_call<Pullback, false>("vjp", function, std::forward<Args>(args)...);
}
template <class F, class... Args>
auto vjp(HasAux, F&& f, Args&&... args) {
  std::decay_t<F> function(std::forward<F>(f));
  return capibara::detail::linearize_call<Pullback, true>("vjp", function, std::forward<Args>(args)...);
}

// The derivative at a point as a linear function: linearize(f, x, y) is (f(x, y), f_jvp). f_jvp(dx, dy) does not
// recompute f.
template <class F, class... Args>
requires(!std::is_same_v<std::decay_t<F>, HasAux>) auto linearize(F&& f, Args&&... args) {
  std::decay_t<F> function(std::forward<F>(f));
  return capibara::detail::linearize_call<Pushforward, false>("linearize", function, std::forward<Args>(args)...);
}
template <class F, class... Args>
auto linearize(HasAux, F&& f, Args&&... args) {
  std::decay_t<F> function(std::forward<F>(f));
  return capibara::detail::linearize_call<Pushforward, true>("linearize", function, std::forward<Args>(args)...);
}

// The transpose of a function promised to be linear; only the types of the arguments are used.
template <class F, class... Args>
auto linear_transpose(const F& f, Args&&... args) {
  namespace detail = capibara::detail;
  auto packed = detail::pack_arguments<std::decay_t<F>>(std::forward<Args>(args)...);
  using Arguments = decltype(packed);
  using Result = detail::result_of<std::decay_t<F>, Arguments>;
  TreeDef in = detail::make_structure(packed), out;
  Types types = detail::leaf_types("linear_transpose", in, detail::leaves_of(packed));
  auto transposed = detail::transpose_leaves(detail::flattened<Arguments>(f, in, out), types);
  return [transposed, in, out](const Result& cotangent) {
    return detail::rebuild<Arguments>(in, detail::apply_transposed(*transposed, out, detail::make_structure(cotangent),
                                                                   detail::leaves_of(cotangent)));
  };
}

// ---- Jacobians ---------------------------------------------------------------------------------------------------

template <bool forward, bool with_aux, class F, int... argnums>
class Jacobian {
 public:
  using parameter_types = capibara::detail::parameters_t<F>;

  Jacobian(F f, JacobianOptions options) : f_(std::move(f)), options_(options) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    auto packed = detail::with_arrays<argnums...>(detail::pack_arguments<F>(std::forward<Args>(args)...));
    using Arguments = decltype(packed);
    using Result = detail::result_of<F, Arguments>;
    using Value = typename detail::ValuePart<with_aux, Result>::type;
    using Wrt = detail::Differentiated<Arguments, argnums...>;
    using Derivative = typename detail::substitute<Value, typename Wrt::type>::type;
    constexpr const char* name = forward ? "jacfwd" : "jacrev";
    TreeDef in = detail::make_structure(packed), out;
    Arrays leaves = detail::leaves_of(packed);
    detail::require_values(name, in, leaves);
    std::size_t main = 0;
    auto function = detail::counted<with_aux, Arguments>(f_, in, out, main);
    std::vector<bool> mask = detail::argument_leaves(name, in, {argnums...});
    detail::JacobianCall call = forward ? detail::jacfwd_leaves(function, leaves, mask, options_, main)
                                        : detail::jacrev_leaves(function, leaves, mask, options_, main);
    std::vector<std::size_t> order = detail::leaf_order<Arguments, argnums...>(in);
    Arrays entries;
    for (std::size_t i = 0; i < main; ++i) {
      for (Array& entry : detail::reordered(call.entries, order, i * order.size())) entries.push_back(std::move(entry));
    }
    TreeDef value = detail::ValuePart<with_aux, Result>::structure(out);
    auto derivative = detail::rebuild<Derivative>(value.compose(Wrt::structure(in)), entries);
    if constexpr (with_aux) {
      return std::tuple<Derivative, typename detail::auxiliary<Result>::Extra>(
          std::move(derivative), detail::rebuild_auxiliary<Result>(out, call.outputs, main));
    } else {
      return derivative;
    }
  }

 private:
  F f_;
  JacobianOptions options_;
};

}  // namespace jax

namespace detail {

template <bool forward, bool with_aux, int... argnums, class F>
auto jacobian_of(F&& f, jax::JacobianOptions options) {
  using Function = std::decay_t<F>;
  if constexpr (sizeof...(argnums) == 0)
    return jax::Jacobian<forward, with_aux, Function, 0>(std::forward<F>(f), options);
  else
    return jax::Jacobian<forward, with_aux, Function, argnums...>(std::forward<F>(f), options);
}

}  // namespace detail

namespace jax {

// The Jacobian column by column (forward mode): every leaf of the result has shape output.shape + input.shape.
template <int... argnums, class F>
auto jacfwd(F&& f, JacobianOptions options = {}) {
  return capibara::detail::jacobian_of<true, false, argnums...>(std::forward<F>(f), options);
}
template <int... argnums, class F>
auto jacfwd(HasAux, F&& f, JacobianOptions options = {}) {
  return capibara::detail::jacobian_of<true, true, argnums...>(std::forward<F>(f), options);
}

// The Jacobian row by row (reverse mode).
template <int... argnums, class F>
auto jacrev(F&& f, JacobianOptions options = {}) {
  return capibara::detail::jacobian_of<false, false, argnums...>(std::forward<F>(f), options);
}
template <int... argnums, class F>
auto jacrev(HasAux, F&& f, JacobianOptions options = {}) {
  return capibara::detail::jacobian_of<false, true, argnums...>(std::forward<F>(f), options);
}

// The matrix of second derivatives, forward over reverse.
template <int... argnums, class F>
auto hessian(F&& f, JacobianOptions options = {}) {
  return jacfwd<argnums...>(jacrev<argnums...>(std::forward<F>(f), options), options);
}

// ---- maps --------------------------------------------------------------------------------------------------------

template <class F>
class Vmapped {
 public:
  using parameter_types = capibara::detail::parameters_t<F>;

  Vmapped(F f, VmapOptions options) : f_(std::move(f)), options_(std::move(options)) {}

  template <class... Args>
  auto operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    auto packed = detail::pack_arguments<F>(std::forward<Args>(args)...);
    using Arguments = decltype(packed);
    using Result = detail::result_of<F, Arguments>;
    TreeDef in = detail::make_structure(packed), out;
    Arrays leaves = detail::leaves_of(packed);
    detail::require_values("vmap", in, leaves);
    Arrays outputs = detail::vmap_leaves(detail::flattened<Arguments>(f_, in, out), in, leaves, options_, out);
    return detail::rebuild<Result>(out, outputs);
  }

 private:
  F f_;
  VmapOptions options_;
};

// Maps a function over axes of its arguments: vmap(f), vmap(f, {.in_axes = {0, std::nullopt}, .out_axes = 1}).
template <class F>
auto vmap(F&& f, VmapOptions options = {}) {
  return Vmapped<std::decay_t<F>>(std::forward<F>(f), std::move(options));
}

// ---- residuals of the backward pass ------------------------------------------------------------------------------

struct SavedResidual {
  ArrayType type;
  std::string origin;  // argument 0, constant, literal, named x, output of sin
};

// The values that vjp(f, args...) saves: arguments first, then in the order of their equations.
template <class F, class... Args>
std::vector<SavedResidual> saved_residuals(const F& f, Args&&... args) {
  namespace detail = capibara::detail;
  auto packed = detail::pack_arguments<std::decay_t<F>>(std::forward<Args>(args)...);
  TreeDef in = detail::make_structure(packed), out;
  Types types = detail::leaf_types("saved_residuals", in, detail::leaves_of(packed));
  detail::Residuals residuals = detail::saved_residuals(detail::flattened<decltype(packed)>(f, in, out), types);
  std::vector<SavedResidual> result;
  for (std::size_t i = 0; i < residuals.types.size(); ++i) result.push_back({residuals.types[i], residuals.origins[i]});
  return result;
}

}  // namespace jax
}  // namespace capibara
