// TPU kernels of the recurrences and of gelu_dropout, run by the interpreter: values against definitions in float64,
// gradients against the plain program in float64.
#include "programs.h"

namespace capibara::mosaic {
namespace {

Array scaled(uint32_t seed, const Shape& shape, double factor, double shift = 0) {
  std::vector<float> data;
  for (const double number : numbers(drawn(seed, shape))) data.push_back(float(number * factor + shift));
  return Array::from_host(DType::float32, shape, data.data());
}

double silu(double x) { return x / (1 + std::exp(-x)); }

void expect_equal_arrays(const Arrays& got, const Arrays& want, double tolerance, const std::vector<std::string>& names,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].shape(), want[i].shape()) << what << ": " << names[i];
    expect_close(got[i], want[i].to_vector<double>(), tolerance, what + ": " + names[i]);
  }
}

// The gradient kernels beside the composition in float64.
void check_gradients(const char* name, const Arrays& given, const Attrs& attrs, double tolerance,
                     const std::vector<std::string>& names, const std::string& what) {
  const Program program = bound(name, given, attrs);
  ASSERT_EQ(kernel_texts(program).size(), 1u) << what;
  Arrays wide;
  for (const Array& one : given) wide.push_back(one.astype(DType::float64));
  expect_equal_arrays(run(program, given), capibara::bind(primitive(name), wide, attrs), tolerance, names, what);
}

// ---- the selective scan ---------------------------------------------------------------------------------------------

struct ScanProblem {
  int64_t batch = 1, length, dim, state, chunk = 8;
  bool softplus = true, gated = true;
  DType dtype = DType::float32;
};

void check_scan(const ScanProblem& p, const std::string& what) {
  const Shape rows{p.batch, p.length, p.dim}, columns{p.batch, p.length, p.state};
  Arrays in = {drawn(1, rows, p.dtype),
               scaled(2, rows, 0.3, p.softplus ? -1 : 0.5).astype(p.dtype),
               scaled(3, {p.dim, p.state}, 0.3, -0.7),
               drawn(4, columns, p.dtype),
               drawn(5, columns, p.dtype),
               drawn(6, {p.dim}),
               scaled(7, {p.dim}, 0.1),
               drawn(8, {p.batch, p.dim, p.state})};
  if (p.gated) in.push_back(drawn(9, rows, p.dtype));
  const Attrs attrs = {{"chunk_size", p.chunk}, {"delta_softplus", p.softplus}, {"gated", p.gated}, {"resets", false}};
  const Program program = bound("selective_scan", in, attrs);
  ASSERT_EQ(kernel_texts(program).size(), 1u) << what;
  const Arrays results = run(program, in);

  std::vector<std::vector<double>> v;
  for (const Array& one : in) v.push_back(numbers(one));
  const int64_t chunks = (p.length + p.chunk - 1) / p.chunk;
  std::vector<double> y(v[0].size()), last = v[7];
  std::vector<double> starts(static_cast<std::size_t>(p.batch * chunks * p.state * p.dim));
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t t = 0; t < p.length; ++t) {
      for (int64_t d = 0; d < p.dim; ++d) {
        const auto at = static_cast<std::size_t>((b * p.length + t) * p.dim + d), own = static_cast<std::size_t>(d);
        const double raw = v[1][at] + v[6][own], step = p.softplus ? std::log1p(std::exp(raw)) : raw;
        double sum = v[5][own] * v[0][at];
        for (int64_t n = 0; n < p.state; ++n) {
          double& state = last[static_cast<std::size_t>((b * p.dim + d) * p.state + n)];
          if (t % p.chunk == 0)
            starts[static_cast<std::size_t>(((b * chunks + t / p.chunk) * p.state + n) * p.dim + d)] = state;
          const auto column = static_cast<std::size_t>((b * p.length + t) * p.state + n);
          state =
              std::exp(step * v[2][static_cast<std::size_t>(d * p.state + n)]) * state + step * v[0][at] * v[3][column];
          sum += v[4][column] * state;
        }
        y[at] = p.gated ? sum * silu(v[8][at]) : sum;
      }
    }
  }
  const double tolerance = p.dtype == DType::bfloat16 ? 1e-2 : 1e-5;
  expect_close(results[0], y, tolerance, what + ": y");
  expect_close(results[1], last, 1e-5, what + ": last");
  expect_close(results[2], starts, 1e-5, what + ": starts");

  Arrays saved = {drawn(10, rows, p.dtype), drawn(11, {p.batch, p.dim, p.state}), results[2]};
  saved.insert(saved.end(), in.begin(), in.end());
  check_gradients("selective_scan_grad", saved, attrs, tolerance,
                  {"du", "ddelta", "dA", "dB", "dC", "dD", "dbias", "dinitial", "dz"}, what);
}

