// Trains a small network to tell two spirals apart, and draws what it has learnt.
#include <capibara/capibara.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include <unistd.h>

using capibara::Array;
using capibara::Shape;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

struct Layer { Array w, b; };
CAPIBARA_TREE(Layer, w, b)
using Network = std::vector<Layer>;

// Adam: the moments have the structure of the network.
struct State {
  Network network, mean, variance;
  Array step;
};
CAPIBARA_TREE(State, network, mean, variance, step)

Network make_network(const std::vector<int64_t>& widths, int seed) {
  Network network;
  Array key = jax::random::key(seed);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    Array w = jax::random::normal(jax::random::fold_in(key, Array(static_cast<int>(i))), {.shape = Shape{widths[i], widths[i + 1]}});
    network.push_back({w * std::sqrt(2.0 / static_cast<double>(widths[i])), lax::full({widths[i + 1]}, 0.0f, capibara::DType::float32)});
  }
  return network;
}

// [points, 2] -> [points]: positive on the first spiral.
Array logits(const Network& network, Array x) {
  for (std::size_t i = 0; i < network.size(); ++i) {
    x = lax::dot(x, network[i].w) + network[i].b;
    if (i + 1 < network.size()) x = lax::sin(x);
  }
  return x.reshape({-1});
}

// Cross entropy with labels of +1 and -1.
Array loss(const Network& network, const Array& x, const Array& labels) {
  Array margin = logits(network, x) * labels;
  Array each = lax::log1p(lax::exp(-lax::abs(margin))) + lax::max(-margin, lax::zeros_like(margin));
  return lax::reduce_sum(each, {.axes = {0}}) / x.shape(0);
}

std::tuple<Array, State> train_step(const State& state, const Array& x, const Array& labels) {
  auto [value, gradient] = jax::value_and_grad(loss)(state.network, x, labels);
  State next;
  next.step = state.step + 1.0f;
  next.mean = jax::tree::map([](Array m, Array g) { return 0.9f * m + 0.1f * g; }, state.mean, gradient);
  next.variance = jax::tree::map([](Array v, Array g) { return 0.99f * v + 0.01f * g * g; }, state.variance, gradient);
  Array mean_scale = 1.0f - lax::pow(Array(0.9f), next.step), variance_scale = 1.0f - lax::pow(Array(0.99f), next.step);
  next.network = jax::tree::map(
      [&](Array p, Array m, Array v) { return p - 0.005f * (m / mean_scale) / (lax::sqrt(v / variance_scale) + 1e-8f); },
      state.network, next.mean, next.variance);
  return {value, next};
}

struct Points {
  std::vector<float> coordinates, labels;
};

Points spirals(int per_arm) {
  Points points;
  for (int arm = 0; arm < 2; ++arm) {
    for (int i = 0; i < per_arm; ++i) {
      double t = 0.15 + 0.85 * i / per_arm, angle = 3.2 * 3.14159265 * t * 0.75 + 3.14159265 * arm;
      points.coordinates.push_back(static_cast<float>(2 * t * std::cos(angle)));
      points.coordinates.push_back(static_cast<float>(2 * t * std::sin(angle)));
      points.labels.push_back(arm == 0 ? 1.0f : -1.0f);
    }
  }
  return points;
}

void draw(const Network& network, const Points& points) {
  constexpr int rows = 21, columns = 46;
  std::vector<float> grid;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      grid.push_back(static_cast<float>(-2.2 + 4.4 * c / (columns - 1)));
      grid.push_back(static_cast<float>(2.2 - 4.4 * r / (rows - 1)));
    }
  }
  auto values = jax::jit(logits)(network, capibara::array<float>(grid, Shape{rows * columns, 2})).to_vector<float>();
  std::vector<std::string> picture(rows, std::string(columns, ' '));
  for (std::size_t i = 0; i < values.size(); ++i) picture[i / columns][i % columns] = values[i] > 0 ? '.' : ' ';
  for (std::size_t i = 0; i < points.labels.size(); ++i) {
    int c = static_cast<int>(std::lround((points.coordinates[2 * i] + 2.2) / 4.4 * (columns - 1)));
    int r = static_cast<int>(std::lround((2.2 - points.coordinates[2 * i + 1]) / 4.4 * (rows - 1)));
    picture[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)] = points.labels[i] > 0 ? 'o' : 'x';
  }
  for (const std::string& line : picture) std::printf("  %s\n", line.c_str());
}

int main() {
  Points points = spirals(96);
  Array x = capibara::array<float>(points.coordinates, Shape{static_cast<int64_t>(points.labels.size()), 2});
  Array labels = capibara::array<float>(points.labels);

  State state;
  state.network = make_network({2, 32, 32, 1}, 0);
  state.mean = jax::tree::map([](Array p) { return lax::zeros_like(p); }, state.network);
  state.variance = state.mean;
  state.step = lax::full({}, 0.0f, capibara::DType::float32);

  auto update = jax::jit(train_step, {.name = "train_step"});
  std::printf("Two spirals of %zu points, a network 2-32-32-1, gradients by reverse mode, one jitted step.\n", points.labels.size() / 2);
  const bool live = isatty(fileno(stdout)) != 0;
  const int steps = 600;
  auto start = std::chrono::steady_clock::now();
  float value = 0;
  for (int step = 1; step <= steps; ++step) {
    Array current;
    std::tie(current, state) = update(state, x, labels);
    value = current.item<float>();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (live) {
      int done = step * 30 / steps;
      std::printf("\r  [%s%s] step %3d  loss %.4f  %.0f steps/s ", std::string(static_cast<std::size_t>(done), '#').c_str(),
                  std::string(static_cast<std::size_t>(30 - done), '-').c_str(), step, value, step / seconds);
      std::fflush(stdout);
    } else if (step % 200 == 0) {
      std::printf("  step %3d  loss %.4f\n", step, value);
    }
  }
  std::vector<float> got = jax::jit(logits)(state.network, x).to_vector<float>();
  int right = 0;
  for (std::size_t i = 0; i < got.size(); ++i) right += (got[i] > 0) == (points.labels[i] > 0);
  std::printf("%s  %d of %zu points on the right side\n\n", live ? "\n" : "", right, got.size());
  draw(state.network, points);
  std::printf("\n  o and x: the points; dots: where the network answers o.\n");
  return right == static_cast<int>(got.size()) ? 0 : 1;
}
