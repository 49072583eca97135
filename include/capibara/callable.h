// Callables on trees viewed as functions on lists of arrays: the glue between the typed transforms and their core.
#pragma once

#include <capibara/primitive.h>
#include <capibara/tree.h>

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace capibara {

using FlatFunction = std::function<Arrays(std::span<const Array>)>;

namespace detail {

struct Unknown {};  // the parameter types of a generic lambda

template <class T>
struct member_parameters {
  using type = Unknown;
};
#define CAPIBARA_MEMBER_PARAMETERS(qualifiers)          \
  template <class R, class C, class... A>               \
  struct member_parameters<R (C::*)(A...) qualifiers> { \
    using type = std::tuple<std::decay_t<A>...>;        \
  };
CAPIBARA_MEMBER_PARAMETERS()
CAPIBARA_MEMBER_PARAMETERS(const)
CAPIBARA_MEMBER_PARAMETERS(noexcept)
CAPIBARA_MEMBER_PARAMETERS(const noexcept)
#undef CAPIBARA_MEMBER_PARAMETERS

// The decayed parameter types of a callable as a tuple; Unknown if they depend on the call.
template <class F>
struct parameters {
  static auto find() {
    if constexpr (requires { typename F::parameter_types; }) {
      return std::type_identity<typename F::parameter_types>();
    } else if constexpr (requires { &F::operator(); }) {
      return std::type_identity<typename member_parameters<decltype(&F::operator())>::type>();
    } else {
      return std::type_identity<Unknown>();
    }
  }
  using type = typename decltype(find())::type;
};
template <class R, class... A>
struct parameters<R (*)(A...)> {
  using type = std::tuple<std::decay_t<A>...>;
};
template <class R, class... A>
struct parameters<R (*)(A...) noexcept> {
  using type = std::tuple<std::decay_t<A>...>;
};
template <class F>
using parameters_t = typename parameters<F>::type;

// How an argument of a generic lambda is kept: string literals own their text.
template <class T>
struct kept {
  using type = std::decay_t<T>;
};
template <class T>
requires std::is_same_v < std::decay_t<T>,
const char* > || std::is_same_v<std::decay_t<T>, char*> struct kept<T> { using type = std::string; };

// The arguments of one call as a tuple of values. Numbers become Arrays where f takes Arrays.
template <class F, class... Args>
auto pack_arguments(Args&&... args) {
  using Parameters = parameters_t<F>;
  if constexpr (std::is_same_v<Parameters, Unknown>) {
    return std::tuple<typename kept<Args>::type...>(std::forward<Args>(args)...);
  } else {
    constexpr bool all_given = std::tuple_size_v<Parameters> == sizeof...(Args);
    constexpr bool convertible = std::is_constructible_v<Parameters, Args...>;
    static_assert(all_given, "the transformed function takes another number of arguments");
    static_assert(!all_given || convertible,
                  "an argument has another type than the parameter of the transformed function");
    if constexpr (all_given && convertible)
      return Parameters(std::forward<Args>(args)...);
    else
      return static_cast<Parameters (*)()>(nullptr)();  // never compiled: no errors after the first
  }
}

template <class Tuple, class F>
auto call_with(const F& f, Tuple&& arguments) {
  if constexpr (std::is_void_v<decltype(std::apply(f, std::move(arguments)))>) {
    std::apply(f, std::move(arguments));
    return std::monostate();
  } else {
    return std::decay_t<decltype(std::apply(f, std::move(arguments)))>(std::apply(f, std::move(arguments)));
  }
}

// The return type of f for a tuple of arguments; std::monostate represents void.
template <class F, class Arguments>
using result_of = decltype(call_with(std::declval<const F&>(), std::declval<Arguments>()));

// f on leaves: rebuilds the arguments, calls f, flattens its result and stores the result's structure in `out`. Both
// references must outlive the result.
template <class Arguments, class F>
FlatFunction flattened(const F& f, TreeDef in, TreeDef& out) {
  return [&f, in = std::move(in), &out](std::span<const Array> leaves) {
    LeafReader reader(leaves);
    auto result = call_with(f, build_tree<Arguments>(in, reader));
    out = make_structure(result);
    Arrays flat;
    collect_leaves(result, flat);
    return flat;
  };
}

template <class T>
T rebuild(const TreeDef& structure, std::span<const Array> leaves) {
  LeafReader reader(leaves);
  return build_tree<T>(structure, reader);
}

template <class T>
T rebuild(const TreeDef& structure, Arrays&& leaves) {
  LeafReader reader(std::move(leaves));
  return build_tree<T>(structure, reader);
}

template <class T>
Arrays leaves_of(const T& tree) {
  Arrays leaves;
  collect_leaves(tree, leaves);
  return leaves;
}

// Raises TypeError `operation: argument [0].w is an empty array handle`.
void require_values(const char* operation, const TreeDef& structure, std::span<const Array> leaves);

// The first n array leaves belong to the result itself, the others to its auxiliary part.
template <class T>
struct auxiliary {
  static constexpr bool present = false;
};
template <class T, class Aux>
struct auxiliary<std::tuple<T, Aux>> {
  static constexpr bool present = true;
  using Value = T;
  using Extra = Aux;
};
template <class T, class Aux>
struct auxiliary<std::pair<T, Aux>> : auxiliary<std::tuple<T, Aux>> {};

}  // namespace detail

namespace jax {

// Indicates that a function returns (value, auxiliary data): vjp(has_aux, f, x).
struct HasAux {};
inline constexpr HasAux has_aux{};

// A placeholder with a type but no value: an argument for eval_shape, make_jaxpr and lower.
Array ShapeDtypeStruct(Shape shape, DType dtype, bool weak_type = false);

}  // namespace jax
}  // namespace capibara
