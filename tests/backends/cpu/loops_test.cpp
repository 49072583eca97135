// Loops, branches and memory of generated code against plain C++ loops: strides, awkward extents, carries, nesting.
#include "backends/cpu/generated_code.h"

namespace capibara::cpu {
namespace {

constexpr int64_t extents[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 100, 1000};

using Carried = std::span<const Value>;
const std::vector<Value> nothing;

template <class T>
std::vector<T> numbered(int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(std::max<int64_t>(1, count)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>((i * 7919 + 13) % 1009);
  return values;
}

// out[to*i + a] = in[from*i + b] + 1, for all signs and sizes of the steps.
template <class T>
void strides(bool extent_is_a_value, bool parallel) {
  for (int64_t from : {1, 0, 2, 3, -1, -2, 5}) {
    for (int64_t to : {1, 2, -1, 3, -4}) {
      if (from != 1 && to != 1 && from != to) continue;
      for (int64_t n : extents) {
        Module module = module_with(parallel ? 2 : 1);
        Function& function = module.functions[parallel ? 1 : 0];
        Builder b(function);
        const int64_t in_size = n * std::max<int64_t>(1, std::abs(from)), out_size = n * std::abs(to);
        int32_t in = b.parameter(in_size * static_cast<int64_t>(sizeof(T)), false);
        int32_t out = b.parameter(out_size * static_cast<int64_t>(sizeof(T)), true);
        int32_t count = extent_is_a_value ? b.parameter(8, false) : -1;
        Value extent = extent_is_a_value ? b.load(Scalar::i64, {count, 0, {}}) : no_value;
        const int64_t from_start = from < 0 ? -from * (n - 1) : 0, to_start = to < 0 ? -to * (n - 1) : 0;
        b.loop(extent_is_a_value ? 0 : n, {.lanes = true, .parallel = parallel, .extent_value = extent}, {},
               [&](Value i, Carried) {
                 Value value = b.load(scalar_of<T>(), {in, from_start, {{i, from}}});
                 Value one =
                     is_float(scalar_of<T>()) ? b.constant(scalar_of<T>(), 1) : b.constant_int(scalar_of<T>(), 1);
                 b.store(b.compute(Op::add, value, one), {out, to_start, {{i, to}}});
                 return nothing;
               });
        if (parallel) {
          function.cost = 1e9;
          Builder driver(module.functions[0]);
          driver.parameter(1, false);
          driver.parameter(1, true);
          driver.invoke(1, {{{0, 0, {}}}, {{1, 0, {}}}});
        }
        std::vector<T> source = numbered<T>(in_size), result(static_cast<std::size_t>(out_size) + 1, T(77)),
                       wanted = result;
        for (int64_t i = 0; i < n; ++i) {
          wanted[static_cast<std::size_t>(to_start + to * i)] =
              static_cast<T>(source[static_cast<std::size_t>(from_start + from * i)] + 1);
        }
        int64_t trip_count = n;
        TestRuntime runtime;
        runtime.parts = 3;
        std::vector<void*> buffers{source.data(), result.data()};
        if (extent_is_a_value) buffers.push_back(&trip_count);
        ASSERT_EQ(run(module, buffers, runtime), 0);
        ASSERT_EQ(runtime.parallel_calls, parallel && n > 0 ? 1 : 0);
        ASSERT_EQ(result, wanted) << "from " << from << " to " << to << " extent " << n;
      }
    }
  }
}

TEST(Loops, StridesOfEverySignInFloats) {
  NEEDS_COMPILER();
  strides<float>(false, false);
}
TEST(Loops, StridesOfBytes) {
  NEEDS_COMPILER();
  strides<int8_t>(false, false);
}
TEST(Loops, StridesOfDoublesOverAnExtentKnownLate) {
  NEEDS_COMPILER();
  strides<double>(true, false);
}
TEST(Loops, StridesInPartsOfAParallelLoop) {
  NEEDS_COMPILER();
  strides<int16_t>(false, true);
}

TEST(Loops, InPlaceRunsEachIterationOnce) {
  NEEDS_COMPILER();
  for (int64_t n : extents) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t data = b.parameter(4 * n, true);
    b.loop(n, {.lanes = true}, {}, [&](Value i, Carried) {
      b.store(b.compute(Op::add, b.load(Scalar::f32, {data, 0, {{i, 1}}}), b.constant(Scalar::f32, 1)),
              {data, 0, {{i, 1}}});
      return nothing;
    });
    std::vector<float> values = numbered<float>(n), wanted = values;
    for (int64_t i = 0; i < n; ++i) wanted[static_cast<std::size_t>(i)] += 1;
    run(module, {values.data()});
    ASSERT_EQ(values, wanted) << n;
  }
}

// Every reduction across lanes, over every extent; floats hold small integers, so that no order rounds.
template <class T>
void reductions(Op op, T identity, T (*join)(T, T), bool in_place) {
  for (int64_t n : extents) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t in = b.parameter(n * 8, in_place), out = b.parameter(16, true);
    Value start = b.load(scalar_of<T>(), {out, 0, {}});
    uint64_t bits = 0;
    std::memcpy(&bits, &identity, sizeof(T));
    Builder::Initial initial{start, op, b.constant_bits(scalar_of<T>(), bits)};
    auto result = b.loop(n, {.lanes = true}, std::span(&initial, 1), [&](Value i, Carried carried) {
      Value value = b.load(scalar_of<T>(), {in, 0, {{i, 1}}});
      if (in_place) b.store(value, {in, 0, {{i, 1}}});
      if (op == Op::lt || op == Op::gt || op == Op::lt_unsigned || op == Op::gt_unsigned) {
        return std::vector{b.compute(Op::select, b.compute(op, value, carried[0]), value, carried[0])};
      }
      return std::vector{b.compute(op, carried[0], value)};
    });
    b.store(result[0], {out, 1, {}});
    std::vector<T> values = numbered<T>(n);
    if (op == Op::mul) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 50 == 3 ? T(2) : i % 5 ? T(1) : T(-1);
    }
    T cells[2] = {T(3), T(0)};
    T wanted = cells[0];
    for (int64_t i = 0; i < n; ++i) wanted = join(wanted, values[static_cast<std::size_t>(i)]);
    run(module, {values.data(), cells});
    ASSERT_TRUE(same(cells[1], wanted)) << n << ": got " << shown(cells[1]) << ", wanted " << shown(wanted);
  }
}

