// Derivatives against closed forms: grad, jvp, vjp, linearize, Jacobians, checkpoint and custom rules, and their
// errors.
#include "transforms/expect.h"

using capibara::Array;
using capibara::DType;
using capibara::Shape;
using capibara::test::contains;
using capibara::test::expect_near;
using capibara::test::message_of;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

struct Weights {
  Array w, b;
  int steps = 1;
};
CAPIBARA_TREE(Weights, w, b, steps)

namespace {

Array vector(std::initializer_list<float> values) { return capibara::array<float>(values); }
Array total(const Array& x) {
  capibara::Ints axes;
  for (int64_t i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return lax::reduce_sum(x, {.axes = axes});
}

// ---- grad ---------------------------------------------------------------------------------------------------------

TEST(Grad, OfAScalarFunction) {
  auto f = [](Array x) { return lax::sin(x) * x; };
  expect_near(jax::grad(f)(2.0f), {std::cos(2.0) * 2 + std::sin(2.0)}, {});
  auto [value, slope] = jax::value_and_grad(f)(2.0f);
  expect_near(value, {std::sin(2.0) * 2}, {});
  expect_near(slope, {std::cos(2.0) * 2 + std::sin(2.0)}, {});
}

TEST(Grad, OfAStructIsAStructWithTheSameStaticFields) {
  auto f = [](const Weights& p, const Array& x) { return total(p.w * x * static_cast<float>(p.steps) + p.b * p.b); };
  Weights p{vector({1, 2}), vector({3, 4}), 5};
  Weights g = jax::grad(f)(p, vector({10, 20}));
  expect_near(g.w, {50, 100}, {2});
  expect_near(g.b, {6, 8}, {2});
  EXPECT_EQ(g.steps, 5);
  Weights stepped = jax::tree::map([](Array v, Array d) { return v - 0.5f * d; }, p, g);
  expect_near(stepped.b, {0, 0}, {2});
}

TEST(Grad, PositionsAreTemplateArguments) {
  auto f = [](Array x, Array y, Array z) { return x * y * z; };
  expect_near(jax::grad<1>(f)(2.0f, 3.0f, 5.0f), {10}, {});
  auto [dz, dx] = jax::grad<-1, 0>(f)(2.0f, 3.0f, 5.0f);
  expect_near(dz, {6}, {});
  expect_near(dx, {15}, {});
}

TEST(Grad, AuxiliaryDataComesBesideTheGradient) {
  auto f = [](Array x, std::string name) { return std::pair(x * x, std::map<std::string, Array>{{name, x + 1.0f}}); };
  auto [slope, aux] = jax::grad(f)(3.0f, "next");
  expect_near(slope, {6}, {});
  expect_near(aux.at("next"), {4}, {});
  auto [value_and_aux, again] = jax::value_and_grad(f)(3.0f, "next");
  expect_near(value_and_aux.first, {9}, {});
  expect_near(again, {6}, {});
}

TEST(Grad, WorksOnGenericLambdasAndUnusedArguments) {
  auto f = [](auto x, auto y) { return x * x; };
  expect_near(jax::grad(f)(3.0f, vector({1})), {6}, {});
  expect_near(jax::grad<1>(f)(Array(3.0f), vector({1, 2})), {0, 0}, {2});
}

TEST(Grad, NestsToAnyOrder) {
  auto f = [](Array x) { return lax::sin(x); };
  expect_near(jax::grad(jax::grad(f))(1.0f), {-std::sin(1.0)}, {});
  expect_near(jax::grad(jax::grad(jax::grad(f)))(1.0f), {-std::cos(1.0)}, {});
  auto nested = [](Array x) { return x * jax::grad([x](Array y) { return x * y * y; })(2.0f); };  // 4 x^2
  expect_near(jax::grad(nested)(3.0f), {24}, {});
}

TEST(Grad, RefusesWhatHasNoGradient) {
  auto identity = [](Array x) { return x; };
  EXPECT_EQ(message_of<capibara::TypeError>([&] {
              jax::grad(identity)(vector({1, 2, 3}));
            }),
            "Gradient only defined for scalar-output functions. Output had shape: (3,).");
  EXPECT_TRUE(contains(
      message_of<capibara::TypeError>([&] { jax::grad(identity)(1); }),
      "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got int32."));
  EXPECT_TRUE(contains(
      message_of<capibara::TypeError>([&] { jax::grad([](Array x) { return x.astype(DType::int32); })(1.0f); }),
      "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got int32."));
  EXPECT_TRUE(contains(message_of<capibara::TypeError>([&] { jax::grad(identity)(std::complex<float>(1, 1)); }),
                       "For holomorphic differentiation, pass holomorphic=True"));
  EXPECT_TRUE(contains(
      message_of<capibara::TypeError>([&] { jax::grad<1>([](Array x, std::string) { return x; })(1.0f, "a"); }),
      "argument 1 holds no array to differentiate"));
}

TEST(Grad, OfIntegersIsFloat0WhereAllowed) {
  Array g = jax::grad([](Array n) { return n.astype(DType::float32) * 2.0f; }, {.allow_int = true})(3);
  EXPECT_EQ(g.dtype(), DType::float0);
}

TEST(Grad, HolomorphicFunctionsHaveComplexDerivatives) {
  Array g = jax::grad([](Array z) { return z * z; }, {.holomorphic = true})(std::complex<float>(1, 2));
  EXPECT_EQ(g.dtype(), DType::complex64);
  auto value = g.item<std::complex<float>>();
  EXPECT_NEAR(value.real(), 2, 1e-6);
  EXPECT_NEAR(value.imag(), 4, 1e-6);
}

// ---- jvp, vjp, linearize ------------------------------------------------------------------------------------------

TEST(Jvp, GivesValueAndDirectionalDerivative) {
  auto f = [](Array x, Array y) { return x * y + lax::sin(x); };
  auto [value, tangent] = jax::jvp(f, std::tuple(vector({1}), vector({2})), std::tuple(vector({3}), vector({5})));
  expect_near(value, {2 + std::sin(1.0)}, {1});
  expect_near(tangent, {3 * 2 + 5 * 1 + 3 * std::cos(1.0)}, {1});
  auto [y, dy, aux] = jax::jvp(
      jax::has_aux, [](Array x) { return std::tuple(x * x, x); }, 3.0f, 1.0f);
  expect_near(dy, {6}, {});
  expect_near(aux, {3}, {});
}

TEST(Jvp, ChecksItsTangents) {
  auto f = [](Array x) { return x; };
  EXPECT_TRUE(contains(message_of<capibara::TypeError>([&] { jax::jvp(f, 1.0f, 1); }),
                       "expected tangent dtype float32, but got tangent dtype int32"));
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] { jax::jvp(f, 1.0f, vector({1})); }),
                       "Got primal shape () and tangent shape as (1,)"));
  auto g = [](std::vector<Array> xs) { return xs[0]; };
  EXPECT_TRUE(contains(
      message_of<capibara::TypeError>([&] {
        jax::jvp(g, std::tuple(std::vector<Array>{1.0f}), std::tuple(std::vector<Array>{1.0f, 2.0f}));
      }),
      "primals have tree structure PyTreeDef(([*],)) whereas tangents have tree structure PyTreeDef(([*, *],))"));
}

