// Declarations shared by the commands that train and sample.
#pragma once

#include <capibara/training.h>

#include <atomic>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "command.h"

namespace capibara::command {

int demo(const Arguments& arguments);
int train(const Arguments& arguments);
int sample(const Arguments& arguments);
int chat(const Arguments& arguments);

// Catches signals while it exists: Ctrl-C, or all signals that request the end of a training run.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::vector<int> signals = {SIGINT});
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  const std::atomic<bool>& interrupted() const;
  int caught() const;  // the last signal; 0 if none arrived

 private:
  std::vector<std::pair<int, void (*)(int)>> before_;  // signal, previous handler
};

// Trains a run to its end with a live progress line; returns the signal that stopped it, or 0. Losses and their plot
// are written with each checkpoint.
int train_visibly(const training::TrainingRun& run, training::Trainer& trainer);

// The folder of a command that takes one at most; build/demo by default.
std::string folder_of(const Arguments& arguments);

// A trainer in the state of the run's newest checkpoint, which must exist.
training::Trainer trained(const training::TrainingRun& run);

// Prints what follows a prompt while it is generated.
void print_sample(const training::TrainingRun& run, const training::Parameters& parameters, const std::string& prompt,
                  const training::GenerateOptions& options, const std::atomic<bool>* stop = nullptr);

// Measured GFLOP/s of a large matmul on this machine: the peak for utilisation figures.
double measure_peak();

}  // namespace capibara::command
