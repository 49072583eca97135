// Attributes of checkpoint, custom_jvp, custom_vjp and custom_vmap other than programs: the user's rules.
#pragma once

#include <capibara/primitive.h>

#include <functional>
#include <string>
#include <utility>

namespace capibara {

// Attribute `jvp_jaxpr_fun` of custom_jvp_call. The equation's inputs are `num_consts` captured values, then the
// arguments; the rule sees the arguments only. If the attribute `symbolic_zeros` is true, tangents may be empty
// (zero), those of the result too; else all are present, one per output of `call_jaxpr` and of its type.
class CustomJvpRule final : public Opaque {
 public:
  using Rule = std::function<JvpResult(std::span<const Array> primals, std::span<const Array> tangents)>;

  std::string name;  // of the user's rule, shown as jvp=
  Rule rule;

  CustomJvpRule(std::string n, Rule r) : name(std::move(n)), rule(std::move(r)) {}
  std::string print() const override { return name; }
};

// Attribute `bwd` of custom_lin: maps (residuals, cotangents of the outputs; empty: zero) to one cotangent per argument
// leaf, empty if zero.
class CustomBackward final : public Opaque {
 public:
  using Rule = std::function<Arrays(std::span<const Array> residuals, std::span<const Array> cotangents)>;

  std::string name;
  Rule rule;

  CustomBackward(std::string n, Rule r) : name(std::move(n)), rule(std::move(r)) {}
  std::string print() const override { return name; }
};

// Attributes `fwd_jaxpr_thunk` and `bwd` of custom_vjp_call (both hold the same object; bwd= prints backward_name).
// Forward maps the non-captured arguments to outputs and residuals, each checked against `call_jaxpr` and
// flat; `perturbed` marks the arguments that have a tangent. It also returns the backward rule for these residuals:
// state that the two share, other than arrays, belongs to one run of forward.
class CustomVjpRule final : public Opaque {
 public:
  struct Forwarded {
    Arrays outputs, residuals;
    CustomBackward::Rule backward;
  };
  using Forward = std::function<Forwarded(std::span<const Array> arguments, const std::vector<bool>& perturbed)>;

  std::string forward_name, backward_name;
  Forward forward;

  CustomVjpRule(std::string fwd_name, std::string bwd_name, Forward fwd)
      : forward_name(std::move(fwd_name)), backward_name(std::move(bwd_name)), forward(std::move(fwd)) {}
  std::string print() const override { return forward_name; }
};

// The derivative of a call with a reverse rule: forward runs now, backward is bound as the transpose of a linear map.
JvpResult jvp_by_forward(const std::shared_ptr<const CustomVjpRule>& rule, bool symbolic_zeros,
                         std::span<const Array> primals, std::span<const Array> tangents);

// Runs a function on inputs mapped at these positions, as vmap_in_place does.
struct Mapping {
  std::function<BatchResult(const std::function<Arrays(std::span<const Array>)>& function,
                            std::span<const Array> inputs, std::span<const int64_t> dims)>
      run;
  int64_t size;
};

// The rules of a call along a mapped axis, which the marked arguments carry at 0. Outputs carry it at 0 if `outputs`
// marks them, or if a rule maps them: it marks them then.
using SharedMask = std::shared_ptr<std::vector<bool>>;
std::shared_ptr<const CustomJvpRule> batched_rule(const std::shared_ptr<const CustomJvpRule>& rule,
                                                  const Mapping& mapping, const std::vector<bool>& arguments,
                                                  const SharedMask& outputs);
std::shared_ptr<const CustomVjpRule> batched_rule(const std::shared_ptr<const CustomVjpRule>& rule,
                                                  const Mapping& mapping, const std::vector<bool>& arguments,
                                                  const SharedMask& outputs);

// Attribute `policy` of remat2 (empty: nothing is saved).
class Policy final : public Opaque {
 public:
  SavePolicy save;
  std::string name;    // as jax prints it
  bool named = false;  // one of checkpoint_policies: equal names mean equal policies

  Policy(SavePolicy s, std::string n, bool is_named) : save(std::move(s)), name(std::move(n)), named(is_named) {}
  std::string print() const override { return name; }
  bool equals(const Opaque& other) const override {
    if (this == &other) return true;
    const auto* policy = dynamic_cast<const Policy*>(&other);
    return policy && named && policy->named && name == policy->name;
  }
  std::size_t hash() const override { return named ? std::hash<std::string>{}(name) : Opaque::hash(); }
};

// Attribute `rule` of custom_vmap_call: implements a batched call. Inputs marked in `batched` carry the axis at 0, and
// so do the outputs marked in the result.
class CustomVmapRule final : public Opaque {
 public:
  struct Result {
    Arrays outputs;
    std::vector<bool> batched;
  };
  using Rule =
      std::function<Result(int64_t axis_size, const std::vector<bool>& batched, std::span<const Array> inputs)>;

  std::string name;
  Rule rule;

  CustomVmapRule(std::string n, Rule r) : name(std::move(n)), rule(std::move(r)) {}
  std::string print() const override { return name; }
};

}  // namespace capibara