TEST(Vjp, PullsCotangentsBackToEveryArgument) {
  auto f = [](Array x, Array w) { return lax::dot(x, w); };
  Array x = capibara::array<float>({{1, 2}, {3, 4}}), w = capibara::array<float>({{5}, {6}});
  auto [y, pullback] = jax::vjp(f, x, w);
  expect_near(y, {17, 39}, {2, 1});
  auto [dx, dw] = pullback(capibara::array<float>({{1}, {10}}));
  expect_near(dx, {5, 6, 50, 60}, {2, 2});
  expect_near(dw, {31, 42}, {2, 1});
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&, pull = pullback] { pull(vector({1})); }),
                       "got float32[1], but expected float32[2,1]"));
}

TEST(Vjp, ResultsMayBeTrees) {
  auto f = [](Array x) { return std::tuple(x * 2.0f, std::vector<Array>{x * x}); };
  auto [y, pullback] = jax::vjp(f, 3.0f);
  auto [dx] = pullback({Array(1.0f), {Array(10.0f)}});
  expect_near(dx, {62}, {});
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&, pull = pullback] {
                         pull({Array(1.0f), {}});
                       }),
                       "at [1] expected a list of 1, got a list of 0"));
}

TEST(Linearize, RunsTheFunctionOnce) {
  int calls = 0;
  auto [y, push] = jax::linearize(
      [&calls](Array x) {
        ++calls;
        return lax::exp(x);
      },
      1.0f);
  expect_near(push(1.0f), {std::exp(1.0)}, {});
  expect_near(push(2.0f), {2 * std::exp(1.0)}, {});
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&, f = push] {
                         f(vector({1, 2}));
                       }),
                       "Got tangent aval float32[2]"));
}

