// Matmuls on tiles: on a model of AMX on every processor with AVX-512, and on AMX itself where available.
#include "backends/cpu/kernels/gemm/amx/amx_tiles.h"

#if defined(__x86_64__)

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "backends/cpu/amx_model.h"
#include "backends/cpu/kernels/attention/panels_amx.h"
#include "backends/cpu/kernels/gemm/amx/gemm_amx_loops.h"
#include "core/runtime/processor.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {
namespace {

using Ints = std::vector<int64_t>;

// A matmul of random operands with any memory layout, and its exact result.
template <class K>
struct Case {
  using P = typename K::Packed;
  using S = typename K::Sum;
  int64_t m, k, n;
  Axis left_rows, left_inner, right_columns, right_inner, out_rows, out_columns;
  std::vector<P> left, right;
  std::vector<double> expected, size;  // size: the sum of the absolute values of the products

  enum class Order { plain, transposed, scattered };
  // Axes of an `outer` x `inner` matrix. Scattered: both extents are even, [outer / 2][inner / 2][2 outer][2 inner].
  static std::pair<Axis, Axis> axes(int64_t outer, int64_t inner, Order order) {
    if (order == Order::plain) return {Axis::regular(outer, inner), Axis::regular(inner, 1)};
    if (order == Order::transposed) return {Axis::regular(outer, 1), Axis::regular(inner, outer)};
    return {Axis(Ints{outer / 2, 2}, Ints{2 * inner, 2}), Axis(Ints{inner / 2, 2}, Ints{4, 1})};
  }

  Case(int64_t m, int64_t k, int64_t n, Order left_order, Order right_order, Order out_order) : m(m), k(k), n(n) {
    std::tie(left_rows, left_inner) = axes(m, k, left_order);
    std::tie(right_inner, right_columns) = axes(k, n, right_order);
    std::tie(out_rows, out_columns) = axes(m, n, out_order);
    std::mt19937 random(static_cast<unsigned>(m * 31 + k * 7 + n));
    auto fill = [&](std::vector<P>& to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to.push_back(std::bit_cast<P>(element(random)));
    };
    fill(left, m * k);
    fill(right, k * n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, absolute = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double product = value(left[index(left_rows.at(i) + left_inner.at(p))], K::left_signed) *
                                 value(right[index(right_inner.at(p) + right_columns.at(j))], K::right_signed);
          sum += product;
          absolute += std::abs(product);
        }
        expected.push_back(sum);
        size.push_back(absolute);
      }
    }
  }
  static std::size_t index(int64_t i) { return static_cast<std::size_t>(i); }
  static auto element(std::mt19937& random) {
    if constexpr (sizeof(P) == 1)
      return static_cast<std::uint8_t>(random());
    else
      return static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(std::uniform_real_distribution<float>(-2, 2)(random)) >> 16);
  }
  static double value(P stored, bool is_signed) {
    if constexpr (sizeof(P) == 2)
      return std::bit_cast<float>(static_cast<std::uint32_t>(stored.bits) << 16);
    else
      return is_signed ? std::bit_cast<std::int8_t>(stored) : std::bit_cast<std::uint8_t>(stored);
  }

  // Passes the matmul to `run`; returns the result in row-major order.
  template <class Run>
  std::vector<S> result(Run&& run, bool constant_left = false, bool constant_right = false,
                        bool finishes = true) const {
    auto source = [](const std::vector<P>& data, const Axis& items, const Axis& inner) {
      return AmxSource{reinterpret_cast<const std::byte*>(data.data()), sizeof(P), items, inner};
    };
    auto pack_left = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t panel, P* to) {
      pack_amx(source(left, left_rows, left_inner), AmxSide::left, first, count, k0, some, panel,
               reinterpret_cast<std::byte*>(to));
    };
    auto pack_right = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t panel, P* to) {
      pack_amx(source(right, right_columns, right_inner), AmxSide::right, first, count, k0, some, panel,
               reinterpret_cast<std::byte*>(to));
    };
    std::vector<S> out(index(m * n), S(77)), ordered;
    std::vector<std::atomic<int>> finished(index(m * n));
    auto finish = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
      for (int64_t i = row; i < row + rows; ++i) {
        for (int64_t j = column; j < column + columns; ++j) ++finished[index(i * n + j)];
      }
    };
    const Finish each_finish = finish;
    Product<K> product{k, pack_left, pack_right, out.data(), out_rows, out_columns, finishes ? &each_finish : nullptr};
    product.right_stride = right_inner.is_regular() ? right_inner.stride() : 0;
    if (left_rows.is_regular() && left_inner.is_regular() && left_inner.stride() == 1) {
      product.left_in_place = left.data();
      product.left_stride = left_rows.stride();
    }
    run(product, constant_left, constant_right);
    for (const std::atomic<int>& times : finished) EXPECT_EQ(times, finishes ? 1 : 0);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) ordered.push_back(out[index(out_rows.at(i) + out_columns.at(j))]);
    }
    return ordered;
  }

  void check(const std::vector<S>& got) const {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if constexpr (sizeof(P) == 1) {
        ASSERT_EQ(got[i], static_cast<std::uint32_t>(static_cast<int64_t>(expected[i])))
            << "element " << i << " of " << describe();
      } else {
        // Bounds every rounding in the sums of 32 products, and in the sum of those.
        const double limit = size[i] * 0x1p-24 * static_cast<double>(20 + k / 32);
        ASSERT_NEAR(got[i], expected[i], limit) << "element " << i << " of " << describe();
      }
    }
  }
  std::string describe() const { return std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n); }
};

