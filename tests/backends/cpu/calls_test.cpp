// Functions that call others: regions, parallel regions, host kernels, status codes, cancellation; targets, printing.
#include "backends/cpu/generated_code.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace capibara::cpu {
namespace {

using Carried = std::span<const Value>;
const std::vector<Value> nothing;

// Function 1 of the module: out[i] = in[i] + add, parallel over `extent`.
void add_region(Module& module, int64_t extent, double cost, float add) {
  Function& region = module.functions[1];
  Builder b(region);
  int32_t in = b.parameter(4 * extent, false), out = b.parameter(4 * extent, true);
  b.loop(extent, {.lanes = true, .parallel = true}, {}, [&](Value i, Carried) {
    b.store(b.compute(Op::add, b.load(Scalar::f32, {in, 0, {{i, 1}}}), b.constant(Scalar::f32, add)),
            {out, 0, {{i, 1}}});
    return nothing;
  });
  region.cost = cost;
}

TEST(Calls, ArgumentsArePartsOfBuffersInBytes) {
  NEEDS_COMPILER();
  Module module = module_with(2);
  add_region(module, 10, 1, 0.5f);
  Builder b(module.functions[0]);
  int32_t in = b.parameter(400, false), out = b.parameter(400, true), scratch = b.local(40);
  b.loop(10, {}, {}, [&](Value i, Carried) {
    b.invoke(1, {{{in, 0, {{i, 40}}}}, {{scratch, 0, {}}}});
    b.invoke(1, {{{scratch, 0, {}}}, {{out, 360, {{i, -40}}}}});
    return nothing;
  });
  std::vector<float> x(100), y(100);
  for (std::size_t i = 0; i < 100; ++i) x[i] = static_cast<float>(i);
  TestRuntime runtime;
  ASSERT_EQ(run(module, {x.data(), y.data()}, runtime), 0);
  EXPECT_EQ(runtime.parallel_calls, 0) << "ten iterations of a nanosecond are not worth a thread";
  for (std::size_t row = 0; row < 10; ++row) {
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(y[(9 - row) * 10 + i], x[row * 10 + i] + 1);
  }
}

TEST(Calls, LongRegionsGoToThePool) {
  NEEDS_COMPILER();
  Module module = module_with(2);
  add_region(module, 1000, 30, 2);
  Builder b(module.functions[0]);
  int32_t in = b.parameter(4000, false), out = b.parameter(4000, true);
  b.invoke(1, {{{in, 0, {}}}, {{out, 0, {}}}});
  std::vector<float> x(1000, 1.5f), y(1000);
  TestRuntime runtime;
  runtime.parts = 13;
  ASSERT_EQ(run(module, {x.data(), y.data()}, runtime), 0);
  EXPECT_EQ(runtime.parallel_calls, 1);
  EXPECT_EQ(y, std::vector<float>(1000, 3.5f));
}

TEST(Calls, HostKernelsGetBuffersAndEndTheProgram) {
  NEEDS_COMPILER();
  for (int32_t failing : {-1, 0, 7}) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t data = b.parameter(32, true);
    b.host(3, {{{data, 8, {}}}, {{data, 0, {}}}});
    b.store(b.constant_int(Scalar::i64, 5), {data, 2, {}});
    b.host(7, {});
    b.store(b.constant_int(Scalar::i64, 6), {data, 3, {}});
    int64_t cells[4] = {1, 2, 0, 0};
    TestRuntime runtime;
    std::vector<int32_t> kernels;
    runtime.host = [&](int32_t kernel, std::byte* const* buffers) {
      kernels.push_back(kernel);
      if (kernel == 3) {
        EXPECT_EQ(*reinterpret_cast<int64_t*>(buffers[0]), 2);
        *reinterpret_cast<int64_t*>(buffers[1]) = 9;
      }
      return kernel == failing ? 42 : 0;
    };
    EXPECT_EQ(run(module, {cells}, runtime), failing == 7 ? 42 : 0);
    EXPECT_EQ(kernels, (std::vector<int32_t>{3, 7}));
    EXPECT_EQ(cells[0], 9);
    EXPECT_EQ(cells[2], 5);
    EXPECT_EQ(cells[3], failing == 7 ? 0 : 6);
  }
}