TEST(LinearTranspose, TransposesWithoutAForwardPass) {
  auto transposed =
      jax::linear_transpose([](Array x, Array y) { return x * 0.5f - y * 3.0f; },
                            jax::ShapeDtypeStruct({2}, DType::float32), jax::ShapeDtypeStruct({2}, DType::float32));
  auto [dx, dy] = transposed(vector({2, 4}));
  expect_near(dx, {1, 2}, {2});
  expect_near(dy, {-6, -12}, {2});
  EXPECT_THROW(transposed(vector({1})), capibara::TypeError);
}

TEST(Jvp, HasItsPlaceInsideJitAndAroundIt) {
  auto f = jax::jit([](Array x) { return lax::sin(x); });
  auto [y, dy] = jax::jvp(f, 1.0f, 1.0f);
  expect_near(dy, {std::cos(1.0)}, {});
  auto g = jax::jit(jax::grad([f](Array x) { return f(x) * x; }));
  expect_near(g(1.0f), {std::cos(1.0) + std::sin(1.0)}, {});
}

TEST(Linearize, ThroughARefKeepsNothingAlive) {
  Array w = vector({2, 3});
  std::weak_ptr<const capibara::ArrayBody> factor = w.body();
  auto f = [&](Array x) {
    jax::Ref cell = jax::new_ref(x);
    cell.set(lax::sin(cell.get()) * w);
    cell.add(x * w);
    return total(cell.get());
  };
  expect_near(jax::grad(f)(vector({0, 0})), {4, 6}, {2});
  w = Array();
  EXPECT_TRUE(factor.expired());
}

// ---- Jacobians ----------------------------------------------------------------------------------------------------

TEST(Jacobian, ForwardAndReverseAgreeWithTheClosedForm) {
  auto f = [](Array x) { return x * x; };
  std::vector<double> expected{2, 0, 0, 0, 4, 0, 0, 0, 6};
  expect_near(jax::jacfwd(f)(vector({1, 2, 3})), expected, {3, 3});
  expect_near(jax::jacrev(f)(vector({1, 2, 3})), expected, {3, 3});
}

TEST(Jacobian, ShapesAreOutputThenInput) {
  auto f = [](Array x, Array y) { return lax::dot(x, y); };
  Array x = capibara::array<float>({{1, 2, 3}, {4, 5, 6}}), y = vector({1, 2, 3});
  auto [jx, jy] = jax::jacrev<0, 1>(f)(x, y);
  expect_near(jx, {1, 2, 3, 0, 0, 0, 0, 0, 0, 1, 2, 3}, {2, 2, 3});
  expect_near(jy, {1, 2, 3, 4, 5, 6}, {2, 3});
  auto [fx, fy] = jax::jacfwd<0, 1>(f)(x, y);
  expect_near(fx, jx.to_vector<double>(), {2, 2, 3});
  expect_near(fy, jy.to_vector<double>(), {2, 3});
}

TEST(Jacobian, OfTreesNestsInputInOutput) {
  auto f = [](const Weights& p) { return std::tuple(p.w * 2.0f, total(p.b * p.b)); };
  auto [first, second] = jax::jacfwd(f)(Weights{vector({1, 2}), vector({3}), 1});
  expect_near(first.w, {2, 0, 0, 2}, {2, 2});
  expect_near(first.b, {0, 0}, {2, 1});
  expect_near(second.b, {6}, {1});
  auto [jac, aux] = jax::jacrev(jax::has_aux, [](Array x) { return std::pair(x * x, x); })(vector({3}));
  expect_near(jac, {6}, {1, 1});
  expect_near(aux, {3}, {1});
}

TEST(Jacobian, HessianIsSymmetric) {
  auto f = [](Array x) { return lax::reduce_prod(x, {.axes = {0}}); };
  expect_near(jax::hessian(f)(vector({2, 3, 5})), {0, 5, 3, 5, 0, 2, 3, 2, 0}, {3, 3});
  EXPECT_TRUE(
      contains(message_of<capibara::TypeError>([&] { jax::jacfwd(f)(1); }), "jacfwd requires real-valued inputs"));
}