template <class T>
void float_reductions(bool in_place) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  reductions<T>(
      Op::add, T(0), [](T a, T b) { return a + b; }, in_place);
  reductions<T>(
      Op::mul, T(1), [](T a, T b) { return a * b; }, in_place);
  reductions<T>(
      Op::minimum, infinity, [](T a, T b) { return std::fmin(a, b); }, in_place);
  reductions<T>(
      Op::maximum, -infinity, [](T a, T b) { return std::fmax(a, b); }, in_place);
}

template <class T>
void integer_reductions() {
  using U = std::make_unsigned_t<T>;
  using L = std::numeric_limits<T>;
  reductions<T>(
      Op::add, T(0), [](T a, T b) { return static_cast<T>(a + b); }, false);
  reductions<T>(
      Op::bit_and, T(-1), [](T a, T b) { return static_cast<T>(a & b); }, false);
  reductions<T>(
      Op::bit_or, T(0), [](T a, T b) { return static_cast<T>(a | b); }, false);
  reductions<T>(
      Op::bit_xor, T(0), [](T a, T b) { return static_cast<T>(a ^ b); }, false);
  reductions<T>(
      Op::lt, L::max(), [](T a, T b) { return std::min(a, b); }, false);
  reductions<T>(
      Op::gt, L::min(), [](T a, T b) { return std::max(a, b); }, false);
  reductions<T>(
      Op::lt_unsigned, T(-1), [](T a, T b) { return static_cast<U>(a) < static_cast<U>(b) ? a : b; }, false);
  reductions<T>(
      Op::gt_unsigned, T(0), [](T a, T b) { return static_cast<U>(a) > static_cast<U>(b) ? a : b; }, false);
}

TEST(Loops, CarriesJoinFloats) {
  NEEDS_COMPILER();
  float_reductions<float>(false);
  float_reductions<double>(true);
}
TEST(Loops, CarriesJoinIntegers) {
  NEEDS_COMPILER();
  integer_reductions<int8_t>();
  integer_reductions<int32_t>();
  integer_reductions<int64_t>();
}

