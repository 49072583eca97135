// Functions with user-defined rules: custom_jvp, custom_vjp and custom_vmap.
//
// The function must not be generic, since its rules are stored for its argument types. Arguments that hold no Array are
// passed to the rules unchanged.
#pragma once

#include <capibara/callable.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace capibara::detail {

using FlatJvpRule = std::function<JvpResult(std::span<const Array> primals, std::span<const Array> tangents)>;
using FlatForward = std::function<std::pair<Arrays, Arrays>(std::span<const Array> arguments)>;
using FlatBackward = std::function<Arrays(std::span<const Array> residuals, std::span<const Array> cotangents)>;
using FlatVmapRule = std::function<std::pair<Arrays, std::vector<bool>>(
    int64_t axis_size, const std::vector<bool>& batched, std::span<const Array> arguments)>;

struct RuleNames {
  std::string function, first, second;  // the function and its rules, as shown in programs
};

Arrays custom_jvp_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                         const RuleNames& names, FlatJvpRule rule);
// The typed rule fills `out`, from which forward and backward take the structure of arguments and result.
Arrays custom_vjp_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                         const RuleNames& names, FlatForward forward, FlatBackward backward);
Arrays custom_vmap_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                          const RuleNames& names, FlatVmapRule rule);

[[noreturn]] void throw_missing_rule(const char* kind, const char* definition, const std::string& function);
void check_rule_structure(const std::string& what, const TreeDef& expected, const TreeDef& got);  // TypeError
void check_jvp_types(const Arrays& primals, const Arrays& tangents);
// Zeros of the tangent type where a handle is empty.
Arrays filled_tangents(std::span<const Array> tangents, const Types& primal_types);
// Checks the cotangents of one argument against its types; those of integers are dropped.
void append_cotangents(Arrays& to, const RuleNames& names, std::size_t argument, const TreeDef& expected,
                       const TreeDef* got, const Arrays& leaves, std::span<const ArrayType> types);

// The state that a custom_vjp call passes from its forward to its backward rule.
struct CustomVjpCall {
  TreeDef in, out;
  Types in_types, out_types;
  std::mutex mutex;
  std::optional<TreeDef> residuals;
};

template <class T>
struct not_optional {
  using type = T;
};
template <class T>
struct not_optional<std::optional<T>> {
  using type = T;
};

}  // namespace capibara::detail

namespace capibara::jax {

// auto f = custom_jvp([](Array x) {...}); f.defjvp([](auto primals, auto tangents) { return std::tuple(y, dy); });
// The rule receives two tuples of arguments. Copies share the rule; a rule that calls f itself captures it by
// reference.
template <class F>
class CustomJvp {
  using Arguments = capibara::detail::parameters_t<F>;
  static_assert(!std::is_same_v<Arguments, capibara::detail::Unknown>,
                "custom_jvp needs a function that is not generic");
  using Result = capibara::detail::result_of<F, Arguments>;
  using Rule = std::function<std::tuple<Result, Result>(const Arguments&, const Arguments&)>;

 public:
  using parameter_types = Arguments;

  CustomJvp(F f, std::string name) : state_(std::make_shared<State>(State{std::move(f), std::move(name), "jvp", {}})) {}

  template <class UserRule>
  const CustomJvp& defjvp(UserRule rule, std::string name = "jvp") const {
    state_->rule = [rule = std::move(rule)](const Arguments& primals, const Arguments& tangents) {
      auto [primal, tangent] = rule(primals, tangents);
      return std::tuple<Result, Result>(std::move(primal), std::move(tangent));
    };
    state_->rule_name = std::move(name);
    return *this;
  }