// ---- checkpoint ---------------------------------------------------------------------------------------------------

TEST(Checkpoint, ChangesNoValue) {
  auto f = [](Array x, Array w) { return total(lax::sin(lax::sin(x) * w)); };
  Array x = vector({0.5f, 1}), w = vector({2, 3});
  auto plain = jax::grad<0, 1>(f)(x, w);
  for (const auto& policy : {jax::checkpoint_policies::everything_saveable, jax::checkpoint_policies::nothing_saveable,
                             jax::checkpoint_policies::dots_saveable}) {
    auto [dx, dw] = jax::grad<0, 1>(jax::checkpoint(f, {.policy = policy}))(x, w);
    expect_near(dx, std::get<0>(plain).to_vector<double>(), {2});
    expect_near(dw, std::get<1>(plain).to_vector<double>(), {2});
  }
}

TEST(Checkpoint, PoliciesDecideWhatIsSaved) {
  auto f = [](Array x, Array w) {
    Array hidden = jax::checkpoint_name(lax::sin(lax::dot(x, w)), "hidden");
    return total(lax::sin(lax::dot(hidden, w)));
  };
  Array x = capibara::array<float>({{1, 2}, {3, 4}}), w = x;
  auto origins = [&](std::optional<jax::CheckpointPolicy> policy) {
    std::string text;
    for (const auto& residual : jax::saved_residuals(jax::checkpoint(f, {.policy = policy}), x, w))
      text += residual.origin + ";";
    return text;
  };
  EXPECT_EQ(origins(std::nullopt), "argument 0;argument 1;");
  EXPECT_EQ(origins(jax::checkpoint_policies::nothing_saveable), "argument 0;argument 1;");
  EXPECT_EQ(origins(jax::checkpoint_policies::dots_saveable),
            "argument 0;argument 1;output of dot_general;output of dot_general;");
  EXPECT_EQ(origins(jax::checkpoint_policies::save_only_these_names({"hidden"})),
            "argument 0;argument 1;named hidden;");
  EXPECT_EQ(origins(jax::checkpoint_policies::save_any_names_but_these({"hidden"})), "argument 0;argument 1;");
  EXPECT_THROW(jax::checkpoint_policies::save_and_offload_only_these_names(
                   {.names_which_can_be_saved = {"a"}, .names_which_can_be_offloaded = {"a"}}),
               capibara::ValueError);
}

TEST(Checkpoint, MayCaptureOuterTracersAndConstants) {
  Array constant = vector({2, 3});
  auto f = [&](Array x) { return total(jax::checkpoint([&, x](Array y) { return lax::sin(x * y) * constant; })(x)); };
  Array x = vector({0.5f, 1});
  expect_near(jax::grad(f)(x), {2 * 2 * 0.5 * std::cos(0.25), 3 * 2 * std::cos(1.0)}, {2});
}

// ---- custom rules -------------------------------------------------------------------------------------------------

TEST(CustomJvp, TheRuleIsUsedInBothModesAndTheFunctionOtherwise) {
  auto f = jax::custom_jvp([](Array x, Array w) { return lax::sin(x) * w; }, "h");
  f.defjvp([&f](auto primals, auto tangents) {
    auto [x, w] = primals;
    auto [dx, dw] = tangents;
    return std::tuple(f(x, w), dx * w * 3.0f + dw * x);
  });
  expect_near(f(1.0f, 2.0f), {2 * std::sin(1.0)}, {});
  auto [y, dy] = jax::jvp(f, std::tuple(1.0f, 2.0f), std::tuple(1.0f, 10.0f));
  expect_near(dy, {2 * 3 + 10}, {});
  auto [dx, dw] = jax::grad<0, 1>(f)(1.0f, 2.0f);
  expect_near(dx, {6}, {});
  expect_near(dw, {1}, {});
  expect_near(jax::jit(jax::grad(f))(1.0f, 2.0f), {6}, {});
  expect_near(jax::vmap(jax::grad(f), {.in_axes = {0, std::nullopt}})(vector({1, 2}), 2.0f), {6, 6}, {2});
}

