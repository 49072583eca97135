// The transform programs: every body under every stack of transforms, with jax's values.
#pragma once

#include <capibara/capibara.h>
#include <capibara/linalg.h>
#include <capibara/solve.h>

#include "oracle/expected.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

namespace capibara::transform_programs {

namespace lax = jax::lax;

using Body = std::function<Array(Array, Array)>;
using Unary = std::function<Array(Array)>;

inline Array total(const Array& y) {
  Ints axes;
  for (int64_t i = 0; i < y.ndim(); ++i) axes.push_back(i);
  return lax::reduce_sum(y, {.axes = axes});
}

inline Array int32(int32_t value) { return capibara::array<int32_t>({value}, capibara::Shape{}); }

inline Body s(const Body& f) {
  return [f](Array x, Array w) { return total(f(x, w)); };
}

// ---- stacks: the definitions of make_transforms.py -----------------------------------------------------------------

template <class... Ts>
Arrays list(const std::tuple<Ts...>& tuple) {
  return jax::tree::leaves(tuple);
}

inline const jax::VmapOptions first_only{.in_axes = {0, std::nullopt}};

inline Unary of_x(const Body& f, const Array& w) {
  return [f, w](Array x) { return f(x, w); };
}
inline Unary jvp_along(const Body& f, const Array& w, const Array& dx) {
  return [f, w, dx](Array x) { return std::get<1>(jax::jvp(of_x(f, w), x, dx)); };
}

using Stack = std::function<Arrays(const Body&, const Arrays&)>;
inline const std::map<std::string, Stack>& stacks() {
  static const std::map<std::string, Stack> all = {
      {"call", [](const Body& f, const Arrays& a) { return Arrays{f(a[0], a[1])}; }},
      {"jit", [](const Body& f, const Arrays& a) { return Arrays{jax::jit(f, {.name = "f"})(a[0], a[1])}; }},
      {"jvp", [](const Body& f,
                 const Arrays& a) { return list(jax::jvp(f, std::tuple(a[0], a[1]), std::tuple(a[2], a[3]))); }},
      {"jvp_x", [](const Body& f, const Arrays& a) { return list(jax::jvp(of_x(f, a[1]), a[0], a[2])); }},
      {"grad", [](const Body& f, const Arrays& a) { return list(jax::grad<0, 1>(s(f))(a[0], a[1])); }},
      {"vjp", [](const Body& f, const Arrays& a) { return list(std::get<1>(jax::vjp(f, a[0], a[1]))(a[2])); }},
      {"linearize",
       [](const Body& f, const Arrays& a) {
         auto [y, tangent] = jax::linearize(f, a[0], a[1]);
         return Arrays{y, tangent(a[2], a[3])};
       }},
      {"vmap", [](const Body& f, const Arrays& a) { return Arrays{jax::vmap(f)(a[0], a[1])}; }},
      {"vmap_x", [](const Body& f, const Arrays& a) { return Arrays{jax::vmap(f, first_only)(a[0], a[1])}; }},
      {"vmap_last",
       [](const Body& f, const Arrays& a) {
         return Arrays{jax::vmap(f, {.in_axes = {-1, std::nullopt}, .out_axes = 1})(a[0], a[1])};
       }},
      {"jit_grad",
       [](const Body& f, const Arrays& a) { return list(jax::jit(jax::grad<0, 1>(s(f)), {.name = "f"})(a[0], a[1])); }},
      {"grad_jit",
       [](const Body& f, const Arrays& a) { return list(jax::grad<0, 1>(s(jax::jit(f, {.name = "f"})))(a[0], a[1])); }},
      {"vmap_grad",
       [](const Body& f, const Arrays& a) { return list(jax::vmap(jax::grad<0, 1>(s(f)), first_only)(a[0], a[1])); }},
      {"grad_vmap",
       [](const Body& f, const Arrays& a) { return list(jax::grad<0, 1>(s(jax::vmap(f, first_only)))(a[0], a[1])); }},
      {"jvp_vmap",
       [](const Body& f, const Arrays& a) {
         return list(jax::jvp(jax::vmap(f, first_only), std::tuple(a[0], a[1]), std::tuple(a[2], a[3])));
       }},
      {"vmap_jvp",
       [](const Body& f, const Arrays& a) {
         return list(jax::vmap([f, w = a[1]](Array x, Array d) { return jax::jvp(of_x(f, w), x, d); })(a[0], a[2]));
       }},
      {"vmap_vmap",
       [](const Body& f, const Arrays& a) {
         return Arrays{jax::vmap(jax::vmap(f, {.in_axes = {std::nullopt, 0}}), first_only)(a[0], a[1])};
       }},
      {"jvp_grad",
       [](const Body& f, const Arrays& a) {
         return list(jax::jvp([f, w = a[1]](Array x) { return jax::grad(s(f))(x, w); }, a[0], a[2]));
       }},
      {"grad_grad",
       [](const Body& f, const Arrays& a) { return list(jax::grad<0, 1>(s(jax::grad(s(f))))(a[0], a[1])); }},
      {"grad_jvp",
       [](const Body& f, const Arrays& a) {
         Unary along = jvp_along(f, a[1], a[2]);
         return Arrays{jax::grad([along](Array x) { return total(along(x)); })(a[0])};
       }},
      {"jvp_jvp", [](const Body& f, const Arrays& a) { return list(jax::jvp(jvp_along(f, a[1], a[2]), a[0], a[2])); }},
      {"jit_vmap_grad",
       [](const Body& f, const Arrays& a) {
         return list(jax::jit(jax::vmap(jax::grad<0, 1>(s(f)), first_only), {.name = "f"})(a[0], a[1]));
       }},
      {"vmap_jit_grad",
       [](const Body& f, const Arrays& a) {
         return list(jax::vmap(jax::jit(jax::grad<0, 1>(s(f)), {.name = "f"}), first_only)(a[0], a[1]));
       }},
      {"grad_jit_vmap",
       [](const Body& f, const Arrays& a) {
         return list(jax::grad<0, 1>(s(jax::jit(jax::vmap(f, first_only), {.name = "f"})))(a[0], a[1]));
       }},
      {"jvp_jit_grad",
       [](const Body& f, const Arrays& a) {
         auto inner = jax::jit(jax::grad(s(f)), {.name = "f"});
         return list(jax::jvp([inner, w = a[1]](Array x) { return inner(x, w); }, a[0], a[2]));
       }},
      {"grad_remat",
       [](const Body& f, const Arrays& a) { return list(jax::grad<0, 1>(s(jax::remat(f)))(a[0], a[1])); }},
      {"remat_grad",
       [](const Body& f, const Arrays& a) { return list(jax::remat(jax::grad<0, 1>(s(f)))(a[0], a[1])); }},
      {"vmap_grad_remat",
       [](const Body& f, const Arrays& a) {
         return list(jax::vmap(jax::grad<0, 1>(s(jax::remat(f))), first_only)(a[0], a[1]));
       }},
      {"jacfwd", [](const Body& f, const Arrays& a) { return Arrays{jax::jacfwd(f)(a[0], a[1])}; }},
      {"jacrev", [](const Body& f, const Arrays& a) { return Arrays{jax::jacrev(f)(a[0], a[1])}; }},
      {"hessian", [](const Body& f, const Arrays& a) { return Arrays{jax::hessian(s(f))(a[0], a[1])}; }},
  };
  return all;
}

// ---- bodies: the twins of transform_bodies.py ----------------------------------------------------------------------
//
// Python evaluates from left to right, C++ in any order: operands that trace equations are assigned to variables.

inline const auto& h() {
  static const auto function = jax::custom_jvp([](Array x, Array w) { return lax::sin(x) * w; }, "h");
  return function;
}

inline const auto& h_vjp() {
  static const auto function = jax::custom_vjp([](Array x, Array w) { return lax::sin(x) * w; }, "h_vjp");
  return function;
}

inline void define_rules() {
  h().defjvp(
      [](auto primals, auto tangents) {
        auto [x, w] = primals;
        auto [dx, dw] = tangents;
        Array y = h()(x, w), first = dx * w * 3.0, second = dw * x;
        return std::tuple(y, first + second);
      },
      "h_jvp");
  h_vjp().defvjp([](Array x, Array w) { return std::tuple(h_vjp()(x, w), std::tuple(x, w)); },
                 [](auto residuals, Array g) {
                   auto [x, w] = residuals;
                   Array dx = g * w * 2.0, dw = g * x;
                   return std::tuple(dx, dw);
                 },
                 "h_fwd", "h_bwd");
}

inline const std::map<std::string, Body>& bodies() {
  static const std::map<std::string, Body> all = {
      {"elementwise",
       [](Array x, Array w) {
         Array product = lax::sin(x) * w, power = lax::exp(x), square = w * w + 1.0;
         return product + power / square;
       }},
      {"mlp", [](Array x, Array w) { return lax::logistic(lax::dot(lax::tanh(lax::dot(x, w)), w)); }},
      {"scan_carry",
       [](Array x, Array w) {
         auto step = [](Array carry, Array a) { return std::pair(lax::sin(carry) * a + carry, std::monostate()); };
         return lax::scan(step, x, w).first;
       }},
      {"scan_reverse",
       [](Array x, Array w) {
         auto step = [x](Array carry, Array a) {
           Array scaled = carry * lax::cos(a), next = scaled + lax::exp(x);
           return std::pair(next, next * a);
         };
         return lax::scan(step, x, w, {.reverse = true}).second;
       }},
      {"scan_nested",
       [](Array x, Array w) {
         auto inner = [](Array carry, Array a) { return std::pair(carry * a + 0.5, carry); };
         auto outer = [inner, w](Array carry, Array a) {
           auto [next, ys] = lax::scan(inner, carry * a, w);
           Array sine = lax::sin(next), sum = total(ys);
           return std::pair(sine, sum);
         };
         return lax::scan(outer, x, w).second;
       }},
      {"while_loop",
       [](Array x, Array w) {
         using State = std::tuple<Array, Array>;
         auto condition = [](State state) { return std::get<0>(state) < 3; };
         auto step = [w](State state) {
           auto [i, y] = state;
           Array next = i + 1, value = lax::sin(y) * w + y;
           return State(next, value);
         };
         return std::get<1>(lax::while_loop(condition, step, State(int32(0), x)));
       }},
      {"fori_loop",
       [](Array x, Array w) {
         return lax::fori_loop(
             0, 4, [w](Array, Array y) { return lax::cos(y) * w; }, x);
       }},
      {"cond",
       [](Array x, Array w) {
         return lax::cond(
             total(x) > 0.0, [](Array a, Array b) { return lax::sin(a) * b; },
             [](Array a, Array b) { return a + lax::exp(b); }, x, w);
       }},
      {"switch",
       [](Array x, Array w) {
         using Branch = std::function<Array(const Array&, const Array&)>;
         Array index = lax::convert_element_type(total(x) * 2.0, DType::int32);
         std::vector<Branch> branches = {[](Array a, Array b) { return a * b; },
                                         [](Array a, Array b) { return lax::tanh(a) + b; },
                                         [](Array, Array b) { return b * 3.0; }};
         return lax::switch_<Array, Array, Array>(index, branches, x, w);
       }},
      {"associative_scan",
       [](Array x, Array w) {
         return lax::associative_scan([](Array a, Array b) { return lax::mul(a, b); }, x * w + 1.0);
       }},
      {"ref",
       [](Array x, Array w) {
         jax::Ref cell = jax::new_ref(x);
         cell.set(lax::sin(cell.get()) * w);
         Array first = cell.get(), second = cell.get();
         cell.set(first * second);
         return cell.get() + x;
       }},
      {"callback",
       [](Array x, Array w) {
         auto twice = [](const Arrays& in) { return Arrays{in[0] * capibara::array<float>({2}, capibara::Shape{})}; };
         return jax::pure_callback(twice, {x.type()}, {x}, {.vmap_method = "expand_dims"})[0] * w;
       }},
      {"shapes",
       [](Array x, Array w) {
         Array product = lax::dot_general(
             x, w, {.lhs_contracting = {2}, .rhs_contracting = {1}, .lhs_batch = {0}, .rhs_batch = {0}});
         Array flat = lax::reshape(lax::transpose(product, {0, 2, 1}), {6, 3});
         Array padded = lax::pad(lax::rev(flat, {1}), 0.0, {{0, 0, 0}, {1, -1, 1}});
         return lax::concatenate(
             {lax::slice(padded, {0, 0}, {6, 4}, {2, 1}), lax::expand_dims(padded(0, capibara::slice(4)), {0})}, 0);
       }},
      {"sort_pairs",
       [](Array x, Array w) {
         Arrays sorted = lax::sort(Arrays{x, w}, {.dimension = 0, .num_keys = 1});
         return sorted[0] * sorted[1];
       }},
      {"scatter_add",
       [](Array x, Array w) {
         capibara::ScatterDimensionNumbers dims{.inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}};
         Array indices = capibara::array<int32_t>({1, 1, 7}, capibara::Shape{3, 1});
         Array sine = lax::sin(x), square = w * w;
         return lax::scatter_add(sine, indices, square, dims, {.mode = lax::GatherScatterMode::fill_or_drop});
       }},
      {"gather",
       [](Array x, Array w) {
         capibara::GatherDimensionNumbers dims{.offset_dims = {1}, .collapsed_slice_dims = {0}, .start_index_map = {0}};
         Array indices = capibara::array<int32_t>({2, 0}, capibara::Shape{2, 1});
         return lax::gather(x, indices, dims, {1, 3}, {.mode = lax::GatherScatterMode::clip}) * w;
       }},
      {"convolution",
       [](Array x, Array w) {
         return lax::conv_general_dilated(x, w, {.window_strides = {2, 1}, .padding = lax::Padding{{1, 1}, {0, 1}}});
       }},
      {"custom_vjp", [](Array x, Array w) { return h_vjp()(lax::exp(x), w); }},
      {"custom_jvp", [](Array x, Array w) { return h()(lax::exp(x), w); }},
      {"remat",
       [](Array x, Array w) {
         return jax::checkpoint([](Array x, Array w) { return lax::sin(lax::sin(x) * w); })(x, w) * w;
       }},
      {"remat_dots",
       [](Array x, Array w) {
         auto f = [](Array x, Array w) { return lax::sin(lax::dot(lax::sin(lax::dot(x, w)), w)); };
         return jax::checkpoint(f, {.policy = jax::checkpoint_policies::dots_saveable})(x, w);
       }},
      {"remat_names",
       [](Array x, Array w) {
         auto f = [](Array x, Array w) {
           Array cosine = lax::cos(jax::checkpoint_name(lax::exp(x) * w, "kept")), sine = lax::sin(w);
           return cosine * sine;
         };
         return jax::checkpoint(f, {.policy = jax::checkpoint_policies::save_only_these_names({"kept"})})(x, w);
       }},
      {"cumulative",
       [](Array x, Array w) {
         Array sums = lax::cumsum(x, {.axis = 0}), largest = lax::cummax(w, {.axis = 0, .reverse = true}),
               scaled = sums * largest;
         return scaled + lax::cumprod(x, {.axis = 0});
       }},
      {"dynamic_slices",
       [](Array x, Array w) {
         Array piece = lax::dynamic_slice(w, {int32(9)}, {2});
         Array sine = lax::sin(x), square = piece * piece;
         return lax::dynamic_update_slice(sine, square, {int32(1)});
       }},
      {"reduce_max_ties", [](Array x, Array w) { return lax::reduce_max(x, {.axes = {1}}) * w; }},
      {"nested_jit",
       [](Array x, Array w) {
         auto g = jax::jit([](Array x, Array w) { return lax::sin(x) * w; }, {.name = "g"});
         return g(g(x, w), w);
       }},
      {"selection",
       [](Array x, Array w) {
         Array greater = x > w, product = x * w, larger = lax::max(x, w);
         Array picked = lax::select(greater, product, larger);
         Array clamped = lax::clamp(-0.25, picked, 0.5), smaller = lax::min(x, 0.0), sum = clamped + smaller;
         return sum + lax::abs(w);
       }},
      {"top_two", [](Array x, Array w) { return lax::top_k(x, 2).first * w; }},
      {"fourier", [](Array x, Array w) { return lax::real(lax::fft(lax::complex(x, w), lax::FftType::fft, {4})) * w; }},
      {"bfloat16_cast",
       [](Array x, Array w) {
         Array wide = lax::convert_element_type(x, DType::float32) * 2.0;
         return lax::convert_element_type(lax::sin(wide), DType::bfloat16) * w;
       }},
      {"cholesky_solve",
       [](Array x, Array w) {
         Array identity3 = capibara::array<float>({3, 0, 0, 0, 3, 0, 0, 0, 3}, capibara::Shape{3, 3});
         Array matrix = lax::dot(x, lax::transpose(x, {1, 0})) + identity3;
         Array factor = lax::linalg::cholesky(matrix, false);
         return lax::linalg::triangular_solve(factor, w, {.left_side = true, .lower = true});
       }},
      {"linear_solve",
       [](Array x, Array w) {
         Array diagonal = w * w + 1.0;
         return lax::custom_linear_solve([=](Array v) { return diagonal * v; }, x,
                                         [=](const auto&, Array b) { return b / diagonal; }, true);
       }},
      {"max_pool",
       [](Array x, Array w) {
         return lax::reduce_window_max(x, {1, 2, 2, 1}, {.strides = {1, 2, 2, 1}, .padding_mode = "VALID"}) * w;
       }},
  };
  return all;
}