  // One rule for each argument: rule(tangent, result, arguments...) returns its part of the tangent; nullptr: none.
  template <class... Rules>
  const CustomJvp& defjvps(Rules... rules) const {
    static_assert(std::is_same_v<Result, Array>, "defjvps needs a function that returns one Array");
    static_assert(sizeof...(Rules) == std::tuple_size_v<Arguments>, "defjvps needs one rule for each argument");
    auto self = std::weak_ptr<State>(state_);
    auto rule = [self, all = std::tuple<Rules...>(std::move(rules)...)](const Arguments& primals,
                                                                        const Arguments& tangents) {
      CustomJvp function(self.lock());
      Array result = std::apply(function, primals), sum;
      [&]<std::size_t... i>(std::index_sequence<i...>) {
        auto add = [&](const auto& one, const auto& tangent) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(one)>, std::nullptr_t>) {
            Array term = std::apply([&](const auto&... primal) { return one(tangent, result, primal...); }, primals);
            sum = sum.defined() ? sum + term : term;
          }
        };
        (add(std::get<i>(all), std::get<i>(tangents)), ...);
      }
      (std::index_sequence_for<Rules...>());
      if (!sum.defined()) sum = capibara::detail::filled_tangents(Arrays(1), {result.type()})[0];
      return std::tuple<Array, Array>(result, sum);
    };
    return defjvp(std::move(rule), state_->name + "_jvp");
  }

  template <class... Args>
  Result operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    if (!state_->rule) detail::throw_missing_rule("custom_jvp", "defjvp", state_->name);
    Arguments packed = detail::pack_arguments<F>(std::forward<Args>(args)...);
    TreeDef in = detail::make_structure(packed), out;
    detail::FlatJvpRule rule = [state = state_, in](std::span<const Array> primals, std::span<const Array> tangents) {
      auto [primal, tangent] =
          state->rule(detail::rebuild<Arguments>(in, primals), detail::rebuild<Arguments>(in, tangents));
      detail::check_rule_structure(
          "Custom JVP rule " + state->rule_name + " for function " + state->name +
              " must produce primal and tangent outputs with equal container (pytree) structures",
          detail::make_structure(primal), detail::make_structure(tangent));
      JvpResult result{detail::leaves_of(primal), detail::leaves_of(tangent)};
      detail::check_jvp_types(result.primals, result.tangents);
      return result;
    };
    Arrays outputs =
        detail::custom_jvp_leaves(detail::flattened<Arguments>(state_->f, in, out), in, detail::leaves_of(packed),
                                  {state_->name, state_->rule_name, {}}, std::move(rule));
    return detail::rebuild<Result>(out, outputs);
  }

 private:
  struct State {
    F f;
    std::string name, rule_name;
    Rule rule;
  };
  explicit CustomJvp(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// A function whose forward derivative is set by defjvp.
template <class F>
auto custom_jvp(F&& f, std::string name = "fn") {
  return CustomJvp<std::decay_t<F>>(std::forward<F>(f), std::move(name));
}

// f.defvjp(forward, backward): forward(arguments...) is (result, residuals); backward(residuals, cotangent) is a tuple
// with one cotangent for each argument, std::nullopt (or an empty std::optional) for a zero cotangent.
template <class F>
class CustomVjp {
  using Arguments = capibara::detail::parameters_t<F>;
  static_assert(!std::is_same_v<Arguments, capibara::detail::Unknown>,
                "custom_vjp needs a function that is not generic");
  using Result = capibara::detail::result_of<F, Arguments>;
  using Call = capibara::detail::CustomVjpCall;

 public:
  using parameter_types = Arguments;

  CustomVjp(F f, std::string name)
      : state_(std::make_shared<State>(State{std::move(f), {std::move(name), "fwd", "bwd"}, {}, {}})) {}

  template <class Forward, class Backward>
  const CustomVjp& defvjp(Forward forward, Backward backward, std::string forward_name = "fwd",
                          std::string backward_name = "bwd") const {
    namespace detail = capibara::detail;
    using Pair = detail::result_of<Forward, Arguments>;
    static_assert(detail::auxiliary<Pair>::present,
                  "the forward rule must return a pair or a tuple of (result, residuals)");
    using Kept = typename detail::auxiliary<Pair>::Extra;
    state_->names.first = std::move(forward_name);
    state_->names.second = std::move(backward_name);
    state_->forward = [forward = std::move(forward)](const detail::RuleNames& names, Call& call,
                                                     std::span<const Array> leaves) {
      auto [result, kept] = detail::call_with(forward, detail::rebuild<Arguments>(call.in, leaves));
      detail::check_rule_structure(
          "Custom VJP fwd rule " + names.first + " for function " + names.function +
              " must produce a pair whose first element has the structure of the function's output",
          call.out, detail::make_structure(result));
      {
        std::lock_guard lock(call.mutex);
        call.residuals = detail::make_structure(kept);
      }
      return std::pair(detail::leaves_of(result), detail::leaves_of(kept));
    };
    state_->backward = [backward = std::move(backward)](const detail::RuleNames& names, Call& call,
                                                        std::span<const Array> residuals,
                                                        std::span<const Array> cotangents) {
      TreeDef kept;
      {
        std::lock_guard lock(call.mutex);
        kept = call.residuals.value();
      }
      auto results = backward(detail::rebuild<Kept>(kept, residuals),
                              detail::rebuild<Result>(call.out, detail::filled_tangents(cotangents, call.out_types)));
      return flatten_cotangents(names, call, results);
    };
    return *this;
  }

  template <class... Args>
  Result operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    if (!state_->forward) detail::throw_missing_rule("custom_vjp", "defvjp", state_->names.function);
    Arguments packed = detail::pack_arguments<F>(std::forward<Args>(args)...);
    auto call = std::make_shared<Call>();
    call->in = detail::make_structure(packed);
    Arrays leaves = detail::leaves_of(packed);
    for (const Array& leaf : leaves) {
      if (leaf.defined()) call->in_types.push_back(leaf.type());
    }
    auto flat = detail::flattened<Arguments>(state_->f, call->in, call->out);
    auto function = [&](std::span<const Array> inputs) {
      Arrays outputs = flat(inputs);
      for (const Array& output : outputs) call->out_types.push_back(output.type());
      return outputs;
    };
    Arrays outputs = detail::custom_vjp_leaves(
        function, call->in, leaves, state_->names,
        [state = state_, call](std::span<const Array> arguments) {
          return state->forward(state->names, *call, arguments);
        },
        [state = state_, call](std::span<const Array> residuals, std::span<const Array> cotangents) {
          return state->backward(state->names, *call, residuals, cotangents);
        });
    return detail::rebuild<Result>(call->out, outputs);
  }

 private:
  template <class Results>
  static Arrays flatten_cotangents(const capibara::detail::RuleNames& names, const Call& call, const Results& results) {
    namespace detail = capibara::detail;
    if constexpr (!detail::is_tuple<Results>::value) {
      static_assert(std::tuple_size_v<Arguments> == 1,
                    "the backward rule must return a tuple with one cotangent for each argument");
      return flatten_cotangents(names, call, std::tuple<Results>(results));
    } else {
      static_assert(std::tuple_size_v<Results> == std::tuple_size_v<Arguments>,
                    "the backward rule must return a tuple with one cotangent for each argument");
      Arrays flat;
      std::size_t argument = 0, position = 0;
      auto append = [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        const TreeDef& expected = call.in.children()[argument];
        auto types = std::span<const ArrayType>(call.in_types).subspan(position, expected.num_leaves());
        bool zero = detail::is_none<Value>;
        if constexpr (detail::is_optional<Value>::value) zero = !value.has_value();
        if (zero || expected.num_leaves() == 0) {
          flat.resize(flat.size() + expected.num_leaves());
        } else {
          TreeDef got = detail::make_structure(value);
          detail::append_cotangents(flat, names, argument, expected, &got, detail::leaves_of(value), types);
        }
        ++argument;
        position += expected.num_leaves();
      };
      std::apply([&](const auto&... value) { (append(value), ...); }, results);
      return flat;
    }
  }

  struct State {
    F f;
    capibara::detail::RuleNames names;
    std::function<std::pair<Arrays, Arrays>(const capibara::detail::RuleNames&, Call&, std::span<const Array>)> forward;
    std::function<Arrays(const capibara::detail::RuleNames&, Call&, std::span<const Array>, std::span<const Array>)>
        backward;
  };
  std::shared_ptr<State> state_;
};