TEST(Loops, CarriesWithoutAWayToJoinRunInOrder) {
  NEEDS_COMPILER();
  Module module = module_with();
  Builder b(module.functions[0]);
  int32_t in = b.parameter(400, false), out = b.parameter(404, true);
  Builder::Initial initial{b.constant(Scalar::f32, 1)};
  auto result = b.loop(100, {.lanes = true}, std::span(&initial, 1), [&](Value i, Carried carried) {
    b.store(carried[0], {out, 0, {{i, 1}}});
    Value x = b.load(Scalar::f32, {in, 0, {{i, 1}}});
    return std::vector{b.compute(Op::div, b.compute(Op::add, carried[0], x), b.constant(Scalar::f32, 3))};
  });
  b.store(result[0], {out, 100, {}});
  std::vector<float> x = numbered<float>(100), y(101);
  run(module, {x.data(), y.data()});
  float state = 1;
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(y[i], state);
    state = (state + x[i]) / 3;
  }
  EXPECT_EQ(y[100], state);
}

// Rows of a matrix: an inner loop in lanes that sums, then one that uses the sum; hoisted loads; a transposed store.
TEST(Loops, NestsOverRowsWithTwoStages) {
  NEEDS_COMPILER();
  for (int64_t columns : {1, 3, 7, 16, 37, 130}) {
    const int64_t rows = 5;
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t in = b.parameter(4 * rows * columns, false), scale = b.parameter(4 * rows, false);
    int32_t out = b.parameter(4 * rows * columns, true), row_copy = b.local(4 * columns);
    b.loop(rows, {}, {}, [&](Value row, Carried) {
      Value zero = b.constant(Scalar::f32, 0);
      Builder::Initial initial{zero, Op::add, zero};
      auto sum = b.loop(columns, {.lanes = true}, std::span(&initial, 1), [&](Value column, Carried carried) {
        Value x = b.load(Scalar::f32, {in, 0, {{row, columns}, {column, 1}}});
        b.store(x, {row_copy, 0, {{column, 1}}});
        return std::vector{b.compute(Op::add, carried[0], x)};
      });
      b.loop(columns, {.lanes = true}, {}, [&](Value column, Carried) {
        Value factor = b.load(Scalar::f32, {scale, 0, {{row, 1}}});
        Value x = b.load(Scalar::f32, {row_copy, 0, {{column, 1}}});
        b.store(b.compute(Op::mul, b.compute(Op::sub, x, sum[0]), factor), {out, 0, {{column, rows}, {row, 1}}});
        return nothing;
      });
      return nothing;
    });
    std::vector<float> x = numbered<float>(rows * columns), s = numbered<float>(rows), y(x.size()), wanted(x.size());
    for (int64_t row = 0; row < rows; ++row) {
      float sum = 0;
      for (int64_t column = 0; column < columns; ++column) sum += x[static_cast<std::size_t>(row * columns + column)];
      for (int64_t column = 0; column < columns; ++column) {
        wanted[static_cast<std::size_t>(column * rows + row)] =
            (x[static_cast<std::size_t>(row * columns + column)] - sum) * s[static_cast<std::size_t>(row)];
      }
    }
    run(module, {x.data(), s.data(), y.data()});
    ASSERT_EQ(y, wanted) << columns;
  }
}

