// jit: results, cache keys, static and donated arguments, stages, and jit inside other transforms.
#include "transforms/expect.h"

#include <atomic>
#include <thread>

using capibara::Array;
using capibara::Program;
using capibara::test::contains;
using capibara::test::expect_near;
using capibara::test::message_of;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

namespace {

struct Pair {
  Array a, b;
  int scale = 1;
};
CAPIBARA_TREE(Pair, a, b, scale)

Array vector(std::initializer_list<float> values) { return capibara::array<float>(values); }

TEST(Jit, ComputesWhatTheFunctionComputes) {
  auto f = jax::jit([](Array x, Array y) { return lax::sin(x) * y + 1.0f; });
  Array x = vector({0.5f, -1, 2}), y = vector({1, 2, 3});
  expect_near(f(x, y), {std::sin(0.5) + 1, 2 * std::sin(-1.0) + 1, 3 * std::sin(2.0) + 1}, {3});
}

TEST(Jit, TakesAndReturnsTrees) {
  auto f = jax::jit([](const Pair& p, std::vector<Array> xs) {
    return std::tuple(Pair{p.b, p.a + xs.at(0), p.scale}, std::map<std::string, Array>{{"sum", p.a + p.b}});
  });
  auto [pair, named] = f(Pair{vector({1}), vector({2}), 5}, std::vector<Array>{vector({10})});
  expect_near(pair.a, {2}, {1});
  expect_near(pair.b, {11}, {1});
  EXPECT_EQ(pair.scale, 5);
  expect_near(named.at("sum"), {3}, {1});
}

TEST(Jit, TracesOncePerTypeStructureAndStaticValue) {
  int traces = 0;
  auto f = jax::jit([&traces](Array x, int power) {
    ++traces;
    return lax::integer_pow(x, power);
  });
  f(vector({1, 2}), 2);
  expect_near(f(vector({3, 4}), 2), {9, 16}, {2});
  EXPECT_EQ(traces, 1);
  expect_near(f(vector({3, 4}), 3), {27, 64}, {2});
  EXPECT_EQ(traces, 2);
  f(vector({3, 4, 5}), 3);
  EXPECT_EQ(traces, 3);
  f(3.0f, 3);  // a number passed for an Array is traced, and weakly typed
  f(4.0f, 3);
  EXPECT_EQ(traces, 4);
  EXPECT_EQ(f.cache_size(), 4u);
  auto copy = f;
  copy(vector({0, 0}), 2);
  EXPECT_EQ(traces, 4);
  f.clear_cache();
  EXPECT_EQ(f.cache_size(), 0u);
  f(vector({3, 4}), 2);
  EXPECT_EQ(traces, 5);
}

std::atomic<int> global_traces = 0;
Array counted(const Array& x) {
  ++global_traces;
  return x + x;
}

TEST(Jit, FunctionsWithoutStateShareOneCache) {
  jax::jit(counted)(vector({1}));
  jax::jit(counted)(vector({2}));
  EXPECT_EQ(global_traces, 1);
  auto make = [] {
    return jax::jit([](Array x) {
      ++global_traces;
      return x - 1;
    });
  };
  make()(vector({1}));
  make()(vector({2}));
  EXPECT_EQ(global_traces, 2);
  jax::jit(counted, {.name = "other"})(vector({2}));
  EXPECT_EQ(global_traces, 3);
}

TEST(Jit, ConfigurationIsPartOfTheKey) {
  int traces = 0;
  auto f = jax::jit([&traces](Array x) {
    ++traces;
    return x * 2;
  });
  f(vector({1}));
  {
    auto scope = jax::default_matmul_precision("highest");
    f(vector({1}));
  }
  f(vector({1}));
  EXPECT_EQ(traces, 2);
}

TEST(Jit, DisabledItRunsTheFunctionItself) {
  int calls = 0;
  auto f = jax::jit([&calls](Array x) {
    ++calls;
    return x.is_tracer() ? x : x + 100.0f;
  });
  auto scope = jax::disable_jit();
  f(vector({1}));
  expect_near(f(vector({1})), {101}, {1});
  EXPECT_EQ(calls, 2);
}

TEST(Jit, StaticArgnumsMustBeHashable) {
  auto f = jax::jit([](Array x, Array y) { return x + y; }, {.static_argnums = {1}});
  EXPECT_TRUE(contains(message_of<capibara::ValueError>([&] { f(vector({1}), vector({2})); }),
                       "Non-hashable static arguments are not supported"));
  auto g = jax::jit([](Array x, std::string mode) { return mode == "double" ? x * 2 : x; }, {.static_argnums = {-1}});
  expect_near(g(vector({2}), "double"), {4}, {1});
  expect_near(g(vector({2}), "single"), {2}, {1});
  EXPECT_TRUE(contains(message_of<capibara::ValueError>(
                           [&] { jax::jit([](Array x) { return x; }, {.donate_argnums = {3}})(vector({1})); }),
                       "donate_argnums names argument 3, but the call has 1"));
}

TEST(Jit, DonatedInputsAreDeletedWhereTheirMemoryIsUsable) {
  Array x = vector({1, 2}), y = vector({3, 4});
  auto f = jax::jit([](Array a, Array b) { return a + b; }, {.donate_argnums = {0}});
  expect_near(f(x, y), {4, 6}, {2});
  EXPECT_TRUE(x.is_deleted());
  EXPECT_FALSE(y.is_deleted());
  EXPECT_TRUE(contains(message_of<capibara::RuntimeError>([&] { x.to_vector<float>(); }), "deleted"));
  testing::internal::CaptureStderr();
  auto sum = jax::jit([](Array a) { return lax::reduce_sum(a, {.axes = {0}}); }, {.donate_argnums = {0}});
  expect_near(sum(y), {7}, {});
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "Some donated buffers were not usable: float32[2]"));
  EXPECT_FALSE(y.is_deleted());
  EXPECT_TRUE(contains(message_of<capibara::RuntimeError>([&] { f(y, y); }), "passed twice"));
}