TEST(MosaicScan, EqualsItsDefinition) {
  check_scan({.length = 5, .dim = 3, .state = 2}, "one chunk");
  check_scan({.batch = 2, .length = 19, .dim = 4, .state = 3}, "a ragged chunk");
  check_scan({.batch = 2, .length = 16, .dim = 6, .state = 5, .softplus = false, .gated = false}, "plain steps");
  check_scan({.length = 21, .dim = 384, .state = 4}, "three blocks of 128");
  check_scan({.batch = 2, .length = 20, .dim = 6, .state = 4, .chunk = 16, .dtype = DType::bfloat16}, "bfloat16");
}

// ---- the state space dual -------------------------------------------------------------------------------------------

struct SsdProblem {
  int64_t batch = 1, length, heads, dim, groups = 1, state, chunk = 8;
  bool softplus = true, gated = true;
  DType dtype = DType::float32;
};

void check_ssd(const SsdProblem& p, const std::string& what) {
  const Shape inputs{p.batch, p.length, p.heads, p.dim}, columns{p.batch, p.length, p.groups, p.state};
  const Shape state_shape{p.batch, p.heads, p.dim, p.state};
  Arrays in = {drawn(1, inputs, p.dtype),
               scaled(2, {p.batch, p.length, p.heads}, 0.3, p.softplus ? -1 : 0.5).astype(p.dtype),
               scaled(3, {p.heads}, 0.3, -0.7),
               drawn(4, columns, p.dtype),
               drawn(5, columns, p.dtype),
               drawn(6, {p.heads}),
               scaled(7, {p.heads}, 0.1),
               drawn(8, state_shape)};
  if (p.gated) in.push_back(drawn(9, inputs, p.dtype));
  const Attrs attrs = {{"chunk_size", p.chunk}, {"dt_softplus", p.softplus}, {"gated", p.gated}, {"resets", false}};
  const Program program = bound("ssd", in, attrs);
  ASSERT_EQ(kernel_texts(program).size(), 1u) << what;
  const Arrays results = run(program, in);

  std::vector<std::vector<double>> v;
  for (const Array& one : in) v.push_back(numbers(one));
  const int64_t chunks = (p.length + p.chunk - 1) / p.chunk;
  std::vector<double> y(v[0].size()), last = v[7];
  std::vector<double> starts(static_cast<std::size_t>(p.batch * chunks * p.heads * p.state * p.dim));
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t t = 0; t < p.length; ++t) {
      for (int64_t h = 0; h < p.heads; ++h) {
        const auto position = static_cast<std::size_t>((b * p.length + t) * p.heads + h);
        const auto head = static_cast<std::size_t>(h);
        const double raw = v[1][position] + v[6][head], step = p.softplus ? std::log1p(std::exp(raw)) : raw;
        const int64_t group = h / (p.heads / p.groups);
        for (int64_t d = 0; d < p.dim; ++d) {
          const auto at = position * static_cast<std::size_t>(p.dim) + static_cast<std::size_t>(d);
          double sum = v[5][head] * v[0][at];
          for (int64_t n = 0; n < p.state; ++n) {
            double& state = last[static_cast<std::size_t>(((b * p.heads + h) * p.dim + d) * p.state + n)];
            if (t % p.chunk == 0) {
              const int64_t start = ((b * chunks + t / p.chunk) * p.heads + h) * p.state + n;
              starts[static_cast<std::size_t>(start * p.dim + d)] = state;
            }
            const auto column = static_cast<std::size_t>(((b * p.length + t) * p.groups + group) * p.state + n);
            state = std::exp(step * v[2][head]) * state + step * v[0][at] * v[3][column];
            sum += v[4][column] * state;
          }
          y[at] = p.gated ? sum * silu(v[8][at]) : sum;
        }
      }
    }
  }
  const double tolerance = p.dtype == DType::bfloat16 ? 2e-2 : 2e-5;
  expect_close(results[0], y, tolerance, what + ": y");
  expect_close(results[1], last, tolerance, what + ": last");
  expect_close(results[2], starts, tolerance, what + ": starts");

  Arrays saved = {drawn(10, inputs, p.dtype), drawn(11, state_shape), results[2]};
  saved.insert(saved.end(), in.begin(), in.end());
  check_gradients("ssd_grad", saved, attrs, p.dtype == DType::bfloat16 ? 4e-2 : 5e-5,
                  {"dx", "ddt", "dA", "dB", "dC", "dD", "dbias", "dinitial", "dz"}, what);
}