TEST(CustomJvp, DefjvpsSumsOverTheArguments) {
  auto f = jax::custom_jvp([](Array x, Array y, int n) { return x * y * static_cast<float>(n); }, "f");
  f.defjvps([](Array t, Array, Array, Array y, int) { return t * y * 100.0f; }, nullptr, nullptr);
  expect_near(jax::grad(f)(2.0f, 3.0f, 4), {300}, {});
  expect_near(jax::grad<1>(f)(2.0f, 3.0f, 4), {0}, {});
}

TEST(CustomJvp, RulesAreChecked) {
  auto missing = jax::custom_jvp([](Array x) { return x; }, "k");
  EXPECT_EQ(message_of<capibara::NameError>([&] { missing(1.0f); }),
            "No rule defined for custom_jvp function k using defjvp.");
  auto wrong = jax::custom_jvp([](Array x) { return x; }, "k");
  wrong.defjvp([](auto primals, auto) { return std::tuple(std::get<0>(primals), vector({1, 2})); });
  EXPECT_TRUE(contains(message_of<capibara::TypeError>([&] { jax::grad(wrong)(1.0f); }),
                       "Expected float32[] (tangent type of float32[]) but got float32[2]."));
}

TEST(CustomVjp, ForwardAndBackwardRulesReplaceTheDerivative) {
  auto f = jax::custom_vjp([](Array x, Array w) { return lax::sin(x) * w; }, "h");
  f.defvjp([&f](Array x, Array w) { return std::tuple(f(x, w), std::tuple(x, w)); },
           [](auto residuals, Array g) {
             auto [x, w] = residuals;
             return std::tuple(g * w * 2.0f, g * x);
           });
  expect_near(f(1.0f, 3.0f), {3 * std::sin(1.0)}, {});
  auto [dx, dw] = jax::grad<0, 1>(f)(1.0f, 3.0f);
  expect_near(dx, {6}, {});
  expect_near(dw, {1}, {});
  expect_near(jax::jit(jax::vmap(jax::grad(f)))(vector({1, 2}), vector({3, 4})), {6, 8}, {2});
  auto summed = [&f](Array x, Array w) { return total(jax::vmap(f, {.in_axes = {0, std::nullopt}})(x, w)); };
  auto [sx, sw] = jax::grad<0, 1>(summed)(vector({1, 2}), 3.0f);
  expect_near(sx, {6, 6}, {2});
  expect_near(sw, {3}, {});
  EXPECT_TRUE(
      contains(message_of<capibara::TypeError>([&] { jax::jvp(f, std::tuple(1.0f, 3.0f), std::tuple(1.0f, 1.0f)); }),
               "can't apply forward-mode autodiff (jvp) to a custom_vjp function"));
}

TEST(CustomVjp, ZeroCotangentsTreesAndStaticArguments) {
  auto f = jax::custom_vjp([](Weights p, Array x, int n) { return p.w * x * static_cast<float>(n); }, "f");
  f.defvjp([](Weights p, Array x, int n) { return std::pair(p.w * x * static_cast<float>(n), std::tuple(p, n)); },
           [](std::tuple<Weights, int> residuals, Array g) {
             auto [p, n] = residuals;
             return std::tuple(Weights{g * static_cast<float>(n), lax::zeros_like(p.b), p.steps},
                               std::optional<Array>(), std::nullopt);
           });
  auto [dp, dx] = jax::grad<0, 1>(f)(Weights{2.0f, 3.0f, 4}, 5.0f, 6);
  expect_near(dp.w, {6}, {});
  EXPECT_EQ(dp.steps, 4);
  expect_near(dx, {0}, {});
}

TEST(CustomVjp, RulesAreChecked) {
  auto f = jax::custom_vjp([](Array x, Array y) { return x * y; }, "h");
  EXPECT_TRUE(contains(message_of<capibara::NameError>([&] { f(1.0f, 2.0f); }), "custom_vjp function h using defvjp"));
  f.defvjp([](Array x, Array y) { return std::tuple(x * y, x); },
           [](Array, Array g) {
             return std::tuple(vector({1, 2, 3}), g);
           });
  EXPECT_TRUE(contains(
      message_of<capibara::ValueError>([&] { jax::grad(f)(1.0f, 2.0f); }),
      "at output[0] the bwd rule produced an output of type float32[3] corresponding to an input of type float32[], so "
      "the shapes do not match"));
}

}  // namespace