// A sequential inner loop inside a loop in lanes, with a carry that differs between lanes.
TEST(Loops, InnerLoopsCarryVectors) {
  NEEDS_COMPILER();
  for (int64_t n : extents) {
    const int64_t depth = 11;
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t in = b.parameter(4 * n * depth, false), out = b.parameter(4 * n, true), counts = b.parameter(4 * n, true);
    b.loop(n, {.lanes = true}, {}, [&](Value i, Carried) {
      Builder::Initial initial[] = {{b.constant(Scalar::f32, 0)}, {b.constant_int(Scalar::i32, 0)}};
      auto result = b.loop(depth, {}, initial, [&](Value k, Carried carried) {
        Value x = b.load(Scalar::f32, {in, 0, {{k, n}, {i, 1}}});
        return std::vector{b.compute(Op::maximum, carried[0], x),
                           b.compute(Op::add, carried[1], b.constant_int(Scalar::i32, 2))};
      });
      b.store(result[0], {out, 0, {{i, 1}}});
      b.store(result[1], {counts, 0, {{i, 1}}});
      return nothing;
    });
    std::vector<float> x = numbered<float>(n * depth), y(static_cast<std::size_t>(n) + 1), wanted(y.size());
    std::vector<int32_t> c(y.size());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < depth; ++k) {
        wanted[static_cast<std::size_t>(i)] =
            std::max(wanted[static_cast<std::size_t>(i)], x[static_cast<std::size_t>(k * n + i)]);
      }
    }
    run(module, {x.data(), y.data(), c.data()});
    ASSERT_EQ(y, wanted) << n;
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(c[static_cast<std::size_t>(i)], 2 * depth);
  }
}

TEST(Loops, ComputedIndicesGatherAndScatter) {
  NEEDS_COMPILER();
  for (int64_t n : extents) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t table = b.parameter(4 * 2000, false), where = b.parameter(4 * n, false);
    int32_t out = b.parameter(4 * n, true), spread = b.parameter(4 * 4096, true), positions = b.parameter(8 * n, true);
    b.loop(n, {.lanes = true}, {}, [&](Value i, Carried) {
      Value at = b.convert(Op::sign_extend, Scalar::i64, b.load(Scalar::i32, {where, 0, {{i, 1}}}));
      Value x = b.load(Scalar::f32, {table, 1, {{at, 2}, {i, -1}}});
      // n + 3 - 2 * (i - 1): affine through computations
      Value shifted =
          b.compute(Op::sub, b.index(n + 3), b.compute(Op::mul, b.compute(Op::sub, i, b.index(1)), b.index(2)));
      b.store(x, {out, n - 5 - n, {{b.compute(Op::add, i, b.index(5)), 1}}});
      b.store(x, {spread, 0, {{b.compute(Op::mul, i, i), 1}, {b.compute(Op::add, i, b.index(1)), 3}}});
      b.store(shifted, {positions, 0, {{i, 1}}});
      return nothing;
    });
    if (n > 60) continue;
    std::vector<float> values = numbered<float>(2000), y(static_cast<std::size_t>(n) + 1), s(4096), wanted_s(4096);
    std::vector<int32_t> indices = numbered<int32_t>(n);
    std::vector<int64_t> p(y.size());
    for (auto& index : indices) index = index % 400 + 50;
    run(module, {values.data(), indices.data(), y.data(), s.data(), p.data()});
    for (int64_t i = 0; i < n; ++i) {
      float wanted = values[static_cast<std::size_t>(2 * indices[static_cast<std::size_t>(i)] - i + 1)];
      ASSERT_EQ(y[static_cast<std::size_t>(i)], wanted) << n << " " << i;
      ASSERT_EQ(p[static_cast<std::size_t>(i)], n + 3 - 2 * (i - 1));
      wanted_s[static_cast<std::size_t>(i * i + 3 * (i + 1))] = wanted;
    }
    ASSERT_EQ(s, wanted_s);
  }
}

// Complex numbers: parts at a stride of two are loaded and stored together.
TEST(Loops, ComplexProducts) {
  NEEDS_COMPILER();
  for (int64_t n : extents) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t x = b.parameter(8 * n, false), y = b.parameter(8 * n, false), z = b.parameter(8 * n, true);
    b.loop(n, {.lanes = true}, {}, [&](Value i, Carried) {
      auto part = [&](int32_t buffer, int64_t which) { return b.load(Scalar::f32, {buffer, which, {{i, 2}}}); };
      Value xi = part(x, 1), xr = part(x, 0), yr = part(y, 0), yi = part(y, 1);
      b.store(b.compute(Op::sub, b.compute(Op::mul, xr, yr), b.compute(Op::mul, xi, yi)), {z, 0, {{i, 2}}});
      b.store(b.compute(Op::add, b.compute(Op::mul, xr, yi), b.compute(Op::mul, xi, yr)), {z, 1, {{i, 2}}});
      return nothing;
    });
    std::vector<float> p = numbered<float>(2 * n), q = numbered<float>(2 * n), r(p.size()), wanted(p.size());
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = q[i] / 4 - 100;
    for (int64_t i = 0; i < n; ++i) {
      const std::size_t k = static_cast<std::size_t>(2 * i);
      wanted[k] = p[k] * q[k] - p[k + 1] * q[k + 1];  // small enough to be exact
      wanted[k + 1] = p[k] * q[k + 1] + p[k + 1] * q[k];
    }
    run(module, {p.data(), q.data(), r.data()});
    ASSERT_EQ(r, wanted) << n;
  }
}