// A matmul on `Tiles`; constant operands are packed ahead of time.
template <class K, class Tiles>
struct RunOn {
  AmxBlocking blocking;  // rows 0: default
  void operator()(Product<K>& product, bool constant_left, bool constant_right) const {
    using P = typename K::Packed;
    AmxRun<K, Tiles> run = blocking.rows ? AmxRun<K, Tiles>(product, blocking) : AmxRun<K, Tiles>(product);
    Scratch<P> left(constant_left ? run.left_size() : 1, "left"), right(constant_right ? run.right_size() : 1, "right");
    if (constant_left) run.pack_whole_left(left.data());
    if (constant_right) run.pack_whole_right(right.data());
    if (constant_left) product.packed_left = left.data();
    if (constant_right) product.packed_right = right.data();
    run.run();
  }
};

template <class K, class Tiles>
void check_shapes(std::initializer_list<std::array<int64_t, 3>> shapes) {
  using Order = typename Case<K>::Order;
  for (const auto& [m, k, n] : shapes) {
    for (const Order left : {Order::plain, Order::transposed}) {
      for (const Order right : {Order::plain, Order::transposed}) {
        const Case<K> one(m, k, n, left, right, Order::plain);
        const RunOn<K, Tiles> chosen{};
        const auto first = one.result(chosen);
        one.check(first);
        if (testing::Test::HasFatalFailure()) return;
        // Blocking and prepacking do not change a bit.
        const auto same = [&](const std::vector<typename K::Sum>& other) {
          return std::memcmp(first.data(), other.data(), first.size() * 4) == 0;
        };
        EXPECT_TRUE(same(one.result(chosen, true, true))) << one.describe();
        EXPECT_TRUE(same(one.result(chosen, false, true))) << one.describe();
        EXPECT_TRUE(same(one.result(RunOn<K, Tiles>{{32, 64, 32, 128}}))) << one.describe();
        EXPECT_TRUE(same(one.result(RunOn<K, Tiles>{{48, 32, 32, 64}}, true))) << one.describe();
      }
    }
  }
}

