// Trains a small network to tell two spirals apart, with a live progress line, and draws what it learned.
#include <capibara/capibara.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

using capibara::Array;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

struct Layer {
  Array w, b;
};
CAPIBARA_TREE(Layer, w, b)

struct State {
  std::vector<Layer> params, velocity;
};
CAPIBARA_TREE(State, params, velocity)

namespace {

std::atomic<bool> stopped{false};

// [points, 2] -> [points]: positive for the second spiral.
Array network(const std::vector<Layer>& layers, Array x) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    x = lax::dot(x, layers[i].w) + layers[i].b;
    if (i + 1 < layers.size()) x = lax::tanh(x);
  }
  return lax::squeeze(x, {1});
}

// The mean logistic loss; labels are -1 and +1.
Array loss(const std::vector<Layer>& layers, const Array& x, const Array& labels) {
  Array margin = network(layers, x) * labels;
  Array each = lax::log1p(lax::exp(-lax::abs(margin))) + lax::max(-margin, lax::zeros_like(margin));
  return lax::reduce_sum(each, {.axes = {0}}) / x.shape(0);
}

// One step of gradient descent with momentum.
std::tuple<Array, State> step(const State& state, const Array& x, const Array& labels) {
  auto [value, gradients] = jax::value_and_grad(loss)(state.params, x, labels);
  auto velocity = jax::tree::map([](Array v, Array g) { return 0.9f * v - 0.3f * g; }, state.velocity, gradients);
  auto params = jax::tree::map([](Array p, Array v) { return p + v; }, state.params, velocity);
  return {value, State{params, velocity}};
}

std::vector<Layer> make_layers(const std::vector<int64_t>& widths, Array key) {
  std::vector<Layer> layers;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    Array w =
        jax::random::normal(jax::random::fold_in(key, static_cast<int64_t>(i)), {.shape = {widths[i], widths[i + 1]}});
    layers.push_back({w * std::sqrt(2.0 / static_cast<double>(widths[i])), lax::full({widths[i + 1]}, 0.0f)});
  }
  return layers;
}

struct Points {
  std::vector<float> coordinates, labels;
};

Points two_spirals(int each) {
  Points points;
  for (int i = 0; i < each; ++i) {
    float t = static_cast<float>(i) / static_cast<float>(each);
    float radius = 0.1f + 0.9f * t, angle = 0.5f + 5.5f * t;
    for (float side : {-1.0f, 1.0f}) {
      points.coordinates.push_back(side * radius * std::cos(angle));
      points.coordinates.push_back(side * radius * std::sin(angle));
      points.labels.push_back(side);
    }
  }
  return points;
}

void show_progress(int done, int steps, float value, double seconds) {
  if (!isatty(STDOUT_FILENO) && done % (steps / 5) != 0) return;
  const int width = 30;
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i * steps < done * width ? "█" : "·";
  double left = done ? seconds / done * (steps - done) : 0;
  std::printf("%s  %s %4d/%d  loss %.4f  %4.1f s left%s", isatty(STDOUT_FILENO) ? "\r" : "", bar.c_str(), done, steps,
              static_cast<double>(value), left, isatty(STDOUT_FILENO) ? "" : "\n");
  std::fflush(stdout);
}

// The plane coloured by the network's output, with the points it was trained on.
void draw(const std::vector<Layer>& layers, const Points& points) {
  const int rows = 24, columns = 60;
  std::vector<float> grid;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      grid.push_back(-1.15f + 2.3f * (static_cast<float>(c) + 0.5f) / columns);
      grid.push_back(1.15f - 2.3f * (static_cast<float>(r) + 0.5f) / rows);
    }
  }
  std::vector<float> answer =
      network(layers, capibara::array<float>(grid, capibara::Shape{rows * columns, 2})).to_vector<float>();
  std::vector<std::string> picture;
  for (float value : answer) picture.push_back(value > 0 ? "░" : " ");
  for (std::size_t i = 0; i < points.labels.size(); ++i) {
    int c = static_cast<int>((points.coordinates[2 * i] + 1.15f) / 2.3f * columns);
    int r = static_cast<int>((1.15f - points.coordinates[2 * i + 1]) / 2.3f * rows);
    picture[static_cast<std::size_t>(r * columns + c)] = points.labels[i] > 0 ? "●" : "○";
  }
  for (int r = 0; r < rows; ++r) {
    std::string line = "  ";
    for (int c = 0; c < columns; ++c) line += picture[static_cast<std::size_t>(r * columns + c)];
    std::puts(line.c_str());
  }
}

}  // namespace

int main() {
  std::signal(SIGINT, [](int) { stopped = true; });
  const int steps = 1500;
  Points points = two_spirals(97);
  int64_t count = static_cast<int64_t>(points.labels.size());
  Array x = capibara::array<float>(points.coordinates, capibara::Shape{count, 2});
  Array labels = capibara::array<float>(points.labels);

  State state;
  state.params = make_layers({2, 24, 24, 1}, jax::random::key(0));
  state.velocity = jax::tree::map([](Array p) { return lax::zeros_like(p); }, state.params);
  auto update = jax::jit(step, {.name = "step"});

  std::printf("capibara %s: a network of 2-24-24-1 learns to tell two spirals apart\n", capibara::version());
  auto start = std::chrono::steady_clock::now();
  float value = 0;
  for (int i = 1; i <= steps && !stopped; ++i) {
    Array l;
    std::tie(l, state) = update(state, x, labels);
    value = l.item<float>();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i % 10 == 0 || i == steps) show_progress(i, steps, value, seconds);
  }
  std::puts("");
  if (stopped) {
    std::puts("  stopped");
    return 130;
  }
  std::vector<float> answers = network(state.params, x).to_vector<float>();
  int right = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) right += (answers[i] > 0) == (points.labels[i] > 0);
  draw(state.params, points);
  std::printf("  %d of %d points on the right side (○ white, ● shaded)\n", right, static_cast<int>(count));
  return right > count * 9 / 10 ? 0 : 1;
}