TEST(Calls, StatusesOfCalleesEndTheCaller) {
  NEEDS_COMPILER();
  for (double cost : {0.0, 1e9}) {
    Module module = module_with(2);
    {
      Function& region = module.functions[1];
      Builder b(region);
      int32_t data = b.parameter(800, true);
      b.loop(100, {.parallel = true}, {}, [&](Value i, Carried) {
        b.store(i, {data, 0, {{i, 1}}});
        b.host(1, {{{data, 0, {{i, 8}}}}});
        return nothing;
      });
      region.cost = cost;
    }
    Builder b(module.functions[0]);
    int32_t data = b.parameter(808, true);
    b.invoke(1, {{{data, 0, {}}}});
    b.store(b.index(77), {data, 100, {}});
    std::vector<int64_t> cells(101, -1);
    TestRuntime runtime;
    runtime.host = [](int32_t, std::byte* const* buffers) {
      return *reinterpret_cast<int64_t*>(buffers[0]) == 50 ? 13 : 0;
    };
    EXPECT_EQ(run(module, {cells.data()}, runtime), 13);
    EXPECT_EQ(runtime.parallel_calls, cost > 0);
    EXPECT_EQ(cells[50], 50);
    EXPECT_EQ(cells[51], -1);
    EXPECT_EQ(cells[100], -1);
  }
}

TEST(Calls, CancellationEndsEndlessLoops) {
  NEEDS_COMPILER();
  for (bool by_while : {true, false}) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t data = b.parameter(8, true);
    if (by_while) {
      std::vector<Value> initial{b.index(0)};
      auto result = b.repeat(
          initial, true, [&](Carried v) { return b.compute(Op::ge, v[0], b.index(0)); },
          [&](Carried v) { return std::vector{b.compute(Op::bit_xor, v[0], b.index(1))}; });
      b.store(result[0], {data, 0, {}});
    } else {
      Builder::Initial initial{b.index(0)};
      auto result = b.loop(int64_t{1} << 60, {.poll = true}, std::span(&initial, 1),
                           [&](Value i, Carried v) { return std::vector{b.compute(Op::bit_xor, v[0], i)}; });
      b.store(result[0], {data, 0, {}});
    }
    std::unique_ptr<Code> code = compiled(module);
    TestRuntime runtime;
    int64_t cell = -1;
    std::byte* buffers[] = {reinterpret_cast<std::byte*>(&cell)};
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      std::atomic_ref(runtime.cancel).store(1);
    });
    EXPECT_EQ(code->driver()(&runtime.runtime, buffers, 0, 0), 1);
    other.join();
    EXPECT_EQ(cell, -1);
  }
}

TEST(Calls, ThreadsCompileAndLinkAtOnce) {
  NEEDS_COMPILER();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 5; ++k) {
        Module module = module_with(2);
        add_region(module, 100 + t, 1, static_cast<float>(k));
        Builder b(module.functions[0]);
        b.parameter(1, false);
        b.parameter(1, true);
        b.invoke(1, {{{0, 0, {}}}, {{1, 0, {}}}});
        std::vector<float> x(200, static_cast<float>(t)), y(200);
        TestRuntime runtime;
        run(module, {x.data(), y.data()}, runtime);
        right += y[static_cast<std::size_t>(99 + t)] == static_cast<float>(t + k) &&
                 y[static_cast<std::size_t>(100 + t)] == 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
}

TEST(Calls, BrokenObjectCodeIsRefused) {
  NEEDS_COMPILER();
  EXPECT_THROW(compiler().link("not an object"), std::runtime_error);
  EXPECT_THROW(compiler().link(""), std::runtime_error);
}

// ---- targets -------------------------------------------------------------------------------------------------------

Target x86(int vector_bytes) {
  Target target{"x86_64-unknown-linux-gnu",
                "x86-64",
                {"+sse4.2", "+popcnt", "+avx", "+avx2", "+fma", "+f16c", "+bmi", "+bmi2", "+lzcnt"},
                vector_bytes};
  if (vector_bytes == 64) {
    for (const char* feature : {"+avx512f", "+avx512bw", "+avx512dq", "+avx512vl", "+avx512cd"})
      target.features.push_back(feature);
  }
  return target;
}