// A function whose reverse derivative is set by defvjp(forward, backward).
template <class F>
auto custom_vjp(F&& f, std::string name = "fn") {
  return CustomVjp<std::decay_t<F>>(std::forward<F>(f), std::move(name));
}

namespace custom_batching {

// f.def_vmap(rule): rule(axis size, which leaves are batched, arguments...) is (result, which leaves of it are
// batched); a batched array has the axis in front. The second element may be a single bool for all leaves.
template <class F>
class CustomVmap {
  using Arguments = capibara::detail::parameters_t<F>;
  static_assert(!std::is_same_v<Arguments, capibara::detail::Unknown>,
                "custom_vmap needs a function that is not generic");
  using Result = capibara::detail::result_of<F, Arguments>;

 public:
  using parameter_types = Arguments;

  CustomVmap(F f, std::string name)
      : state_(std::make_shared<State>(State{std::move(f), {std::move(name), "rule", {}}, {}})) {}

  template <class UserRule>
  const CustomVmap& def_vmap(UserRule rule, std::string name = "rule") const {
    namespace detail = capibara::detail;
    state_->names.first = std::move(name);
    state_->rule = [rule = std::move(rule)](const TreeDef& in, int64_t size, const std::vector<bool>& batched,
                                            std::span<const Array> leaves) {
      auto [result, mask] = std::apply([&](const auto&... arguments) { return rule(size, batched, arguments...); },
                                       detail::rebuild<Arguments>(in, leaves));
      Arrays flat = detail::leaves_of(result);
      if constexpr (std::is_same_v<std::decay_t<decltype(mask)>, bool>) {
        return std::pair(flat, std::vector<bool>(flat.size(), mask));
      } else {
        return std::pair(flat, std::vector<bool>(mask));
      }
    };
    return *this;
  }

  template <class... Args>
  Result operator()(Args&&... args) const {
    namespace detail = capibara::detail;
    if (!state_->rule) detail::throw_missing_rule("custom_vmap", "def_vmap", state_->names.function);
    Arguments packed = detail::pack_arguments<F>(std::forward<Args>(args)...);
    TreeDef in = detail::make_structure(packed), out;
    detail::FlatVmapRule rule = [state = state_, in](int64_t size, const std::vector<bool>& batched,
                                                     std::span<const Array> leaves) {
      return state->rule(in, size, batched, leaves);
    };
    Arrays outputs = detail::custom_vmap_leaves(detail::flattened<Arguments>(state_->f, in, out), in,
                                                detail::leaves_of(packed), state_->names, std::move(rule));
    return detail::rebuild<Result>(out, outputs);
  }

 private:
  struct State {
    F f;
    capibara::detail::RuleNames names;
    std::function<std::pair<Arrays, std::vector<bool>>(const TreeDef&, int64_t, const std::vector<bool>&,
                                                       std::span<const Array>)>
        rule;
  };
  std::shared_ptr<State> state_;
};

// A function whose batching rule is set by def_vmap.
template <class F>
auto custom_vmap(F&& f, std::string name = "fn") {
  return CustomVmap<std::decay_t<F>>(std::forward<F>(f), std::move(name));
}

}  // namespace custom_batching
}  // namespace capibara::jax
