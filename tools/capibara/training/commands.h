// What the commands that train and sample share.
#pragma once

#include <capibara/training.h>

#include <atomic>
#include <string>

#include "command.h"

namespace capibara::command {

int demo(const Arguments& arguments);
int train(const Arguments& arguments);
int sample(const Arguments& arguments);
int chat(const Arguments& arguments);

// Set by Ctrl-C while one of these exists.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  const std::atomic<bool>& interrupted() const;
};

// Trains a run to its end with a live line; false where Ctrl-C came. Losses and their picture are written with each
// checkpoint.
bool train_visibly(const training::TrainingRun& run, training::Trainer& trainer);

// Prints what follows a prompt while it is generated.
void print_sample(const training::TrainingRun& run, const training::Parameters& parameters, const std::string& prompt,
                  const training::GenerateOptions& options, const std::atomic<bool>* stop = nullptr);

// GFLOP/s of a large matmul on this machine, measured: the peak that shares are of.
double measure_peak();

}  // namespace capibara::command
