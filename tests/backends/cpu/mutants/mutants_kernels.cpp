// Samples of programs that run on fused operations, and on kernels chosen by the program's form.
#include "backends/cpu/mutants/mutants.h"

#include "backends/cpu/execution/backend.h"
#include "backends/cpu/kernels/kernels.h"
#include "kernels/fuse.h"
#include "program/trace/stage.h"

#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/transforms.h>

namespace capibara::mutants {

namespace lax = jax::lax;
namespace jnp = jax::numpy;

namespace {

// True for programs in which an equation of one of these names runs on a kernel of the backend.
std::function<bool(const Program&)> calls(std::vector<std::string> names) {
  return [=](const Program& program) {
    const Program best = cpu::optimised(program);
    for (const Equation& equation : best.equations()) {
      for (const std::string& name : names) {
        if (equation.primitive.is(name) && cpu::has_own_kernel(best, equation)) return true;
      }
    }
    return false;
  };
}

// ---- attention ----

enum class Seen { all, causal, window, bias, segments, mask };

Array softmax(const Array& logits) {
  const Shape shape = logits.shape();
  const Array most = lax::stop_gradient(lax::reduce_max(logits, {.axes = {3}}));
  const Array powers = lax::exp(lax::sub(logits, lax::broadcast_in_dim(most, shape, {0, 1, 2})));
  const Array sums = lax::reduce_sum(powers, {.axes = {3}});
  return lax::div(powers, lax::broadcast_in_dim(sums, shape, {0, 1, 2}));
}

// q, k: [b, n, h, d] and [b, m, h, d].
Array attend(const Array& q, const Array& k, const Array& v, const Array& more, Seen seen, bool of_library) {
  const DType dtype = q.dtype();
  Array logits = lax::mul(lax::dot_general(q, k, {{3}, {3}, {0, 2}, {0, 2}}), number(q, 0.35));  // [b, h, n, m]
  const Shape shape = logits.shape();
  const Array row = lax::broadcasted_iota(DType::int32, shape, 2),
              column = lax::broadcasted_iota(DType::int32, shape, 3);
  if (seen == Seen::bias)
    logits = lax::add(logits, lax::broadcast_in_dim(lax::convert_element_type(more, dtype), shape, {2, 3}));
  // Close to the type's minimum, or minus infinity.
  const double hidden = seen == Seen::window ? -std::numeric_limits<double>::infinity() : 0.7 * finfo(dtype).min;
  std::optional<Array> is_seen;
  if (seen == Seen::causal) is_seen = lax::ge(row, column);
  if (seen == Seen::window)
    is_seen =
        lax::bitwise_and(lax::ge(row, column), lax::lt(lax::sub(row, column), lax::broadcast(number(row, 9), shape)));
  if (seen == Seen::segments) {
    const Array segment = lax::convert_element_type(lax::index_in_dim(more, 0, 1, false), DType::int32);
    is_seen = lax::eq(lax::broadcast_in_dim(segment, shape, {2}), lax::broadcast_in_dim(segment, shape, {3}));
  }
  if (seen == Seen::mask) is_seen = lax::broadcast_in_dim(lax::gt(more, spread(more, -1)), shape, {2, 3});
  if (is_seen) logits = lax::select(*is_seen, logits, spread(logits, hidden));
  const Array shares = of_library ? jax::nn::softmax(logits) : softmax(logits);
  return lax::transpose(lax::dot_general(shares, v, {{3}, {1}, {0, 1}, {0, 2}}), {0, 2, 1, 3});
}

std::vector<Input> heads(const Ints& n) {
  return {floats({n[0], n[1], n[2], n[3]}), floats({n[0], n[1], n[2], n[3]}), floats({n[0], n[1], n[2], n[3]}),
          floats({n[1], n[1]})};
}
const Ints head_sizes = {1, 64, 2, 32};  // a kernel pays off from operands of 4096 elements

Recognizer attention() {
  Recognizer result{
      "attention", [](const Program& program) { return kernels::holds_fused_attention(cpu::optimised(program)); }, {}};
  const std::pair<const char*, Seen> kinds[] = {{"plain", Seen::all},         {"causal", Seen::causal},
                                                {"window", Seen::window},     {"bias", Seen::bias},
                                                {"segments", Seen::segments}, {"mask", Seen::mask}};
  for (const auto& [name, seen] : kinds) {
    result.samples.push_back({name, head_sizes, heads, [seen = seen](std::span<const Array> x) {
                                return Arrays{attend(x[0], x[1], x[2], x[3], seen, false)};
                              }});
  }
  result.samples.push_back(
      {"of two matrices",
       {80, 80, 64},
       [](const Ints& n) {
         return std::vector<Input>{floats({n[0], n[2]}), floats({n[1], n[2]}), floats({n[1], n[2]})};
       },
       [](std::span<const Array> x) {
         return Arrays{jnp::matmul(jax::nn::softmax(jnp::matmul(x[0], lax::transpose(x[1], {1, 0}))), x[2])};
       }});
  result.samples.push_back({"of jax", head_sizes, heads, [](std::span<const Array> x) {
                              return Arrays{jax::nn::dot_product_attention(x[0], x[1], x[2], {.is_causal = true})};
                            }});
  return result;
}

Recognizer attention_gradient() {
  Recognizer result{"gradient of attention",
                    [](const Program& program) {
                      return cpu::optimised(program).to_string().find("flash_attention_grad") != std::string::npos;
                    },
                    {}};
  const std::pair<const char*, Seen> kinds[] = {
      {"plain", Seen::all}, {"causal", Seen::causal}, {"bias", Seen::bias}, {"mask", Seen::mask}};
  for (const auto& [name, seen] : kinds) {
    result.samples.push_back({name, head_sizes, heads, [seen = seen](std::span<const Array> x) {
                                const Array more = x[3];
                                auto loss = [&](const Array& q, const Array& k, const Array& v) {
                                  const Array y = attend(q, k, v, more, seen, true);
                                  return lax::reduce_sum(lax::mul(y, lax::cos(y)), {.axes = {0, 1, 2, 3}});
                                };
                                const auto [dq, dk, dv] = jax::grad<0, 1, 2>(loss)(x[0], x[1], x[2]);
                                return Arrays{dq, dk, dv};
                              }});
  }
  return result;
}

// ---- recurrences ----

// The changed function is the combine function of an associative_scan over elements [n, channels]; the scan uses only
// two of the program's four inputs.
std::pair<Program, Program> scanned(const Program& combine, bool reverse) {
  auto with = [&](bool fused) {
    return stage(
               [&](std::span<const Array> x) {
                 const lax::detail::Combine function = [&](const Arrays& a, const Arrays& b) {
                   return evaluate_program(combine, Arrays{a[0], a[1], b[0], b[1]});
                 };
                 return lax::detail::associative_scan_flat(function, {x[0], x[1]}, 0, reverse, fused);
               },
               combine.input_types(), "recurrence")
        .program;
  };
  Program fused = with(true), tree = with(false);
  return {fused, tree};
}

Recognizer recurrence() {
  auto inputs = [](const Ints& n) {
    std::vector<Input> all(4, floats({n[0], n[1]}));
    for (Input& input : all) input.low = -1, input.high = 1;
    return all;
  };
  auto applies = [](const Program& program) {
    return scanned(program, false).first.to_string().find("linear_recurrence") != std::string::npos;
  };
  const FlatFunction combine = [](std::span<const Array> x) {
    return Arrays{lax::mul(x[0], x[2]), lax::add(lax::mul(x[2], x[1]), x[3])};
  };
  const FlatFunction exchanged = [](std::span<const Array> x) {
    return Arrays{lax::add(x[2], lax::mul(x[0], x[3])), lax::mul(x[3], x[1])};
  };
  const auto forward = [](const Program& program) { return scanned(program, false); };
  const auto backward = [](const Program& program) { return scanned(program, true); };
  return {"linear recurrence",
          applies,
          {{"forward", {13, 5}, inputs, combine, forward, true},
           {"backward", {13, 5}, inputs, combine, backward, true},
           {"exchanged", {13, 5}, inputs, exchanged, forward, true}}};
}

// ---- kernels by form ----

Recognizer windows() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1], n[2], n[3]})}; };
  const lax::WindowOptions same{.strides = {1, 1, 2, 2}, .padding_mode = "SAME"},
      dilated{.padding = lax::Padding{{0, 0}, {1, 1}, {2, 0}, {0, 0}},
              .base_dilation = {1, 1, 2, 1},
              .window_dilation = {1, 2, 1, 1}};
  return {"windows",
          calls({"reduce_window_max", "reduce_window_min", "reduce_window_sum"}),
          {{"channels first",
            {2, 3, 9, 10},
            inputs,
            [=](std::span<const Array> x) {
              return Arrays{lax::reduce_window_max(x[0], {1, 1, 3, 3}, same),
                            lax::reduce_window_sum(x[0], {1, 1, 2, 2}, same)};
            }},
           {"channels last",
            {2, 7, 8, 5},
            inputs,
            [=](std::span<const Array> x) {
              return Arrays{lax::reduce_window_min(x[0], {1, 2, 3, 1}, {.padding_mode = "SAME"}),
                            lax::reduce_window_sum(x[0], {1, 3, 2, 1})};
            }},
           {"dilated", {2, 7, 8, 5}, inputs, [=](std::span<const Array> x) {
              return Arrays{lax::reduce_window_max(x[0], {1, 2, 3, 2}, dilated),
                            lax::reduce_window_sum(x[0], {1, 2, 3, 2}, dilated)};
            }}}};
}