TEST(Targets, OneModuleBecomesObjectCodeForEachMachine) {
  NEEDS_COMPILER();
  Module module = module_with();
  Builder b(module.functions[0]);
  int32_t in = b.parameter(4000, false), out = b.parameter(4000, true), halves = b.parameter(2000, true);
  b.loop(1000, {.lanes = true}, {}, [&](Value i, Carried) {
    Value x = b.load(Scalar::f32, {in, 0, {{i, 1}}});
    Value y = b.compute(Op::round_even, b.compute(Op::minimum, b.compute(Op::sqrt, x), b.call(Math::erf, x)));
    b.store(b.compute(Op::add, b.compute(Op::mul, y, x), y), {out, 0, {{i, 1}}});
    b.store(b.convert(Op::float_convert, Scalar::f16,
                      b.convert(Op::signed_to_float, Scalar::f32, b.convert(Op::float_to_signed, Scalar::i32, x))),
            {halves, 0, {{i, 1}}});
    return nothing;
  });
  const Target arm{"aarch64-unknown-linux-gnu", "generic", {"+neon"}, 16};
  const Target old{"x86_64-unknown-linux-gnu", "x86-64", {}, 16};
  struct Case {
    Target target;
    int machine;  // e_machine of ELF
    const char* vectors;
  };
  for (const Case& each : {Case{arm, 183, "<16 x float>"}, Case{x86(32), 62, "<32 x float>"},
                           Case{x86(64), 62, "<64 x float>"}, Case{old, 62, "<16 x float>"}}) {
    std::string object = compiler().object_code(module, each.target);
    ASSERT_GT(object.size(), 64u) << each.target.key();
    EXPECT_EQ(object.substr(1, 3), "ELF");
    EXPECT_EQ(static_cast<unsigned char>(object[18]), each.machine);
    EXPECT_NE(compiler().ir(module, each.target).find(each.vectors), std::string::npos) << each.target.key();
    EXPECT_EQ(object, compiler().object_code(module, each.target)) << "the same module gives the same bytes";
  }
}

TEST(Targets, TheHostNamesNoProcessor) {
  NEEDS_COMPILER();
  const Target host = compiler().host();
  EXPECT_TRUE(host.cpu == "generic" || host.cpu == "x86-64") << host.cpu;
  EXPECT_TRUE(host.vector_bytes == 16 || host.vector_bytes == 32 || host.vector_bytes == 64);
  for (const std::string& feature : host.features) EXPECT_NE(feature, "+sve");
  EXPECT_NE(compiler().version().find("LLVM"), std::string::npos);
  EXPECT_GE(compiler().version().size(), 40u) << "no build identity: " << compiler().version();
}

TEST(Printing, StatementsReadAsText) {
  Module module = module_with();
  module.functions[0].name = "sum";
  Builder b(module.functions[0]);
  int32_t in = b.parameter(400, false), out = b.parameter(4, true);
  Value zero = b.constant(Scalar::f32, 0);
  Builder::Initial initial{zero, Op::add, zero};
  auto total = b.loop(50, {.lanes = true}, std::span(&initial, 1), [&](Value i, Carried carried) {
    return std::vector{b.compute(Op::add, carried[0], b.load(Scalar::f32, {in, 3, {{i, 2}}}))};
  });
  b.store(total[0], {out, 0, {}});
  EXPECT_EQ(to_string(module),
            "0: sum {\n"
            "  parameter b0: 400 bytes\n"
            "  parameter b1: 4 bytes, written\n"
            "  %0: f32 = 0\n"
            "  %3: f32 = for %1 < 50 lanes (%2: f32 = %0 joined by add from %0) {\n"
            "    %4: f32 = load b0[2*%1 + 3]\n"
            "    %5: f32 = add %2, %4\n"
            "    next %5\n"
            "  }\n"
            "  store %3 to b1[0]\n"
            "}\n");
}

}  // namespace
}  // namespace capibara::cpu