TEST(MosaicSsd, EqualsItsDefinition) {
  check_ssd({.length = 5, .heads = 2, .dim = 3, .state = 4}, "one chunk");
  check_ssd({.batch = 2, .length = 19, .heads = 3, .dim = 5, .state = 4}, "a ragged chunk");
  check_ssd({.length = 16, .heads = 2, .dim = 4, .state = 6, .softplus = false, .gated = false}, "plain steps");
  check_ssd({.length = 20, .heads = 6, .dim = 64, .state = 8}, "three blocks of two heads");
  check_ssd({.length = 12, .heads = 8, .dim = 64, .groups = 2, .state = 128}, "two groups of two blocks");
  check_ssd({.batch = 2, .length = 20, .heads = 2, .dim = 8, .state = 8, .chunk = 16, .dtype = DType::bfloat16},
            "bfloat16");
}

TEST(MosaicRecurrences, LeaveResetsToThePlainProgram) {
  const Array row = drawn(1, {1, 8, 4}), column = drawn(2, {1, 8, 2}), vector = drawn(3, {4});
  const Array reset = drawn(4, {1, 8}) > Array(0.0f);
  const Arrays in = {row, row, drawn(5, {4, 2}), column, column, vector, vector, drawn(6, {1, 4, 2}), reset};
  const Attrs attrs = {{"chunk_size", 8}, {"delta_softplus", true}, {"gated", false}, {"resets", true}};
  EXPECT_EQ(kernel_texts(bound("selective_scan", in, attrs)).size(), 0u);
}

// ---- gelu and dropout -----------------------------------------------------------------------------------------------

void check_dropout(const Shape& shape, double rate, DType dtype) {
  const uint32_t words[] = {0x89abcdefu, 0x01234567u};
  const Array x = drawn(1, shape, dtype), dy = drawn(2, shape, dtype);
  const Array key = Array::from_host(DType::uint32, {2}, words);
  const Attrs attrs = {{"rate", rate}, {"approximate", true}};
  const Program forward = bound("gelu_dropout", {x, key}, attrs),
                backward = bound("gelu_dropout_grad", {dy, x, key}, attrs);
  ASSERT_EQ(kernel_texts(forward).size(), 1u);
  ASSERT_EQ(kernel_texts(backward).size(), 1u);
  const std::vector<double> xs = numbers(x), dys = numbers(dy);
  const std::vector<double> y = numbers(run(forward, {x, key})[0]), dx = numbers(run(backward, {dy, x, key})[0]);
  // The bits are those of the plain program.
  const std::vector<double> plain =
      numbers(capibara::bind(primitive("gelu_dropout"), Arrays{drawn(1, shape), key}, attrs)[0]);
  const double share = std::round((1 - rate) * 65536) / 65536, tolerance = dtype == DType::bfloat16 ? 1e-2 : 1e-5;
  int64_t dropped = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double weight = std::sqrt(2 / M_PI), inner = weight * (xs[i] + 0.044715 * xs[i] * xs[i] * xs[i]);
    const double height = std::tanh(inner), factor = plain[i] == 0 || share == 0 ? 0 : 1 / share;
    const double rise = weight * (1 + 3 * 0.044715 * xs[i] * xs[i]);
    const double derivative = (1 + height) / 2 + xs[i] / 2 * (1 - height * height) * rise;
    dropped += factor == 0;
    ASSERT_NEAR(y[i], xs[i] / 2 * (1 + height) * factor, tolerance * (1 + std::abs(xs[i])) * (1 + factor)) << i;
    ASSERT_NEAR(dx[i], dys[i] * derivative * factor, tolerance * (1 + std::abs(dys[i])) * (1 + factor)) << i;
    if (factor == 0) {
      ASSERT_EQ(std::pair(y[i], dx[i]), std::pair(0.0, 0.0)) << i;
    }
  }
  if (xs.size() > 1000) {
    EXPECT_NEAR(double(dropped) / double(xs.size()), rate, 0.05);
  }
}

TEST(MosaicDropout, DropsTheElementsThatThePlainProgramDrops) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    check_dropout({3, 5}, 0.25, dtype);
    check_dropout({2, 7, 130}, 0.5, dtype);
    check_dropout({300, 200}, 0.1, dtype);  // blocks of 128 rows, the last one ragged
    check_dropout({4, 6}, 0, dtype);
    check_dropout({4, 6}, 1, dtype);
  }
}

}  // namespace
}  // namespace capibara::mosaic