Recognizer pooling_gradient() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1], n[2], n[3]}), floats({n[0], n[1], n[2], n[3]})};
  };
  auto gradient = [](Ints window, lax::WindowOptions options) {
    return [=](std::span<const Array> x) {
      const Array weights = x[1];
      auto loss = [&](const Array& y) {
        const Array pooled = lax::reduce_window_max(y, window, options);
        return lax::reduce_sum(lax::mul(lax::mul(pooled, pooled), lax::slice(weights, {0, 0, 0, 0}, pooled.shape())),
                               {.axes = {0, 1, 2, 3}});
      };
      return Arrays{jax::grad(loss)(x[0])};
    };
  };
  return {
      "gradients of pooling",
      calls({"select_and_scatter_add", "select_and_scatter"}),
      {{"channels first", {2, 3, 8, 8}, inputs, gradient({1, 1, 2, 2}, {.strides = {1, 1, 2, 2}})},
       {"overlapping", {2, 3, 9, 9}, inputs, gradient({1, 1, 3, 3}, {.strides = {1, 1, 2, 2}, .padding_mode = "SAME"})},
       {"channels last", {2, 8, 8, 5}, inputs, gradient({1, 2, 2, 1}, {.strides = {1, 2, 2, 1}})}}};
}

Recognizer prefixes() {
  auto inputs = [](const Ints& n) { return std::vector<Input>{floats({n[0], n[1]}), integers({n[0], n[1]}, -9, 9)}; };
  return {"prefix sums by blocks",
          calls({"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"}),
          {{"long",
            {2, 9000},
            inputs,
            [](std::span<const Array> x) {
              return Arrays{lax::cumsum(x[0], {.axis = 1}), lax::cumsum(x[1], {.axis = 1, .reverse = true})};
            }},
           {"many",
            {70, 33},
            inputs,
            [](std::span<const Array> x) {
              return Arrays{lax::cumsum(x[0], {.axis = 0, .reverse = true}), lax::cumprod(x[0], {.axis = 1}),
                            lax::cummax(x[0], {.axis = 1})};
            }},
           {"others", {5, 130}, inputs, [](std::span<const Array> x) {
              return Arrays{lax::cumlogsumexp(x[0], {.axis = 1}), lax::cummin(x[1], {.axis = 1, .reverse = true}),
                            lax::cumprod(x[1], {.axis = 0})};
            }}}};
}

