// Eight threads that trace, transform and run equal and different functions get the results of one thread.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using capibara::Array;
using capibara::Arrays;
using capibara::DType;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

namespace {

constexpr int thread_count = 8;

// Runs body(thread) on every thread at once; the first exception is raised here.
void on_threads(const std::function<void(int)>& body) {
  std::atomic<int> waiting{thread_count};
  std::exception_ptr failure;
  std::mutex lock;
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      try {
        body(t);
      } catch (...) {
        std::lock_guard guard(lock);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

bool same(const Array& a, const Array& b) {
  return a.type() == b.type() &&
         std::memcmp(a.raw_data(), b.raw_data(),
                     static_cast<std::size_t>(a.size() * capibara::storage_size(a.dtype()))) == 0;
}

Array input(int seed) {
  std::vector<float> values;
  for (int i = 0; i < 6; ++i) values.push_back(0.1f * static_cast<float>(i + 1) + 0.01f * static_cast<float>(seed));
  return capibara::array<float>(values, capibara::Shape{2, 3});
}

Array total(const Array& x) { return lax::reduce_sum(x, {.axes = {0, 1}}); }
Array layer(const Array& x) { return lax::tanh(x * x + 1.0f); }

// Bodies that share nested programs, memo tables and the catalog.
const std::vector<std::function<Array(Array)>>& bodies() {
  static const std::vector<std::function<Array(Array)>> all = {
      [](Array x) { return lax::sin(x) * x; },
      [](Array x) { return jax::jit(layer)(jax::jit(layer)(x)); },
      [](Array x) { return jax::grad([](Array v) { return total(jax::jit(layer)(v)); })(x); },
      [](Array x) { return jax::vmap(jax::jit([](Array v) { return lax::sort(v); }))(x); },
      [](Array x) {
        return lax::scan([](Array c, Array v) { return std::pair(c + v, c * v); }, lax::index_in_dim(x, 0, 0, false), x)
            .second;
      },
      [](Array x) { return jax::grad([](Array v) { return total(jax::checkpoint(layer)(v)); })(x); },
      [](Array x) {
        return lax::dot(x, lax::transpose(x, {1, 0}));
      },
      [](Array x) {
        return x + jax::random::normal(jax::random::key(3), {.shape = {2, 3}});
      },
      [](Array x) { return std::get<1>(jax::jvp(jax::grad([](Array v) { return total(layer(v)); }), x, x + 1.0f)); },
  };
  return all;
}

}  // namespace

TEST(Threads, EqualFunctionsAgree) {
  for (std::size_t b = 0; b < bodies().size(); ++b) {
    Array want = bodies()[b](input(1));
    on_threads([&](int) {
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(same(bodies()[b](input(1)), want)) << "body " << b;
    });
  }
}

TEST(Threads, DifferentFunctionsAgree) {
  Arrays want;
  for (std::size_t b = 0; b < bodies().size(); ++b) want.push_back(bodies()[b](input(2)));
  on_threads([&](int t) {
    for (std::size_t i = 0; i < 3 * bodies().size(); ++i) {
      std::size_t b = (i + static_cast<std::size_t>(t)) % bodies().size();
      EXPECT_TRUE(same(bodies()[b](input(2)), want[b])) << "body " << b;
    }
  });
}

// All threads fill one cache at once, with the same and with different shapes.
TEST(Threads, OneJittedFunctionIsShared) {
  auto f = jax::jit([](Array x) { return lax::exp(x) - x; });
  on_threads([&](int t) {
    for (int64_t n = 1; n <= 10; ++n) {
      Array x = lax::full({n, 1 + (t % 2)}, Array(0.5f * static_cast<float>(t)), DType::float32);
      EXPECT_TRUE(same(f(x), lax::exp(x) - x));
    }
  });
  EXPECT_EQ(f.cache_size(), 20u);
}

TEST(Threads, ProgramsHaveOneText) {
  auto program = [](int seed) {
    return jax::make_jaxpr([](Array x) { return jax::grad([](Array v) { return total(jax::jit(layer)(v)); })(x); })(
               input(seed))
        .to_string();
  };
  std::string want = program(0);
  on_threads([&](int t) {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(program(t), want);
  });
}

TEST(Threads, TextsAreWrittenAndReadAtOnce) {
  std::string want = jax::jit([](Array x) { return layer(layer(x)); }).lower(input(0)).as_text();
  on_threads([&](int) {
    for (int i = 0; i < 5; ++i) {
      std::string text = jax::jit([](Array x) { return layer(layer(x)); }).lower(input(0)).as_text();
      EXPECT_EQ(text, want);
      EXPECT_EQ(capibara::to_stablehlo(capibara::from_stablehlo(text)),
                capibara::to_stablehlo(capibara::from_stablehlo(want)));
    }
  });
}

// Settings are thread-local.
TEST(Threads, ConfigurationIsOwn) {
  on_threads([&](int t) {
    capibara::Config settings = capibara::config();
    settings.enable_x64 = t % 2 == 1;
    capibara::ConfigScope scope(settings);
    for (int i = 0; i < 20; ++i) {
      DType want = t % 2 ? DType::float64 : DType::float32;
      EXPECT_EQ(capibara::array<double>({1.0, 2.0}).dtype(), want);
      EXPECT_EQ(jax::jit([](Array x) { return lax::sin(x) + lax::convert_element_type(Array(1.0), x.dtype()); })(
                    capibara::array<double>({1.0, 2.0}))
                    .dtype(),
                want);
    }
  });
}

// A tracer is not valid on another thread.
TEST(Threads, TracersDoNotCross) {
  EXPECT_THROW(jax::jit([](Array x) {
                 std::exception_ptr failure;
                 std::thread([&] {
                   try {
                     lax::sin(x);
                   } catch (...) {
                     failure = std::current_exception();
                   }
                 }).join();
                 if (failure) std::rethrow_exception(failure);
                 return x;
               })(input(0)),
               capibara::Error);
}
