// The live progress line of a training run, and the peak that its speed is compared with.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>

#include <capibara/jit.h>
#include <capibara/lax.h>

#include "commands.h"

namespace capibara::command {

namespace {

std::atomic<bool> stopped{false};
std::atomic<int> signal_caught{0};
constexpr double silence_seconds = 30;  // maximum time between two lines in a log

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

InterruptGuard::InterruptGuard(std::vector<int> signals) {
  stopped = false;
  signal_caught = 0;
  for (const int signal : signals) {
    auto* before = std::signal(signal, [](int number) {
      signal_caught = number;
      stopped = true;
    });
    before_.emplace_back(signal, before);
    if (signal == SIGHUP && before == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup sets SIG_IGN
  }
}

InterruptGuard::~InterruptGuard() {
  for (const auto& [signal, handler] : before_) std::signal(signal, handler);
}

const std::atomic<bool>& InterruptGuard::interrupted() const { return stopped; }

int InterruptGuard::caught() const { return signal_caught; }

double measure_peak() {
  constexpr int64_t n = 1024;
  auto multiply = jax::jit([](const Array& a, const Array& b) { return jax::lax::dot(a, b); }, {.name = "peak"});
  const Array a = jax::lax::full({n, n}, 1.0f);
  multiply(a, a).block_until_ready();
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const auto start = std::chrono::steady_clock::now();
    multiply(a, a).block_until_ready();
    best = std::max(best, 2.0 * n * n * n / seconds_since(start) / 1e9);
  }
  return best;
}

int train_visibly(const training::TrainingRun& run, training::Trainer& trainer) {
  const training::TrainerConfig& config = trainer.config();
  const InterruptGuard guard({SIGINT, SIGTERM, SIGHUP});
  const bool live = isatty(STDOUT_FILENO) != 0;
  const double peak = measure_peak();
  const int64_t tokens = config.accumulate * config.batch * config.length;
  const double operations = 3 * run.model().flops_per_token(config.length) * static_cast<double>(tokens);
  std::vector<double> losses = run.losses();
  losses.resize(static_cast<std::size_t>(trainer.steps_done()), std::numeric_limits<double>::quiet_NaN());
  const int64_t first = trainer.steps_done();
  auto compiling = std::make_unique<Waiting>("  compiling");  // until the first step is over
  auto start = std::chrono::steady_clock::now();
  double shown = -1, average = losses.empty() ? std::numeric_limits<double>::quiet_NaN() : losses.back();
  int64_t timed_from = first;
  auto on_step = [&](const training::StepReport& report) {
    losses.push_back(report.loss);
    if (std::isfinite(report.loss)) average = std::isfinite(average) ? 0.9 * average + 0.1 * report.loss : report.loss;
    if (report.step == first + 1) {  // the first step compiles
      compiling.reset();
      std::printf("%s  compiled in %.1f s\n", live ? "\r" : "", seconds_since(start));
      std::fflush(stdout);
      start = std::chrono::steady_clock::now();
      timed_from = report.step;
    }
    if (report.skipped)
      std::printf("%s  step %ld left out: loss %.3g\n", live ? "\r" : "", static_cast<long>(report.step), report.loss);
    if (report.checkpoint) run.write_losses(losses);  // written first: losses past a checkpoint are dropped, not missed
    const double seconds = seconds_since(start);
    const bool last = report.step == config.steps;
    const bool due = live ? seconds - shown > 0.1
                          : report.step % std::max<int64_t>(1, config.steps / 20) == 0 ||
                                seconds - std::max(shown, 0.0) > silence_seconds;
    if (!due && !last) return;
    shown = seconds;
    const double pace = static_cast<double>(report.step - timed_from) / std::max(seconds, 1e-9);
    const double speed = pace * operations / 1e9;
    const double left = pace > 0 ? static_cast<double>(config.steps - report.step) / pace : 0;
    std::printf("%s  step %ld/%ld  loss %.3f  %.0f tokens/s  %.1f GFLOP/s (%.0f %% of peak)  %.0f s left%s",
                live ? "\r\033[K" : "", static_cast<long>(report.step), static_cast<long>(config.steps), average,
                pace * static_cast<double>(tokens), speed, 100 * speed / peak, left, live && !last ? "" : "\n");
    std::fflush(stdout);
  };
  std::printf("  peak: %.0f GFLOP/s, of a matmul of 1024 x 1024\n", peak);
  std::fflush(stdout);
  const bool finished = trainer.train(run.tokens(), {.last = run.first_held_out()}, on_step, &guard.interrupted());
  compiling.reset();
  run.write_losses(losses);
  return finished ? 0 : guard.caught();
}

}  // namespace capibara::command