TEST(Loops, IotaOfSmallIntegersWraps) {
  NEEDS_COMPILER();
  Module module = module_with();
  Builder b(module.functions[0]);
  int32_t bytes = b.parameter(1000, true), words = b.parameter(4000, true), floats = b.parameter(4000, true);
  b.loop(1000, {.lanes = true}, {}, [&](Value i, Carried) {
    b.store(b.convert(Op::narrow, Scalar::i8, i), {bytes, 0, {{i, 1}}});
    Value word = b.convert(Op::narrow, Scalar::i32, b.compute(Op::mul, i, b.index(3)));
    b.store(word, {words, 0, {{i, 1}}});
    b.store(b.convert(Op::signed_to_float, Scalar::f32, word), {floats, 0, {{i, 1}}});
    return nothing;
  });
  std::vector<int8_t> x(1000);
  std::vector<int32_t> y(1000);
  std::vector<float> z(1000);
  run(module, {x.data(), y.data(), z.data()});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(x[static_cast<std::size_t>(i)], static_cast<int8_t>(i));
    ASSERT_EQ(y[static_cast<std::size_t>(i)], 3 * i);
    ASSERT_EQ(z[static_cast<std::size_t>(i)], static_cast<float>(3 * i));
  }
}

TEST(Loops, CutsOfAParallelLoopDoNotChangeABit) {
  NEEDS_COMPILER();
  const int64_t n = 1003;
  Module module = module_with(2);
  Function& region = module.functions[1];
  {
    Builder b(region);
    int32_t x = b.parameter(4 * n, false), y = b.parameter(4 * n, true);
    b.loop(n, {.lanes = true, .parallel = true}, {}, [&](Value i, Carried) {
      Value v = b.load(Scalar::f32, {x, 0, {{i, 1}}});
      Value a = b.compute(Op::add, b.compute(Op::mul, v, v), b.compute(Op::mul, v, b.constant(Scalar::f32, 0.1)));
      b.store(b.compute(Op::div, a, b.compute(Op::sqrt, b.compute(Op::add, b.compute(Op::mul, a, v), v))),
              {y, 0, {{i, 1}}});
      return nothing;
    });
    region.cost = 1000;
    Builder driver(module.functions[0]);
    driver.parameter(4 * n, false);
    driver.parameter(4 * n, true);
    driver.invoke(1, {{{0, 0, {}}}, {{1, 0, {}}}});
  }
  std::vector<float> x(n), whole(n), parts(n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.37f * static_cast<float>(i + 1);
  TestRuntime runtime;
  ASSERT_EQ(run(module, {x.data(), whole.data()}, runtime), 0);
  for (int count : {2, 3, 7, 100, 1003}) {
    runtime.parts = count;
    std::fill(parts.begin(), parts.end(), 0.0f);
    ASSERT_EQ(run(module, {x.data(), parts.data()}, runtime), 0);
    ASSERT_EQ(std::memcmp(whole.data(), parts.data(), 4 * n), 0) << count;
  }
}

TEST(Loops, WhileCountsCollatz) {
  NEEDS_COMPILER();
  for (bool lanes : {false, true}) {  // in lanes the condition differs between iterations, so they run one by one
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t out = b.parameter(8 * 100, true);
    b.loop(100, {.lanes = lanes}, {}, [&](Value i, Carried) {
      std::vector<Value> initial{b.compute(Op::add, i, b.index(1)), b.index(0)};
      auto result = b.repeat(
          initial, false, [&](Carried v) { return b.compute(Op::ne, v[0], b.index(1)); },
          [&](Carried v) {
            Value odd = b.compute(Op::eq, b.compute(Op::bit_and, v[0], b.index(1)), b.index(1));
            auto next = b.branch(
                odd, [&] { return std::vector{b.compute(Op::add, b.compute(Op::mul, v[0], b.index(3)), b.index(1))}; },
                [&] { return std::vector{b.compute(Op::shift_right_logical, v[0], b.index(1))}; });
            return std::vector{next[0], b.compute(Op::add, v[1], b.index(1))};
          });
      b.store(result[1], {out, 0, {{i, 1}}});
      return nothing;
    });
    std::vector<int64_t> steps(100);
    run(module, {steps.data()});
    for (int64_t i = 0; i < 100; ++i) {
      int64_t value = i + 1, count = 0;
      for (; value != 1; ++count) value = value % 2 ? 3 * value + 1 : value / 2;
      ASSERT_EQ(steps[static_cast<std::size_t>(i)], count);
    }
  }
}

TEST(Loops, BranchesOfALoopInLanesMayBeTheSameForAllIterations) {
  NEEDS_COMPILER();
  for (int32_t flag : {0, 1}) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t choice = b.parameter(4, false), in = b.parameter(4 * 77, false), out = b.parameter(4 * 77, true);
    Value yes = b.compute(Op::ne, b.load(Scalar::i32, {choice, 0, {}}), b.constant_int(Scalar::i32, 0));
    b.loop(77, {.lanes = true}, {}, [&](Value i, Carried) {
      Value x = b.load(Scalar::f32, {in, 0, {{i, 1}}});
      auto picked = b.branch(
          yes,
          [&] {
            return std::vector{b.compute(Op::mul, x, x), b.constant(Scalar::f32, 1)};
          },
          [&] {
            return std::vector{b.compute(Op::neg, x), b.constant(Scalar::f32, 2)};
          });
      b.store(b.compute(Op::add, picked[0], picked[1]), {out, 0, {{i, 1}}});
      return nothing;
    });
    std::vector<float> x = numbered<float>(77), y(77);
    run(module, {&flag, x.data(), y.data()});
    for (std::size_t i = 0; i < 77; ++i) ASSERT_EQ(y[i], flag ? x[i] * x[i] + 1 : -x[i] + 2);
  }
}