TEST(Jit, EmptyHandlesAreNamedByPath) {
  auto f = jax::jit([](Pair p) { return p.a; });
  EXPECT_TRUE(contains(message_of<capibara::TypeError>([&] {
                         f(Pair{vector({1}), Array(), 1});
                       }),
                       "argument args[0].b is an empty array handle"));
}

TEST(Jit, IsOneEquationInsideAnotherProgram) {
  auto layer = jax::jit([](Array x) { return lax::sin(x); }, {.name = "layer"});
  Program program = jax::make_jaxpr([&](Array x) { return layer(layer(x)); })(vector({1, 2}));
  ASSERT_EQ(program.equations().size(), 2u);
  EXPECT_TRUE(program.equations()[0].primitive.is("jit"));
  EXPECT_EQ(program.equations()[0].attrs.program("jaxpr").identity(),
            program.equations()[1].attrs.program("jaxpr").identity());
  auto inlined = jax::jit([](Array x) { return lax::sin(x); }, {.inline_ = true});
  Program flat = jax::make_jaxpr([&](Array x) { return inlined(x); })(vector({1, 2}));
  EXPECT_TRUE(flat.equations()[0].primitive.is("sin"));
}

TEST(Jit, CapturedTracersBecomeOperands) {
  auto outer = jax::jit([](Array x) {
    auto inner = jax::jit([x](Array y) { return x * y; });
    return inner(x + 1.0f);
  });
  expect_near(outer(vector({2, 3})), {6, 12}, {2});
  Array gradient = jax::grad([](Array x) { return jax::jit([x](Array y) { return x * y; })(x); })(3.0f);
  expect_near(gradient, {6}, {});
}

TEST(Jit, StagesShowTheirProgramsAndRejectOtherTypes) {
  auto f = jax::jit([](Array x, Array y) { return x + x; }, {.name = "double"});
  auto traced = f.trace(vector({1, 2}), vector({1}));
  EXPECT_EQ(traced.jaxpr().to_string(), "{ lambda ; a:f32[2] b:f32[1]. let c:f32[2] = add a a in (c,) }");
  EXPECT_EQ(traced.out_info().shape(), (capibara::Shape{2}));
  auto lowered = f.lower(jax::ShapeDtypeStruct({2}, capibara::DType::float32), vector({1}));
  EXPECT_TRUE(contains(lowered.as_text(), "module @jit_double"));
  auto compiled = lowered.compile();
  expect_near(compiled(vector({1, 2}), vector({1})), {2, 4}, {2});
  EXPECT_TRUE(contains(message_of<capibara::TypeError>([&] {
                         compiled(vector({1, 2, 3}), vector({1}));
                       }),
                       "Argument args[0] compiled with float32[2] and called with float32[3]"));
  EXPECT_EQ(f.eval_shape(vector({1, 2}), vector({1})).dtype(), capibara::DType::float32);
}

