// The user's rules under transforms: forward and backward as one linear map, rules along a mapped axis.
#include "program/derive/custom_rules.h"

#include <capibara/lax.h>

#include "program/derive/masks.h"
#include "program/derive/values.h"

namespace capibara {

JvpResult jvp_by_forward(const std::shared_ptr<const CustomVjpRule>& rule, bool symbolic_zeros,
                         std::span<const Array> primals, std::span<const Array> tangents) {
  Mask perturbed = defined_mask(tangents);
  auto [outputs, residuals, backward] = rule->forward(primals, perturbed);
  Arrays operands = residuals;
  append(operands, where(tangents, perturbed));
  Attr::List types;
  Mask with_tangent;
  for (const Array& output : outputs) {
    with_tangent.push_back(is_inexact(output.dtype()));
    if (with_tangent.back()) types.emplace_back(tangent_type(output.type()));
  }
  static const Primitive custom_lin = primitive("custom_lin");
  Arrays results = capibara::bind(custom_lin, operands,
                                  {{"bwd", std::shared_ptr<const Opaque>(std::make_shared<CustomBackward>(
                                               rule->backward_name, std::move(backward)))},
                                   {"num_res", static_cast<int64_t>(residuals.size())},
                                   {"out_types", std::move(types)},
                                   {"with_tangent", Attr::bools(with_tangent)},
                                   {"in_zeros", Attr::bools(!perturbed)},
                                   {"symbolic_zeros", symbolic_zeros}});
  return {std::move(outputs), spread(results, with_tangent)};
}

std::shared_ptr<const CustomJvpRule> batched_rule(const std::shared_ptr<const CustomJvpRule>& rule,
                                                  const Mapping& mapping, const Mask& arguments,
                                                  const SharedMask& outputs) {
  return std::make_shared<CustomJvpRule>(
      rule->name, [rule, mapping, arguments, outputs](std::span<const Array> primals, std::span<const Array> tangents) {
        Mask given = defined_mask(tangents), returned;
        Arrays operands(primals.begin(), primals.end());
        append(operands, where(tangents, given));
        std::size_t count = primals.size(), results = 0;
        std::vector<int64_t> dims = front_dims(arguments);
        for (std::size_t i = 0; i < count; ++i) {
          if (given[i]) dims.push_back(dims[i]);
        }
        BatchResult all = mapping.run(
            [&](std::span<const Array> in) {
              JvpResult jvp = rule->rule(in.first(count), spread(in.subspan(count), given));
              results = jvp.primals.size();
              returned = defined_mask(jvp.tangents);
              append(jvp.primals, where(jvp.tangents, returned));
              return jvp.primals;
            },
            operands, dims);
        outputs->resize(results, false);
        for (std::size_t i = 0, next = results; i < results; ++i) {
          const bool tangent_mapped = returned[i] && all.dims[next++] != not_mapped;
          if (tangent_mapped || all.dims[i] != not_mapped) (*outputs)[i] = true;
        }
        JvpResult jvp{Arrays(results), Arrays(results)};
        auto placed = [&](std::size_t at, bool mapped) {
          return mapped ? batch_at(all.outputs[at], all.dims[at], mapping.size) : all.outputs[at];
        };
        for (std::size_t i = 0, next = results; i < results; ++i) {
          jvp.primals[i] = placed(i, (*outputs)[i]);
          if (returned[i]) jvp.tangents[i] = placed(next++, (*outputs)[i]);
        }
        return jvp;
      });
}

namespace {

// Backward along a mapped axis, for residuals that carry it at `residual_dims`.
CustomBackward::Rule batched_backward(CustomBackward::Rule backward, const Mapping& mapping, const Mask& arguments,
                                      std::vector<int64_t> residual_dims, const SharedMask& outputs) {
  return [backward = std::move(backward), mapping, arguments, residual_dims = std::move(residual_dims), outputs](
             std::span<const Array> residuals, std::span<const Array> cotangents) {
    Arrays operands(residuals.begin(), residuals.end());
    Mask given = defined_mask(cotangents), returned;
    append(operands, where(cotangents, given));
    std::vector<int64_t> in_dims = residual_dims;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i]) in_dims.push_back((*outputs)[i] ? 0 : not_mapped);
    }
    BatchResult results = mapping.run(
        [&](std::span<const Array> in) {
          Arrays all = backward(in.first(residuals.size()), spread(in.subspan(residuals.size()), given));
          returned = defined_mask(all);
          return where(all, returned);
        },
        operands, in_dims);
    Arrays all(returned.size());
    for (std::size_t i = 0, next = 0; i < all.size(); ++i) {
      if (!returned[i]) continue;
      const Array& result = results.outputs[next];
      const int64_t dim = results.dims[next++];
      // If all lanes share an argument, its cotangent is summed over them.
      if (arguments[i])
        all[i] = batch_at(result, dim, mapping.size);
      else
        all[i] = dim == not_mapped ? result : jax::lax::reduce_sum(result, {.axes = {dim}});
    }
    return all;
  };
}

}  // namespace

std::shared_ptr<const CustomVjpRule> batched_rule(const std::shared_ptr<const CustomVjpRule>& rule,
                                                  const Mapping& mapping, const Mask& arguments,
                                                  const SharedMask& outputs) {
  auto forward = [rule, mapping, arguments, outputs](std::span<const Array> inputs, const Mask& perturbed) {
    std::size_t count = 0;
    CustomBackward::Rule backward;
    BatchResult all = mapping.run(
        [&](std::span<const Array> in) {
          CustomVjpRule::Forwarded one = rule->forward(in, perturbed);
          count = one.outputs.size();
          backward = std::move(one.backward);
          append(one.outputs, one.residuals);
          return one.outputs;
        },
        inputs, front_dims(arguments));
    outputs->resize(count, false);
    for (std::size_t i = 0; i < count; ++i) {
      if (all.dims[i] != not_mapped) (*outputs)[i] = true;
      if ((*outputs)[i]) all.outputs[i] = batch_at(all.outputs[i], all.dims[i], mapping.size);
    }
    return CustomVjpRule::Forwarded{
        part(all.outputs, 0, count), part(all.outputs, count, all.outputs.size()),
        batched_backward(std::move(backward), mapping, arguments,
                         {all.dims.begin() + static_cast<std::ptrdiff_t>(count), all.dims.end()}, outputs)};
  };
  return std::make_shared<CustomVjpRule>(rule->forward_name, rule->backward_name, forward);
}

}  // namespace capibara