std::uint16_t rounded_bits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Sums rounded by the matmul equal its float32 results, rounded.
template <class Tiles>
void check_rounding() {
  using Order = Case<AmxBfloat16>::Order;
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{33, 70, 75}, {16, 300, 130}, {100, 65, 90}}) {
    const Case<AmxBfloat16> one(m, k, n, Order::plain, Order::plain, Order::plain);
    const auto sums = one.result(RunOn<AmxBfloat16, Tiles>{});
    for (const AmxBlocking& blocking : {AmxBlocking{}, AmxBlocking{32, 64, 32, 128}, AmxBlocking{128, 64, 64, 64}}) {
      std::vector<Bfloat16Bits> bfloat16s(sums.size());
      one.result([&](Product<AmxBfloat16>& product, bool, bool) {
        product.bfloat16s = bfloat16s.data();
        RunOn<AmxBfloat16, Tiles>{blocking}(product, false, false);
      });
      for (std::size_t i = 0; i < sums.size(); ++i)
        ASSERT_EQ(bfloat16s[i].bits, rounded_bits(sums[i])) << one.describe();
    }
  }
}

template <class Tiles>
void check_all_kinds() {
  check_shapes<AmxBfloat16, Tiles>({{1, 1, 1},
                                    {2, 3, 5},
                                    {16, 32, 16},
                                    {32, 64, 32},
                                    {33, 65, 35},
                                    {15, 31, 17},
                                    {16, 100, 70},
                                    {7, 33, 129},
                                    {48, 96, 47},
                                    {100, 130, 90}});
  check_shapes<AmxSignedBytes, Tiles>({{1, 1, 1},
                                       {2, 3, 5},
                                       {16, 64, 16},
                                       {32, 128, 32},
                                       {33, 129, 35},
                                       {15, 63, 17},
                                       {16, 100, 70},
                                       {7, 67, 129},
                                       {100, 130, 90}});
  check_shapes<AmxUnsignedBytes, Tiles>({{3, 5, 7}, {16, 64, 16}, {33, 129, 35}, {50, 66, 70}});
  check_shapes<AmxSignedByUnsigned, Tiles>({{3, 5, 7}, {16, 64, 16}, {33, 129, 35}, {50, 66, 70}});
  check_shapes<AmxUnsignedBySigned, Tiles>({{3, 5, 7}, {16, 64, 16}, {33, 129, 35}, {50, 66, 70}});
}

template <class K, class Tiles>
void check_scattered() {
  using Order = typename Case<K>::Order;
  const Case<K> one(34, 70, 46, Order::scattered, Order::scattered, Order::scattered);
  one.check(one.result(RunOn<K, Tiles>{}));
  one.check(one.result(RunOn<K, Tiles>{{32, 32, 32, 64}}));
  const Case<K> transposed(34, 70, 46, Order::plain, Order::plain, Order::transposed);
  transposed.check(transposed.result(RunOn<K, Tiles>{{32, 32, 32, 64}}));
}

// More rows than a block, so that the right operand is packed ahead; and few rows.
template <class K, class Tiles>
void check_threads(std::initializer_list<std::array<int64_t, 3>> shapes) {
  using Order = typename Case<K>::Order;
  for (const auto& [m, k, n] : shapes) {
    const Case<K> one(m, k, n, Order::plain, Order::plain, Order::plain);
    std::vector<typename K::Sum> first;
    for (const int threads : {1, 2, 3, 7}) {
      set_thread_count(threads);
      const auto got = one.result(RunOn<K, Tiles>{});
      if (first.empty()) one.check(first = got);
      EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * 4), 0) << one.describe() << " on " << threads;
      // Nothing waits for rows: tasks are split by columns.
      const auto split = one.result(RunOn<K, Tiles>{}, false, false, false);
      EXPECT_EQ(std::memcmp(first.data(), split.data(), split.size() * 4), 0) << one.describe() << " on " << threads;
    }
  }
  set_thread_count(2);
}