TEST(Jit, EvalShapeComputesNothing) {
  auto [sum, n] = jax::eval_shape([](Array x, int k) { return std::tuple(lax::dot(x, x), k); },
                                  jax::ShapeDtypeStruct({1000, 1000}, capibara::DType::bfloat16), 7);
  EXPECT_EQ(capibara::to_string(sum.type()), "bfloat16[1000,1000]");
  EXPECT_EQ(n, 7);
  EXPECT_THROW(sum.to_vector<float>(), capibara::ConcretizationTypeError);
  EXPECT_THROW(sum + 1.0f, capibara::UnexpectedTracerError);
}

TEST(Jit, LeakedTracersAreNamed) {
  Array leaked;
  jax::jit([&leaked](Array x) {
    leaked = x;
    return x;
  })(vector({1}));
  EXPECT_TRUE(contains(message_of<capibara::UnexpectedTracerError>([&] { leaked + 1.0f; }), "leaked tracer"));
}

TEST(Jit, ValuesOfTracersAreNotKnown) {
  auto f = jax::jit([](Array x) { return x ? x : -x; });
  EXPECT_THROW(f(1.0f), capibara::TracerBoolConversionError);
}

TEST(Jit, CompileTimeEvaluationSeesConcreteValues) {
  auto f = jax::jit([](Array x) {
    auto scope = jax::ensure_compile_time_eval();
    Array constant = lax::sin(vector({0, 1}));
    EXPECT_FALSE(constant.is_tracer());
    return constant;
  });
  expect_near(f(1.0f), {0, std::sin(1.0)}, {2});
}

TEST(Jit, DebugNansFindsTheOperation) {
  auto f = jax::jit([](Array x) { return lax::log(x) * 2.0f; });
  Array x = vector({-1});
  EXPECT_TRUE(std::isnan(f(x).to_vector<float>()[0]));
  auto scope = jax::debug_nans();
  testing::internal::CaptureStderr();
  std::string message = message_of<capibara::FloatingPointError>([&] { f(x); });
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "Calling the de-optimized version"));
  EXPECT_TRUE(contains(message, "invalid value (nan) encountered in log")) << message;
}

TEST(Jit, LogCompilesTellsWhatIsCompiled) {
  auto scope = jax::log_compiles();
  testing::internal::CaptureStderr();
  jax::jit([](Array x) { return x; }, {.name = "identity"})(vector({1}));
  std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(log, "Finished tracing identity for jit"));
  EXPECT_TRUE(contains(log, "Compiling jit(identity) with global shapes and types (float32[1])"));
}

TEST(Jit, NamedScopesGoWithTheEquations) {
  Program program = jax::make_jaxpr([](Array x) {
    auto outer = jax::named_scope("net");
    auto inner = jax::named_scope("layer");
    return lax::sin(x);
  })(vector({1}));
  EXPECT_NE(program.equations()[0].source.id, 0u);
}

TEST(Jit, ManyThreadsAgreeWithOne) {
  auto f = jax::jit([](Array x, int n) { return lax::sin(x) * static_cast<float>(n); });
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        int n = (t + i) % 5;
        float got = f(vector({1.0f}), n).to_vector<float>()[0];
        if (std::abs(got - std::sin(1.0f) * static_cast<float>(n)) > 1e-5f) ++wrong;
        if (t == 0 && i % 10 == 0) f.clear_cache();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CheckingLeaks, RaisesWhereATracedValueIsKept) {
  auto scope = capibara::jax::checking_leaks();
  capibara::Array kept;
  auto leaks = [&](capibara::Array x) {
    kept = capibara::jax::lax::sin(x);
    return x;
  };
  EXPECT_THROW(capibara::jax::make_jaxpr(leaks)(capibara::Array(1.0f)), capibara::UnexpectedTracerError);
  auto clean = [](capibara::Array x) { return capibara::jax::lax::sin(x) * 2.0f; };
  EXPECT_NO_THROW(capibara::jax::make_jaxpr(clean)(capibara::Array(1.0f)));
  EXPECT_EQ(capibara::jax::jit(clean)(capibara::Array(0.0f)).item<float>(), 0.0f);
}

}  // namespace