TEST(Loops, SixtyCarriesKeepTheirPlaces) {
  NEEDS_COMPILER();
  Module module = module_with();
  Builder b(module.functions[0]);
  int32_t out = b.parameter(240, true);
  std::vector<Builder::Initial> initial;
  for (int i = 0; i < 60; ++i) initial.push_back({b.constant(Scalar::f32, i)});
  auto result = b.loop(614, {.poll = true}, initial, [&](Value, Carried carried) {
    std::vector<Value> next;
    for (std::size_t i = 0; i < 60; ++i)
      next.push_back(b.compute(Op::sub, carried[(i + 1) % 60], b.constant(Scalar::f32, 1)));
    return next;
  });
  for (int i = 0; i < 60; ++i) b.store(result[static_cast<std::size_t>(i)], {out, i, {}});
  std::vector<float> values(60);
  run(module, {values.data()});
  for (int i = 0; i < 60; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>((i + 614) % 60 - 614));
}

TEST(Loops, EmptyLoopsReturnWhatTheyGot) {
  NEEDS_COMPILER();
  for (int64_t late : {0, -5}) {
    Module module = module_with();
    Builder b(module.functions[0]);
    int32_t in = b.parameter(8, false), out = b.parameter(16, true);
    Value n = b.load(Scalar::i64, {in, 0, {}}), zero = b.constant(Scalar::f64, 0);
    Builder::Initial initial{b.constant(Scalar::f64, 5), Op::add, zero};
    auto body = [&](Value, Carried carried) {
      return std::vector{b.compute(Op::add, carried[0], b.constant(Scalar::f64, 1))};
    };
    b.store(b.loop(0, {.lanes = true, .extent_value = n}, std::span(&initial, 1), body)[0], {out, 0, {}});
    b.store(b.loop(0, {.lanes = true}, std::span(&initial, 1), body)[0], {out, 1, {}});
    double cells[2] = {};
    run(module, {&late, cells});
    EXPECT_EQ(cells[0], 5);
    EXPECT_EQ(cells[1], 5);
  }
}

}  // namespace
}  // namespace capibara::cpu
