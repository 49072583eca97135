// Samples of loop nests that compute several equations at once: rows, columns, shared reads, tiles, pads, random bits.
#include "backends/cpu/mutants/mutants.h"

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/execution/backend.h"
#include "backends/cpu/groups/fuse.h"
#include "backends/cpu/groups/work.h"
#include "backends/cpu/rewrites/unshare.h"
#include "program/ir/handles.h"

#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/random.h>
#include <capibara/transforms.h>

#include <algorithm>

namespace capibara::mutants {

namespace lax = jax::lax;
namespace jnp = jax::numpy;

namespace {

std::function<bool(const Program&)> has_group(bool (*holds)(const cpu::Group&)) {
  return [=](const Program& program) {
    const cpu::Fusion fusion = cpu::fuse(cpu::unshare(cpu::optimised(program)));
    return std::any_of(fusion.groups.begin(), fusion.groups.end(), holds);
  };
}

std::vector<Input> matrix(const Ints& n) {
  return {floats({n[0], n[1]}), floats({n[0], n[1]}), floats({n[1]}),
          integers({n[0]}, 0, static_cast<double>(std::max<int64_t>(1, n[1])))};
}

Array over_rows(const Array& row_values, const Array& like) {
  return lax::broadcast_in_dim(row_values, like.shape(), {0});
}
Array over_columns(const Array& columns, const Array& like) {
  return lax::broadcast_in_dim(columns, like.shape(), {1});
}
Array mean(const Array& x) {
  return lax::div(lax::reduce_sum(x, {.axes = {1}}), number(x, static_cast<double>(std::max<int64_t>(1, x.shape(1)))));
}

Array softmax(const Array& x) {
  const Array powers = lax::exp(lax::sub(x, over_rows(lax::reduce_max(x, {.axes = {1}}), x)));
  return lax::div(powers, over_rows(lax::reduce_sum(powers, {.axes = {1}}), x));
}
Array layer_norm(const Array& x, const Array& scale) {
  const Array centred = lax::sub(x, over_rows(mean(x), x)), variance = mean(lax::mul(centred, centred));
  const Array factor = lax::rsqrt(lax::add(variance, spread(variance, 1e-5)));
  return lax::mul(lax::mul(centred, over_rows(factor, x)), over_columns(scale, x));
}
Array rms_norm(const Array& x, const Array& scale) {
  const Array squares = mean(lax::mul(x, x));
  return lax::mul(lax::mul(x, over_rows(lax::rsqrt(lax::add(squares, spread(squares, 1e-6))), x)),
                  over_columns(scale, x));
}
// Cross-entropy for labels, selected by comparing column indices.
Array cross_entropy(const Array& x, const Array& labels) {
  const Array most = lax::reduce_max(x, {.axes = {1}}), shifted = lax::sub(x, over_rows(most, x));
  const Array sums = lax::log(lax::reduce_sum(lax::exp(shifted), {.axes = {1}}));
  const Array is_label = lax::eq(lax::broadcasted_iota(labels.dtype(), x.shape(), 1), over_rows(labels, x));
  const Array own = lax::reduce_sum(lax::select(is_label, shifted, spread(x, 0)), {.axes = {1}});
  return lax::sub(sums, own);
}
Array total(const Array& x) {
  Ints axes;
  for (int64_t d = 0; d < x.ndim(); ++d) axes.push_back(d);
  return lax::reduce_sum(x, {.axes = axes});
}

Recognizer rows() {
  return {
      "norms and softmax by rows",
      has_group([](const cpu::Group& group) { return !group.row_values.empty(); }),
      {{"softmax", {9, 33}, matrix, [](std::span<const Array> x) { return Arrays{softmax(x[0])}; }},
       {"gradient of softmax",
        {9, 33},
        matrix,
        [](std::span<const Array> x) {
          return Arrays{jax::grad([&](const Array& y) { return total(lax::mul(softmax(y), x[1])); })(x[0])};
        }},
       {"layer norm", {9, 33}, matrix, [](std::span<const Array> x) { return Arrays{layer_norm(x[0], x[2])}; }},
       {"gradient of layer norm",
        {9, 33},
        matrix,
        [](std::span<const Array> x) {
          const auto [dx, scale] = jax::grad<0, 1>(
              [&](const Array& y, const Array& s) { return total(lax::mul(layer_norm(y, s), x[1])); })(x[0], x[2]);
          return Arrays{dx, scale};
        }},
       {"rms norm", {9, 33}, matrix, [](std::span<const Array> x) { return Arrays{rms_norm(x[0], x[2])}; }},
       {"cross entropy", {9, 33}, matrix, [](std::span<const Array> x) { return Arrays{cross_entropy(x[0], x[3])}; }},
       {"gradient of cross entropy",
        {9, 33},
        matrix,
        [](std::span<const Array> x) {
          return Arrays{jax::grad([&](const Array& y) { return total(cross_entropy(y, x[3])); })(x[0])};
        }},
       {"of jax", {9, 33}, matrix, [](std::span<const Array> x) {
          return Arrays{jax::nn::log_softmax(x[0]), jax::nn::standardize(x[1])};
        }}}};
}

Recognizer columns() {
  return {"sums of columns beside rows",
          has_group([](const cpu::Group& group) { return !group.columns.empty(); }),
          {{"alone",
            {37, 90},
            matrix,
            [](std::span<const Array> x) {
              return Arrays{lax::reduce_sum(x[0], {.axes = {0}}), lax::reduce_max(lax::mul(x[0], x[1]), {.axes = {0}})};
            }},
           {"beside elements",
            {37, 90},
            matrix,
            [](std::span<const Array> x) {
              const Array y = lax::mul(lax::tanh(x[0]), x[1]);
              return Arrays{y, lax::reduce_sum(y, {.axes = {0}}), lax::reduce_sum(x[1], {.axes = {0}})};
            }},
           {"beside rows", {37, 90}, matrix, [](std::span<const Array> x) {
              const Array shares = softmax(x[0]), weighted = lax::mul(shares, x[1]);
              return Arrays{lax::sub(weighted, over_rows(lax::reduce_sum(weighted, {.axes = {1}}), x[0])),
                            lax::reduce_sum(weighted, {.axes = {0}})};
            }}}};
}

Recognizer shared() {
  return {"nests that share reads",
          has_group([](const cpu::Group& group) { return group.results.size() > 1 && group.row.empty(); }),
          {{"two results",
            {40, 50},
            matrix,
            [](std::span<const Array> x) {
              return Arrays{lax::add(x[0], x[1]), lax::mul(x[0], lax::exp(x[1]))};
            }},
           {"an optimizer",
            {40, 50},
            matrix,
            [](std::span<const Array> x) {
              const Array m = lax::add(lax::mul(x[0], number(x[0], 0.9)), lax::mul(x[1], number(x[0], 0.1)));
              const Array v =
                  lax::add(lax::mul(x[0], number(x[0], 0.99)), lax::mul(lax::mul(x[1], x[1]), number(x[0], 0.01)));
              return Arrays{m, v, lax::sub(x[0], lax::div(m, lax::add(lax::sqrt(lax::abs(v)), spread(v, 1e-8))))};
            }},
           {"one reads another", {40, 50}, matrix, [](std::span<const Array> x) {
              const Array a = lax::logistic(x[0]), b = lax::mul(a, x[1]);
              return Arrays{a, b, lax::sub(b, lax::rev(x[1], {0}))};
            }}}};
}

Recognizer tiles() {
  return {"transposes in tiles",
          has_group([](const cpu::Group& group) { return group.transposed; }),
          {{"sum",
            {70, 70},
            matrix,
            [](std::span<const Array> x) {
              return Arrays{lax::add(lax::transpose(x[0], {1, 0}), lax::exp(lax::transpose(x[1], {1, 0})))};
            }},
           {"rows", {70, 70}, matrix, [](std::span<const Array> x) {
              const Array y = lax::transpose(lax::mul(x[0], over_columns(x[2], x[0])), {1, 0});
              return Arrays{lax::sub(y, lax::reshape(x[1], y.shape()))};
            }}}};
}

Recognizer guards() {
  return {"pads and joins in registers",
          has_group([](const cpu::Group& group) { return group.guarded; }),
          {{"pad",
            {11, 13},
            matrix,
            [](std::span<const Array> x) {
              const Array wide = lax::pad(x[0], number(x[0], 0.5), {{1, 2, 0}, {0, 3, 0}});
              return Arrays{lax::mul(lax::tanh(wide), wide)};
            }},
           {"join", {11, 13}, matrix, [](std::span<const Array> x) {
              const Array both = lax::concatenate({x[0], lax::exp(x[1])}, 1), again = lax::concatenate({x[1], x[0]}, 1);
              return Arrays{lax::add(lax::mul(both, both), again)};
            }}}};
}

Recognizer bits() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{integers({2}, 0, 4e9, DType::uint32), floats({n[0], n[1]})};
  };
  auto applies = [](const Program& program) {
    const Program best = cpu::optimised(program);
    return std::any_of(best.equations().begin(), best.equations().end(),
                       [&](const Equation& equation) { return cpu::is_counted_bits(best, equation); });
  };
  return {"random bits where they are read",
          applies,
          {{"dropout",
            {9, 31},
            inputs,
            [](std::span<const Array> x) {
              const Array key = jax::random::wrap_key_data(x[0]),
                          keep = lax::lt(jax::random::uniform(key, {.shape = x[1].shape()}),
                                         lax::broadcast(Array(0.75f), x[1].shape()));
              return Arrays{lax::select(keep, lax::mul(x[1], number(x[1], 1.25)), spread(x[1], 0))};
            }},
           {"bytes", {9, 31}, inputs, [](std::span<const Array> x) {
              const Array key = jax::random::wrap_key_data(x[0]);
              return Arrays{jax::random::bits(key, {.shape = x[1].shape(), .dtype = DType::uint8}),
                            jax::random::bits(key, {.shape = x[1].shape()})};
            }}}};
}