// The matmuls of attention: operands packed from rows or across them, some k of all, and what follows on the sums.
template <class Unit>
void check_panels() {
  using Panels = attention::AmxPanels<Unit>;
  const typename Panels::Session session;
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(-2, 2);
  const auto bits = [&] { return Bfloat16Bits{rounded_bits(uniform(random))}; };
  const auto value = [](Bfloat16Bits stored) { return Case<AmxBfloat16>::value(stored, true); };
  const auto size = [](int64_t count) { return static_cast<std::size_t>(count); };
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{64, 64, 32}, {50, 80, 20}, {17, 33, 16}, {100, 100, 5}}) {
    std::vector<Bfloat16Bits> left(size(m * k)), across(size(m * k)), right(size(n * k));
    for (Bfloat16Bits& element : left) element = bits();
    for (Bfloat16Bits& element : right) element = bits();
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < k; ++p) across[size(p * m + i)] = left[size(i * k + p)];
    }
    const int64_t rows = Panels::packed_rows(m), padded = Panels::padded(k), vectors = (n + 15) / 16,
                  width = vectors * 16;
    Scratch<Bfloat16Bits> packed(rows * padded, "test"), same(rows * padded, "test"), columns(width * padded, "test");
    Panels::pack_left(left.data(), k, m, k, packed.data());
    Panels::pack_left_across(across.data(), m, m, k, same.data());
    EXPECT_EQ(std::memcmp(packed.data(), same.data(), size(rows * padded * 2)), 0) << m << " x " << k;
    Panels::pack_right(right.data(), k, n, k, width, columns.data());
    Scratch<float> sums(rows * width, "test");
    std::fill_n(sums.data(), rows * width, 0.5f);
    // All k into the result, then those from 32 on once more.
    Panels::multiply(packed.data(), m, k, 0, m, 0, k, columns.data(), width, sums.data(), width, vectors, false);
    if (k > 32) {
      Panels::multiply(packed.data(), m, k, 0, m, 32, k, columns.data() + 32 * width, width, sums.data(), width,
                       vectors, true);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, absolute = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double product = (p < 32 ? 1 : 2) * value(left[size(i * k + p)]) * value(right[size(j * k + p)]);
          sum += product, absolute += std::abs(product);
        }
        ASSERT_NEAR(sums[i * width + j], sum, absolute * 0x1p-24 * 30) << i << ", " << j << " of " << m << " x " << n;
      }
    }

    // Sums as columns times factors, rounded.
    float factors[32] = {};
    for (int64_t j = 0; j < n; ++j) factors[j] = j % 3 == 1 ? 0.0f : uniform(random);
    sums[0 * width + 1] = std::numeric_limits<float>::infinity();  // its factor is 0
    std::vector<Bfloat16Bits> stored(size(n * m + 1), Bfloat16Bits{0x1234});
    Panels::store_columns(sums.data(), m, width, factors, n, stored.data());
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) {
        const std::uint16_t expected = factors[j] == 0 ? 0 : rounded_bits(sums[i * width + j] * factors[j]);
        ASSERT_EQ(stored[size(j * m + i)].bits, expected) << i << ", " << j << " of " << m << " x " << n;
      }
    }
    EXPECT_EQ(stored.back().bits, 0x1234);

    // Sums as the right operand of the next matmul.
    Scratch<Bfloat16Bits> panel(Panels::padded(m) * width, "test"), two_steps(Panels::padded(m) * width, "test"),
        narrow(m * width, "test");
    Panels::pack_rounded(sums.data(), m, width, panel.data());
    for (int64_t i = 0; i < m * width; ++i) narrow[i].bits = rounded_bits(sums[i]);
    attention::as_panel<AmxBfloat16>(narrow.data(), m, width, two_steps.data());
    EXPECT_EQ(std::memcmp(panel.data(), two_steps.data(), size(Panels::padded(m) * width * 2)), 0) << m << " x " << n;
  }
}

class AmxModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_avx512())
      GTEST_SKIP() << "packing for AMX needs AVX-512, which this processor or CAPIBARA_CPU_LEVEL lacks";
    AmxModel::faults = 0;
  }
  void TearDown() override { EXPECT_EQ(AmxModel::faults, 0) << "tiles were used where they were not configured"; }
};