Recognizer sorts() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1]}), integers({n[0], n[1]}, -4, 4), floats({n[0], n[1]})};
  };
  return {"sorts by keys",
          calls({"sort", "top_k"}),
          {{"one",
            {3, 70},
            inputs,
            [](std::span<const Array> x) {
              return Arrays{lax::sort(x[0]), lax::sort(x[1], {.dimension = 0})};
            }},
           {"several",
            {3, 70},
            inputs,
            [](std::span<const Array> x) {
              return lax::sort({x[1], x[0], x[2]}, {.num_keys = 2});
            }},
           {"greatest", {3, 70}, inputs, [](std::span<const Array> x) {
              const int64_t k = std::min<int64_t>(5, x[0].shape(1));
              const auto [most, place] = lax::top_k(x[0], k);
              const auto [top, where] = lax::top_k(x[1], k);
              return Arrays{most, place, top, where};
            }}}};
}

Recognizer matmuls() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1], n[2]}), floats({n[0], n[2], n[3]}), floats({n[2]})};
  };
  const FlatFunction function = [](std::span<const Array> x) {
    return Arrays{lax::dot_general(x[0], x[1], {{2}, {1}, {0}, {0}}), lax::dot_general(x[0], x[2], {{2}, {0}, {}, {}})};
  };
  return {"matmuls by form",
          calls({"dot_general"}),
          {{"batched", {3, 17, 33, 20}, inputs, function},
           {"tall", {1, 150, 9, 3}, inputs, function},
           {"vectors", {4, 1, 90, 70}, inputs, function},
           {"square", {1, 64, 64, 64}, inputs, function}}};
}