Recognizer long_rows() {
  auto applies = [](const Program& program) {
    return cpu::lower_to_loops(cpu::optimised(program)).module.functions.size() > 2;
  };
  return {"long rows in pieces",
          applies,
          {{"sums",
            {2, 70001},
            [](const Ints& n) {
              return std::vector<Input>{floats({n[0], n[1]})};
            },
            [](std::span<const Array> x) {
              return Arrays{lax::reduce_sum(x[0], {.axes = {1}}), lax::reduce_max(lax::mul(x[0], x[0]), {.axes = {1}}),
                            lax::reduce_min(x[0], {.axes = {0, 1}})};
            }}}};
}

Recognizer epilogues() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1]}, DType::float64), floats({n[1], n[2]}, DType::float64),
                              floats({n[2]}, DType::float64), floats({n[0], n[2]}, DType::float64)};
  };
  auto applies = [](const Program& program) { return !cpu::lower_to_loops(cpu::optimised(program)).products.empty(); };
  Recognizer result{"loops behind matmuls",
                    applies,
                    {{"bias",
                      {600, 3, 880},
                      inputs,
                      [](std::span<const Array> x) {
                        const Array y = lax::dot_general(x[0], x[1], {{1}, {0}, {}, {}});
                        return Arrays{lax::max(lax::add(y, over_columns(x[2], y)), number(y, 0))};
                      }},
                     {"residual",
                      {600, 3, 880},
                      inputs,
                      [](std::span<const Array> x) {
                        const Array y = lax::dot_general(x[0], x[1], {{1}, {0}, {}, {}});
                        return Arrays{lax::add(lax::mul(y, number(y, 0.5)), x[3]), y};
                      }},
                     {"rows", {600, 3, 880}, inputs, [](std::span<const Array> x) {
                        return Arrays{softmax(lax::dot_general(x[0], x[1], {{1}, {0}, {}, {}}))};
                      }}}};
  result.costly = true;
  return result;
}

}  // namespace

std::vector<Recognizer> nest_recognizers() {
  return {rows(), columns(), shared(), tiles(), guards(), bits(), long_rows(), epilogues()};
}

}  // namespace capibara::mutants