TEST_F(AmxModelTest, MultipliesAnyShapeExactly) { check_all_kinds<AmxModel>(); }
TEST_F(AmxModelTest, ReadsAndWritesMemoryInAnyOrder) {
  check_scattered<AmxBfloat16, AmxModel>();
  check_scattered<AmxSignedByUnsigned, AmxModel>();
}
TEST_F(AmxModelTest, RoundsItsSums) { check_rounding<AmxModel>(); }
TEST_F(AmxModelTest, IsTheSameForAnyNumberOfThreads) {
  check_threads<AmxBfloat16, AmxModel>({{300, 70, 130}, {70, 40, 2100}, {16, 600, 200}});
  check_threads<AmxSignedBytes, AmxModel>({{300, 70, 130}, {70, 70, 2100}, {16, 1100, 200}});
}
TEST_F(AmxModelTest, MultipliesPanelsOfAttention) { check_panels<AmxModel>(); }
TEST_F(AmxModelTest, SplitsALongInnerDimension) {
  using Order = Case<AmxBfloat16>::Order;
  const Case<AmxBfloat16> longer(5, 17000, 7, Order::transposed, Order::plain,
                                 Order::plain);  // in two parts on one thread
  longer.check(longer.result(RunOn<AmxBfloat16, AmxModel>{}));
  const Case<AmxBfloat16> one(20, 9001, 18, Order::plain, Order::plain, Order::plain);
  one.check(one.result(
      [](Product<AmxBfloat16>& product, bool, bool) { run_in_parts<AmxRun<AmxBfloat16, AmxModel>>(product); }));
}
TEST_F(AmxModelTest, FlushesDenormalsAndKeepsNaN) {
  using Order = Case<AmxBfloat16>::Order;
  Case<AmxBfloat16> one(3, 40, 4, Order::plain, Order::plain, Order::plain);
  for (Bfloat16Bits& element : one.left) element.bits = 0x0001;  // denormal
  one.left[0].bits = 0x7fc0;
  const auto got = one.result(RunOn<AmxBfloat16, AmxModel>{});
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(i < 4 ? std::isnan(got[i]) : got[i] == 0) << i;
}

TEST(RoundToBfloat16, RoundsToNearestAndKeepsNaN) {
  std::mt19937 random(5);
  for (int64_t count = 0; count < 70; ++count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      const std::uint32_t bits = static_cast<std::uint32_t>(random());
      const std::uint32_t kinds[] = {bits, bits | 0x7f800000u, bits & 0xffff0000u, (bits & 0xffff0000u) | 0x8000u,
                                     0x7f800000u};
      values.push_back(std::bit_cast<float>(kinds[i % 5]));
    }
    std::vector<Bfloat16Bits> got(static_cast<std::size_t>(count) + 1, Bfloat16Bits{0x1234});
    round_to_bfloat16(values.data(), got.data(), count);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(got[i].bits, rounded_bits(values[i])) << values[i];
    EXPECT_EQ(got.back().bits, 0x1234);
  }
}

class AmxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_amx()) GTEST_SKIP() << "this processor, its kernel or CAPIBARA_CPU_LEVEL has no AMX";
  }
};
using Hardware = AmxTiles;

TEST_F(AmxTest, MultipliesAnyShapeExactly) { check_all_kinds<Hardware>(); }
TEST_F(AmxTest, ReadsAndWritesMemoryInAnyOrder) {
  check_scattered<AmxBfloat16, Hardware>();
  check_scattered<AmxSignedByUnsigned, Hardware>();
}
TEST_F(AmxTest, MultipliesPanelsOfAttention) { check_panels<Hardware>(); }
TEST_F(AmxTest, RoundsItsSums) { check_rounding<Hardware>(); }
TEST_F(AmxTest, IsTheSameForAnyNumberOfThreads) {
  check_threads<AmxBfloat16, Hardware>({{300, 70, 130}, {700, 1100, 600}, {16, 1100, 900}});
  check_threads<AmxSignedBytes, Hardware>({{300, 70, 130}, {700, 1100, 600}, {16, 1100, 900}});
}
TEST_F(AmxTest, HasTheBitsOfTheModel) {
  using Order = Case<AmxBfloat16>::Order;
  const Case<AmxBfloat16> one(50, 200, 70, Order::plain, Order::plain, Order::plain);
  const auto hardware = one.result(RunOn<AmxBfloat16, Hardware>{}), model = one.result(RunOn<AmxBfloat16, AmxModel>{});
  EXPECT_EQ(std::memcmp(hardware.data(), model.data(), model.size() * 4), 0);
}

}  // namespace
}  // namespace capibara::cpu

#endif