// ---- the cases ---------------------------------------------------------------------------------------------------

inline const std::map<std::string, std::vector<oracle::Record>>& records() {
  static const auto all = [] {
    std::map<std::string, std::vector<oracle::Record>> by_body;
    oracle::read_records(oracle::recording("transforms.expected"), [&](const oracle::Record& record) {
      by_body[record.name.substr(0, record.name.find('/'))].push_back(record);
    });
    return by_body;
  }();
  return all;
}

struct Case {
  const oracle::Record& record;
  std::function<Arrays(Arrays)> function;
  Arrays inputs;
};

// Calls check(case) for every stack of one body.
template <class Check>
void for_each_stack(const std::string& name, Check check) {
  define_rules();
  for (const oracle::Record& record : records().at(name)) {
    const Stack& stack = stacks().at(record.name.substr(record.name.find('/') + 1));
    Case one{record, [&](Arrays in) { return stack(bodies().at(name), in); }, {}};
    for (const auto& input : record.all("input")) one.inputs.push_back(input.to_array());
    SCOPED_TRACE(record.name);
    try {
      check(one);
    } catch (const capibara::Error& error) {
      // If jax raises, we may too.
      if (!record.field("error") && !record.field("limitation")) ADD_FAILURE() << error.what();
    }
  }
}

inline std::vector<std::string> body_names() {
  std::vector<std::string> names;
  for (const auto& [name, body] : bodies()) names.push_back(name);
  return names;
}

}  // namespace capibara::transform_programs