Recognizer convolutions() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1], n[2], n[3]}), floats({n[4], n[1], 3, 3}), floats({2 * n[1], 1, 3, 3}),
                              floats({n[4], n[1], 1, 1})};
  };
  Recognizer result{
      "convolutions by form",
      calls({"conv_general_dilated"}),
      {{"plain",
        {2, 4, 9, 10, 6},
        inputs,
        [](std::span<const Array> x) {
          return Arrays{lax::conv_general_dilated(x[0], x[1], {.padding_mode = "SAME"}),
                        lax::conv_general_dilated(x[0], x[3], {.window_strides = {2, 2}})};
        }},
       {"depthwise",
        {2, 4, 9, 10, 6},
        inputs,
        [](std::span<const Array> x) {
          return Arrays{
              lax::conv_general_dilated(x[0], x[2], {.padding_mode = "SAME", .feature_group_count = x[0].shape(1)})};
        }},
       {"dilated", {2, 4, 9, 10, 6}, inputs, [](std::span<const Array> x) {
          return Arrays{lax::conv_general_dilated(
              x[0], x[1], {.padding = lax::Padding{{2, 1}, {0, 3}}, .lhs_dilation = {2, 1}, .rhs_dilation = {1, 2}})};
        }}}};
  // Whether non-finite weights are multiplied with the holes of a dilated input differs within XLA.
  result.samples.back().finite = true;
  return result;
}

Recognizer rows_by_index() {
  auto inputs = [](const Ints& n) {
    return std::vector<Input>{floats({n[0], n[1]}), integers({n[2], 1}, -2, static_cast<double>(n[0]) + 2),
                              floats({n[2], n[1]})};
  };
  const ScatterDimensionNumbers rows{{1}, {0}, {0}, {}, {}};
  return {"gathers and scatters of rows",
          calls({"gather", "scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul"}),
          {{"few",
            {40, 9, 300},
            inputs,
            [=](std::span<const Array> x) {
              const Array taken = lax::gather(x[0], x[1], {{1}, {0}, {0}, {}, {}}, {1, x[0].shape(1)},
                                              {.mode = lax::GatherScatterMode::fill_or_drop});
              return Arrays{lax::scatter_add(x[0], x[1], x[2], rows), lax::mul(taken, x[2])};
            }},
           {"others", {40, 9, 60}, inputs, [=](std::span<const Array> x) {
              return Arrays{lax::scatter(x[0], x[1], x[2], rows),
                            lax::scatter_max(x[0], x[1], x[2], rows, {.mode = lax::GatherScatterMode::clip}),
                            lax::scatter_mul(x[0], x[1], x[2], rows)};
            }}}};
}

}  // namespace

std::vector<Recognizer> kernel_recognizers() {
  return {attention(), attention_gradient(), recurrence(),   windows(), pooling_gradient(), prefixes(), sorts(),
          matmuls(),   convolutions(),       rows_by_index()};
}

}  // namespace capibara::mutants
