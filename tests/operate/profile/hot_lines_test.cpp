// Ten programs in which one line does nearly all the work: profiles attribute it to that line, in the median of runs.
#include <algorithm>
#include <functional>
#include <vector>

#include "operate/profile/programs.h"

namespace capibara {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;
namespace profile = capibara::profile;

using HotLines = Native;

// The share of the time attributed to a line.
double share_of_line(const profile::Profile& taken, int line) {
  double all = 0, own = 0;
  for (const profile::Slot& slot : taken.slots) {
    all += static_cast<double>(slot.nanoseconds);
    if (slot.file == "model.py" && slot.line == line) own += static_cast<double>(slot.nanoseconds);
  }
  return all > 0 ? own / all : 0;
}

struct Hot {
  const char* name;
  int line;
  std::function<Arrays()> run;
};

// Programs in which one line has far more operations or bytes than all others.
std::vector<Hot> hot_programs() {
  static const Array square = filled({512, 512}, 0.01), wide = filled({1 << 20}, 0.7), image = filled({4, 16, 48, 48}),
                     taps = filled({32, 16, 5, 5}), small = filled({32, 32}, 0.1), batch = filled({24, 128, 128}, 0.05);
  static const auto matmul = jax::jit([](Array a, Array s) {
    Array b, c;
    {
      const Line line(1);
      b = jnp::sin(s) + 1.0;
    }
    {
      const Line line(2);
      a = lax::dot(a, a);
    }
    {
      const Line line(3);
      c = jnp::sum(a) + jnp::sum(b);
    }
    return c;
  });
  static const auto functions = jax::jit([](Array w, Array s) {
    Array a, b;
    {
      const Line line(1);
      a = lax::dot(s, s);
    }
    {
      const Line line(2);
      b = w;
      for (int i = 0; i < 12; ++i) b = jnp::sin(b) * 1.01;
    }
    {
      const Line line(3);
      return b + jnp::sum(a);
    }
  });
  static const auto convolution = jax::jit([](Array x, Array k) {
    Array y;
    {
      const Line line(1);
      x = x * 0.5;
    }
    {
      const Line line(2);
      y = lax::conv(x, k, {1, 1}, "SAME");
    }
    {
      const Line line(3);
      return jnp::sum(y);
    }
  });
  static const auto sorting = jax::jit([](Array w) {
    Array y;
    {
      const Line line(1);
      w = jnp::flip(w) * 3.0;
    }
    {
      const Line line(2);
      y = jnp::sort(jnp::cos(jnp::sort(jnp::sin(w * 12345.0)) * 54321.0));
    }
    {
      const Line line(3);
      return y + 1.0;
    }
  });
  static const auto body = jax::jit([](Array a) {
    Array y;
    {
      const Line line(1);
      a = a + 1e-6;
    }
    y = lax::fori_loop(
        0, 10,
        [](Array, Array c) {
          Array next;
          {
            const Line line(2);
            next = lax::dot(c, c);
          }
          {
            const Line line(3);
            return next * 0.01;
          }
        },
        a);
    {
      const Line line(4);
      return jnp::sum(y);
    }
  });
  static const auto batched = jax::jit([](Array b, Array s) {
    Array y;
    {
      const Line line(1);
      s = lax::dot(s, s);
    }
    {
      const Line line(2);
      y = jnp::matmul(b, b);
    }
    {
      const Line line(3);
      return jnp::sum(y) + jnp::sum(s);
    }
  });
  static const auto branch = jax::jit([](Array a, Array s) {
    return lax::cond(
        jnp::sum(s) > 0.0,
        [](Array x) {
          const Line line(2);
          return lax::dot(x, x);
        },
        [](Array x) {
          const Line line(3);
          return x + 1.0;
        },
        a);
  });
  static const auto cumulative = jax::jit([](Array w, Array s) {
    Array y;
    {
      const Line line(1);
      s = lax::dot(s, s);
    }
    {
      const Line line(2);
      y = jnp::argsort(jnp::cos(w * 54321.0));
    }
    {
      const Line line(3);
      return jnp::sum(s) + jnp::sum(y);
    }
  });
  static const auto factor = jax::jit([](Array a) {
    Array y;
    {
      const Line line(1);
      a = a * 0.001 + jnp::eye(512) * 4.0;
    }
    {
      const Line line(2);
      y = jnp::linalg::cholesky(a);
    }
    {
      const Line line(3);
      return jnp::sum(y);
    }
  });
  static const auto gradient = jax::jit(jax::grad([](Array a) {
    Array y;
    {
      const Line line(1);
      a = a * 1.5;
    }
    {
      const Line line(2);
      y = lax::dot(lax::dot(a, a), a);
    }
    {
      const Line line(3);
      return jnp::sum(y * 2.0);
    }
  }));
  return {{"matmul", 2, [] { return Arrays{matmul(square, small)}; }},
          {"functions", 2, [] { return Arrays{functions(wide, small)}; }},
          {"convolution", 2, [] { return Arrays{convolution(image, taps)}; }},
          {"sort", 2, [] { return Arrays{sorting(wide)}; }},
          {"loop body", 2, [] { return Arrays{body(square)}; }},
          {"batched matmul", 2, [] { return Arrays{batched(batch, small)}; }},
          {"branch", 2, [] { return Arrays{branch(square, small)}; }},
          {"argsort", 2, [] { return Arrays{cumulative(wide, small)}; }},
          {"cholesky", 2, [] { return Arrays{factor(square)}; }},
          {"gradient", 2, [] { return Arrays{gradient(square)}; }}};
}

// The run whose hot line has the median share: other programs may preempt a run, and a profiler that finds the right
// line only in a few runs is wrong.
profile::Profile median_profile(const Hot& hot) {
  const auto work = [&] {
    for (const Array& out : hot.run()) out.block_until_ready();
  };
  std::vector<profile::Profile> runs = {profiled(work)};
  while (runs.size() < 9) {
    profile::start();
    work();
    runs.push_back(profile::stop());
  }
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(), [&](const profile::Profile& a, const profile::Profile& b) {
    return share_of_line(a, hot.line) < share_of_line(b, hot.line);
  });
  return *middle;
}

TEST_F(HotLines, AreBlamed) {
  for (const Hot& hot : hot_programs()) {
    const profile::Profile taken = median_profile(hot);
    EXPECT_GT(share_of_line(taken, hot.line), 0.5) << hot.name << "\n" << to_string(profile::summarise(taken));
    const profile::Summary summary = profile::summarise(taken);
    double shares = 0, of_the_line = 0;  // a line may have several rows
    for (const profile::Row& row : summary.rows) {
      shares += row.share;
      if (row.source == "model.py:2") of_the_line += row.share;
    }
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_GT(of_the_line, 0.5) << hot.name << "\n" << to_string(summary);
  }
}

}  // namespace
}  // namespace capibara
