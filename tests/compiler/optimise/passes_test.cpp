// Each pass on small programs, with the text it must yield.
#include <capibara/capibara.h>

#include "compiler/optimise/passes.h"
#include "compiler/optimise/pipeline.h"
#include "program/trace/stage.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

namespace capibara {
namespace {

namespace lax = jax::lax;

ArrayType type(Shape shape, DType dtype = DType::float32) {
  return ArrayType{std::move(shape), dtype, false, false, {}};
}

Program traced(const FlatFunction& function, const Types& types) { return stage(function, types, "f").program; }

Array int32(int32_t value) { return array<int32_t>({value}, Shape{}); }

// ---- inline_calls ---------------------------------------------------------------------------------------------------

TEST(InlineCalls, ReplacesACallByItsEquations) {
  auto g = jax::jit([](Array x) { return lax::mul(lax::sin(x), x); }, {.name = "g"});
  Program program = traced([g](std::span<const Array> in) { return Arrays{g(g(in[0]))}; }, {type({3})});
  EXPECT_EQ(passes::inline_calls(program).to_string(),
            "{ lambda ; a:f32[3]. let\n"
            "    b:f32[3] = sin a\n"
            "    c:f32[3] = mul b a\n"
            "    d:f32[3] = sin c\n"
            "    e:f32[3] = mul d c\n"
            "  in (e,) }");
}

Array many_times(Array x, int count) {
  for (int i = 0; i < count; ++i) x = lax::sin(x);
  return x;
}

TEST(InlineCalls, KeepsALargeProgramThatIsCalledTwice) {
  auto large = jax::jit([](Array x) { return many_times(x, 31); }, {.name = "large"});
  auto small = jax::jit([](Array x) { return many_times(x, 30); }, {.name = "small"});
  Program twice =
      passes::inline_calls(traced([&](std::span<const Array> in) { return Arrays{large(large(in[0]))}; }, {type({3})}));
  EXPECT_EQ(twice.equations().size(), 2u);
  EXPECT_TRUE(twice.equations()[0].primitive.is("jit"));
  Program once =
      passes::inline_calls(traced([&](std::span<const Array> in) { return Arrays{large(in[0])}; }, {type({3})}));
  EXPECT_EQ(once.equations().size(), 31u);
  Program both =
      passes::inline_calls(traced([&](std::span<const Array> in) { return Arrays{small(small(in[0]))}; }, {type({3})}));
  EXPECT_EQ(both.equations().size(), 60u);
}

TEST(InlineCalls, GuardsWhatCheckpointComputesAgain) {
  auto f = [](std::span<const Array> in) {
    return Arrays{jax::grad(jax::checkpoint([](Array x) { return lax::sin(lax::sin(x)); }))(in[0])};
  };
  Program program = optimise(traced(f, {type({})}));
  EXPECT_EQ(program.to_string(),
            "{ lambda ; a:f32[]. let\n"
            "    b:f32[] = optimization_barrier a\n"
            "    c:f32[] = sin b\n"
            "    d:f32[] = cos b\n"
            "    e:f32[] = cos c\n"
            "    f:f32[] = mul e d\n"
            "  in (f,) }");
}

TEST(InlineCalls, TakesTheBranchThatALiteralChooses) {
  auto f = [](std::span<const Array> in) {
    return Arrays{lax::switch_<Array, Array>(
        int32(7), {[](Array x) { return lax::sin(x); }, [](Array x) { return lax::cos(x); }}, in[0])};
  };
  EXPECT_EQ(optimise(traced(f, {type({})})).to_string(), "{ lambda ; a:f32[]. let b:f32[] = cos a in (b,) }");
}

TEST(InlineCalls, UnrollsALoopOfOneStep) {
  auto f = [](std::span<const Array> in) {
    auto step = [](Array c, Array x) {
      Array sum = c + x, product = c * x;
      return std::pair(sum, product);
    };
    auto [carry, ys] = lax::scan(step, in[0], in[1]);
    return Arrays{carry, ys};
  };
  EXPECT_EQ(optimise(traced(f, {type({3}), type({1, 3})})).to_string(),
            "{ lambda ; a:f32[3] b:f32[1,3]. let\n"
            "    c:f32[3] = reshape[dimensions=None new_sizes=(3,) sharding=None] b\n"
            "    d:f32[3] = add a c\n"
            "    e:f32[3] = mul a c\n"
            "    f:f32[1,3] = reshape[dimensions=None new_sizes=(1, 3) sharding=None] e\n"
            "  in (d, f) }");
}

// ---- strengthen, compose, lift_constants ----------------------------------------------------------------------------

TEST(Strengthen, DropsWeakTypesEverywhere) {
  Program program = traced([](std::span<const Array> in) { return Arrays{in[0] + Array(1.0)}; },
                           {ArrayType{{}, DType::float32, true, false, {}}});
  Program strong = passes::strengthen(program);
  for (const ArrayType& type : strong.body().var_types) EXPECT_FALSE(type.weak_type);
  for (const Array& literal : strong.body().literals) EXPECT_FALSE(literal.weak_type());
}

TEST(Compose, ReplacesOnlyWhatTheBackendDoesNotKeep) {
  auto f = [](std::span<const Array> in) {
    Array square = lax::square(in[0]);
    return Arrays{square + lax::split(in[0], {1, 2}, 0)[0]};
  };
  Program program = traced(f, {type({3})});
  auto keep = [](const Program&, const Equation& equation) { return !equation.primitive.is("split"); };
  Program composed = passes::compose(program, keep);
  EXPECT_EQ(composed.equations()[0].primitive.name(), "square");
  for (const Equation& equation : composed.equations()) EXPECT_FALSE(equation.primitive.is("split"));
  EXPECT_EQ(passes::compose(program, {}).identity(), program.identity());
}

TEST(Compose, KeepsTheSourceOfTheOperation) {
  auto f = [](std::span<const Array> in) { return Arrays{lax::split(in[0], {1, 2}, 0)[0]}; };
  Program program = traced(f, {type({3})});
  Program composed =
      passes::compose(program, [](const Program&, const Equation& e) { return !e.primitive.is("split"); });
  for (const Equation& equation : composed.equations()) EXPECT_EQ(equation.source.id, program.equations()[0].source.id);
}

TEST(LiftConstants, LeavesNoneInsideLoops) {
  Array table = array<float>({1, 2, 3});
  ProgramBuilder body;
  Var carry = body.add_input(type({3})), x = body.add_input(type({}));
  Var sum = body.add_equation(primitive("add"), {carry, body.add_constant(table)}, {})[0];
  Var next = body.add_equation(primitive("mul"), {sum, x}, {})[0];
  body.set_outputs({next});
  ProgramBuilder builder;
  Var start = builder.add_input(type({3})), xs = builder.add_input(type({5}));
  builder.set_outputs({builder.add_equation(primitive("scan"), {start, xs},
                                            {{"jaxpr", body.finish("body")},
                                             {"length", 5},
                                             {"num_carry", 1},
                                             {"num_consts", 0},
                                             {"reverse", false},
                                             {"unroll", 1}})[0]});
  Program lifted = passes::lift_constants(builder.finish("f"));
  verify(lifted);
  EXPECT_EQ(lifted.constants().size(), 1u);
  EXPECT_EQ(lifted.equations()[0].attrs.integer("num_consts"), 1);
  EXPECT_TRUE(lifted.equations()[0].attrs.program("jaxpr").constants().empty());
}

// ---- simplify -------------------------------------------------------------------------------------------------------

// The text of the body after simplify and dce: "x" where the program returns its first input.
std::string simplified(const FlatFunction& function, const Types& types) {
  Program program = passes::dce(passes::simplify(passes::strengthen(passes::inline_calls(traced(function, types)))));
  verify(program);
  if (program.equations().empty() && program.outputs() == std::vector<Atom>{program.invars()[0]}) return "x";
  std::string text;
  for (const Equation& equation : program.equations()) text += (text.empty() ? "" : " ") + equation.primitive.name();
  return text;
}

std::string on_vector(Array (*function)(const Array&), DType dtype = DType::float32) {
  return simplified([function](std::span<const Array> in) { return Arrays{function(in[0])}; }, {type({4}, dtype)});
}

Array number(double value, DType dtype = DType::float32) { return lax::full({4}, value, dtype); }

TEST(Simplify, KnowsNeutralElements) {
  EXPECT_EQ(on_vector([](const Array& x) { return x * number(1); }), "x");
  EXPECT_EQ(on_vector([](const Array& x) { return number(1) * x; }), "x");
  EXPECT_EQ(on_vector([](const Array& x) { return lax::div(x, number(1)); }), "x");
  EXPECT_EQ(on_vector([](const Array& x) { return x + number(-0.0); }), "x");
  EXPECT_EQ(on_vector([](const Array& x) { return x - number(0.0); }), "x");
  EXPECT_EQ(on_vector([](const Array& x) { return lax::neg(lax::neg(x)); }), "x");
  EXPECT_EQ(on_vector([](const Array& x) { return x + number(0, DType::int32); }, DType::int32), "x");
  EXPECT_EQ(on_vector([](const Array& x) { return x * number(0, DType::int32); }, DType::int32), "broadcast_in_dim");
}

TEST(Simplify, KeepsWhatChangesTheSignOfZeroOrNan) {
  EXPECT_EQ(on_vector([](const Array& x) { return x + number(0.0); }), "add");
  EXPECT_EQ(on_vector([](const Array& x) { return x - number(-0.0); }), "sub");
  EXPECT_EQ(on_vector([](const Array& x) { return x * number(0.0); }), "mul");
  EXPECT_EQ(on_vector([](const Array& x) { return x - x; }), "sub");
}

TEST(Simplify, JoinsConversionsThatLoseNothing) {
  auto by = [](DType from, DType middle, DType to) {
    return simplified(
        [=](std::span<const Array> in) {
          return Arrays{lax::convert_element_type(lax::convert_element_type(in[0], middle), to)};
        },
        {type({4}, from)});
  };
  EXPECT_EQ(by(DType::bfloat16, DType::float32, DType::bfloat16), "x");
  EXPECT_EQ(by(DType::int8, DType::int32, DType::float32), "convert_element_type");
  EXPECT_EQ(by(DType::float32, DType::bfloat16, DType::float32), "convert_element_type convert_element_type");
  EXPECT_EQ(by(DType::int32, DType::float32, DType::int32), "convert_element_type convert_element_type");
  EXPECT_EQ(by(DType::int8, DType::uint32, DType::float32), "convert_element_type convert_element_type");
  EXPECT_EQ(by(DType::int8, DType::float32, DType::int16), "convert_element_type");
  EXPECT_EQ(by(DType::int8, DType::float32, DType::uint8),
            "convert_element_type convert_element_type");  // -1 becomes 0, not 255
  EXPECT_EQ(by(DType::float16, DType::bfloat16, DType::float32), "convert_element_type convert_element_type");
}

TEST(Simplify, JoinsShapes) {
  auto on = [](Array (*function)(const Array&)) {
    return simplified([function](std::span<const Array> in) { return Arrays{function(in[0])}; }, {type({2, 3})});
  };
  EXPECT_EQ(on([](const Array& x) { return lax::reshape(lax::reshape(x, {6}), {2, 3}); }), "x");
  EXPECT_EQ(on([](const Array& x) { return lax::reshape(lax::reshape(x, {6}), {3, 2}); }), "reshape");
  EXPECT_EQ(on([](const Array& x) { return lax::transpose(lax::transpose(x, {1, 0}), {1, 0}); }), "x");
  EXPECT_EQ(on([](const Array& x) { return lax::squeeze(lax::expand_dims(x, {1}), {1}); }), "x");
  EXPECT_EQ(on([](const Array& x) {
              return lax::broadcast_in_dim(lax::broadcast_in_dim(x, {4, 2, 3}, {1, 2}), {4, 5, 2, 3}, {0, 2, 3});
            }),
            "broadcast_in_dim");
  EXPECT_EQ(on([](const Array& x) {
              return lax::broadcast_in_dim(lax::expand_dims(x, {1}), {2, 4, 3}, {0, 1, 2});
            }),
            "broadcast_in_dim");
  EXPECT_EQ(on([](const Array& x) { return lax::transpose(lax::expand_dims(x, {0}), {1, 0, 2}); }), "reshape");
  EXPECT_EQ(on([](const Array& x) { return lax::slice(x, {0, 0}, {2, 3}); }), "x");
  EXPECT_EQ(on([](const Array& x) { return lax::select(x > lax::cos(x), x, x); }), "x");
}

TEST(Simplify, SinksReshapesBelowTheOperationsTheyDivide) {
  auto f = [](std::span<const Array> in) {
    Array x = lax::reshape(lax::sin(in[0]), {6}), y = lax::reshape(lax::cos(in[1]), {6});
    return Arrays{lax::exp(x * y)};
  };
  EXPECT_EQ(simplified(f, {type({2, 3}), type({2, 3})}), "sin cos mul exp reshape");
}

TEST(Simplify, TurnsTransposesIntoDimensionNumbers) {
  auto f = [](std::span<const Array> in) { return Arrays{lax::dot(lax::transpose(in[0], {1, 0}), in[1])}; };
  Program program = passes::dce(passes::simplify(traced(f, {type({3, 2}), type({3, 4})})));
  EXPECT_EQ(program.to_string(),
            "{ lambda ; a:f32[3,2] b:f32[3,4]. let\n"
            "    c:f32[2,4] = dot_general[dimension_numbers=(([0], [0]), ([], []))] a b\n"
            "  in (c,) }");
  auto g = [](std::span<const Array> in) { return Arrays{lax::transpose(lax::dot(in[0], in[1]), {1, 0})}; };
  program = passes::dce(passes::simplify(traced(g, {type({2, 3}), type({3, 4})})));
  EXPECT_EQ(program.to_string(),
            "{ lambda ; a:f32[2,3] b:f32[3,4]. let\n"
            "    c:f32[4,2] = dot_general[dimension_numbers=(([0], [1]), ([], []))] b a\n"
            "  in (c,) }");
}

// ---- fold, cse, dce -------------------------------------------------------------------------------------------------

TEST(Fold, ComputesWhatIsKnown) {
  Array three = array<float>({1, 2, 3});
  auto f = [three](std::span<const Array> in) {
    return Arrays{in[0] * lax::reduce_sum(lax::sin(three) * three, {.axes = {0}})};
  };
  Program program = passes::fold(traced(f, {type({})}));
  ASSERT_EQ(program.equations().size(), 1u);
  EXPECT_TRUE(program.equations()[0].inputs[1].is_literal());
}

TEST(Fold, LeavesLargeConstantsAndBroadcastsAlone) {
  Array large = jax::numpy::zeros({2000});
  auto f = [large](std::span<const Array> in) {
    return Arrays{in[0] + lax::sin(large), lax::full({3}, 2.0, DType::float32)};
  };
  EXPECT_EQ(passes::fold(traced(f, {type({2000})})).equations().size(), 3u);
}

TEST(Cse, MergesEqualEquationsAndLiterals) {
  auto f = [](std::span<const Array> in) { return Arrays{lax::sin(in[0]) * 2.0, lax::sin(in[0]) * 2.0}; };
  EXPECT_EQ(passes::cse(traced(f, {type({3})})).to_string(),
            "{ lambda ; a:f32[3]. let\n"
            "    b:f32[3] = sin a\n"
            "    c:f32[3] = mul b 2.0:f32[]\n"
            "  in (c, c) }");
}

TEST(Cse, KeepsBothZeros) {
  auto f = [](std::span<const Array> in) { return Arrays{in[0] + 0.0, in[0] + (-0.0)}; };
  EXPECT_EQ(passes::cse(traced(f, {type({3})})).equations().size(), 2u);
}

TEST(Cse, KeepsEffectsApart) {
  auto f = [](std::span<const Array> in) {
    jax::Ref cell = jax::new_ref(in[0]);
    Array first = cell.get();
    cell.set(first * 2.0);
    return Arrays{first, cell.get(), jax::new_ref(in[0]).get()};
  };
  Program program = traced(f, {type({3})});
  EXPECT_EQ(passes::cse(program).equations().size(), program.equations().size());
}

TEST(Dce, DropsCarriesThatFeedOnlyThemselves) {
  auto f = [](std::span<const Array> in) {
    using State = std::tuple<Array, Array, Array>;
    auto condition = [](State s) { return std::get<0>(s) < 3; };
    auto step = [](State s) { return State(std::get<0>(s) + 1, lax::sin(std::get<1>(s)), lax::cos(std::get<2>(s))); };
    return Arrays{std::get<1>(lax::while_loop(condition, step, State(int32(0), in[0], in[0])))};
  };
  Program program = passes::dce(traced(f, {type({3})}));
  verify(program);
  EXPECT_EQ(program.equations()[0].outputs.size(), 2u);
  EXPECT_EQ(program.equations()[0].attrs.program("body_jaxpr").equations().size(), 2u);
}

TEST(Dce, TakesThroughABarrierOnlyWhatIsRead) {
  auto f = [](std::span<const Array> in) {
    return Arrays{lax::optimization_barrier({lax::sin(in[0]), lax::cos(in[0])})[1]};
  };
  EXPECT_EQ(passes::dce(traced(f, {type({})})).to_string(),
            "{ lambda ; a:f32[]. let\n"
            "    b:f32[] = cos a\n"
            "    c:f32[] = optimization_barrier b\n"
            "  in (c,) }");
}

TEST(Dce, KeepsEffects) {
  auto f = [](std::span<const Array> in) {
    jax::Ref cell = jax::new_ref(in[0]);
    cell.set(lax::sin(in[0]));
    return Arrays{in[0]};
  };
  EXPECT_EQ(passes::dce(traced(f, {type({3})})).equations().size(), 3u);
}

// ---- hoist ----------------------------------------------------------------------------------------------------------

TEST(Hoist, MovesWhatEveryStepRepeats) {
  auto f = [](std::span<const Array> in) {
    Array w = in[2];
    auto step = [w](Array c, Array x) { return std::pair(c * lax::exp(w) + x, std::monostate()); };
    return Arrays{lax::scan(step, in[0], in[1]).first};
  };
  EXPECT_EQ(optimise(traced(f, {type({3}), type({5, 3}), type({3})})).to_string(),
            "{ lambda ; a:f32[3] b:f32[5,3] c:f32[3]. let\n"
            "    d:f32[3] = exp c\n"
            "    e:f32[3] = scan[\n"
            "      jaxpr={ lambda ; f:f32[3] g:f32[3] h:f32[3]. let\n"
            "          i:f32[3] = mul g f\n"
            "          j:f32[3] = add i h\n"
            "        in (j,) }\n"
            "      length=5\n"
            "      num_carry=1\n"
            "      num_consts=1\n"
            "      reverse=False\n"
            "      unroll=1\n"
            "    ] d a b\n"
            "  in (e,) }");
}

TEST(Hoist, LeavesLargeBroadcastsInside) {
  auto f = [](std::span<const Array> in) {
    Array w = in[1];
    auto step = [w](Array c, Array) { return lax::sin(c) * lax::broadcast_in_dim(w, {64, 64}, {1}); };
    return Arrays{lax::fori_loop(
        0, 9, [&](Array i, Array c) { return step(c, i); }, in[0])};
  };
  Program program = optimise(traced(f, {type({64, 64}), type({64})}));
  EXPECT_EQ(program.equations().size(), 1u);
}

TEST(Hoist, MakesUnchangedCarriesConstants) {
  auto f = [](std::span<const Array> in) {
    using State = std::tuple<Array, Array, Array>;
    auto condition = [](State s) { return std::get<0>(s) < 3; };
    auto step = [](State s) { return State(std::get<0>(s) + 1, std::get<1>(s) * std::get<2>(s), std::get<2>(s)); };
    auto [i, x, w] = lax::while_loop(condition, step, State(int32(0), in[0], in[1]));
    return Arrays{x, w};
  };
  Program program = optimise(traced(f, {type({3}), type({3})}));
  verify(program);
  EXPECT_EQ(program.outputs()[1], Atom(program.invars()[1]));
  EXPECT_EQ(program.equations()[0].attrs.integer("body_nconsts"), 1);
  EXPECT_EQ(program.equations()[0].outputs.size(), 2u);
}

// ---- the pipeline ---------------------------------------------------------------------------------------------------

TEST(Pipeline, HandlesAMillionChainedOperationsOnASmallStack) {
  ProgramBuilder builder;
  Atom x = builder.add_input(type({}));
  const Primitive sin = primitive("sin"), mul = primitive("mul");
  Atom two = builder.add_literal(array<float>({2}, Shape{}));
  for (int i = 0; i < 500000; ++i) {
    x = builder.add_equation(sin, {x}, {{"accuracy", Attr()}})[0];
    x = builder.add_equation(mul, {x, two}, {})[0];
  }
  builder.set_outputs({x});
  Program program = builder.finish("chain");
  auto begin = std::chrono::steady_clock::now();
  Program optimised;
  // A minimal stack for a thread: recursion over equations would overflow it.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  auto work = [&] { optimised = optimise(program); };
  pthread_t thread;
  auto run = [](void* argument) -> void* {
    (*static_cast<decltype(work)*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(optimised.equations().size(), 1000000u);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 60);
}

TEST(Pipeline, CallsOfOneProgramStayOneProgram) {
  auto layer = jax::jit([](Array x) { return many_times(x, 40); }, {.name = "layer"});
  auto f = [&](std::span<const Array> in) {
    Array x = in[0];
    for (int i = 0; i < 48; ++i) x = layer(x);
    return Arrays{x};
  };
  Program program = optimise(traced(f, {type({3})}));
  ASSERT_EQ(program.equations().size(), 48u);
  for (const Equation& equation : program.equations()) {
    EXPECT_EQ(equation.attrs.program("jaxpr").identity(), program.equations()[0].attrs.program("jaxpr").identity());
  }
}

TEST(Pipeline, BindsLargeConstantsAgain) {
  Array large = jax::numpy::zeros({2000}), unused = jax::numpy::ones({3000});
  auto f = [&](std::span<const Array> in) {
    (void)lax::sin(unused);
    return Arrays{in[0] + large};
  };
  Program program = optimise(traced(f, {type({2000})}));
  verify(program);
  ASSERT_EQ(program.constants().size(), 1u);
  EXPECT_EQ(program.constants()[0].buffer().data(), large.buffer().data());
  EXPECT_EQ(program.invars().size(), 1u);
}

TEST(Pipeline, WritesTheProgramAfterEachPass) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / concat("capibara_dump_", ::getpid());
  optimise(traced([](std::span<const Array> in) { return Arrays{lax::sin(in[0])}; }, {type({3})}),
           {.dump = folder.string()});
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) files += entry.is_regular_file();
  std::filesystem::remove_all(folder);
  EXPECT_EQ(files, passes::list().size() + 1);
}

TEST(Pipeline, StopsAfterTheNamedPassAndKnowsNoOther) {
  Program program = traced(
      [](std::span<const Array> in) {
        return Arrays{lax::sin(in[0]), lax::sin(in[0])};
      },
      {type({3})});
  EXPECT_EQ(optimise(program, {.after = "fold"}).equations().size(), 2u);
  EXPECT_EQ(optimise(program, {.after = "cse"}).equations().size(), 1u);
  EXPECT_THROW(optimise(program, {.after = "polish"}), ValueError);
}

}  // namespace
}  // namespace capibara
