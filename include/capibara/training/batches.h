// Batches of arbitrary examples: arrays, .npy and safetensors files, functions and streams, prefetched by threads.
#pragma once

#include <capibara/lax.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capibara::training {

// Examples by index: a batch is one or several arrays with the example as the leading dimension.
struct Examples {
  int64_t count = 0;
  // The examples with these indices, in this order. Called concurrently by several threads.
  std::function<Arrays(std::span<const int64_t> numbers)> read;
};

// The rows of arrays of equal length.
Examples array_examples(const Arrays& arrays);
// The rows of .npy files of equal length, one file for each array of a batch. The files are read by this call.
Examples npy_examples(const std::vector<std::string>& paths);
// The rows of arrays of a safetensors file, in the order of their names; by default all of them.
Examples safetensors_examples(const std::string& path, const std::vector<std::string>& names = {});

struct BatchLoaderOptions {
  int64_t batch = 8;
  bool shuffle = true;  // a different order in each pass
  uint64_t seed = 0;
  int64_t num_workers = 1;  // threads
  int64_t prefetch = 4;     // maximum number of prefetched batches
};

// Batches in an order that depends only on the options, not on the number of workers. From examples: batch n is the
// same in every run, passes repeat endlessly, and the examples left over by a pass begin the next one.
// From a stream: its results, until it returns nothing.
class BatchLoader {
 public:
  using Stream = std::function<std::optional<Arrays>()>;

  // `next` is the index of the first batch that next() returns.
  BatchLoader(Examples examples, const BatchLoaderOptions& options, int64_t next = 0);
  // A stream is read by one thread; with `next` its first batches are skipped.
  BatchLoader(Stream stream, const BatchLoaderOptions& options, int64_t next = 0);
  BatchLoader(BatchLoader&&) noexcept;
  ~BatchLoader();

  // The next batch; empty after the last of a stream. Exceptions of a source are rethrown here.
  std::optional<Arrays> next();
  int64_t position() const;  // index of the next batch
  // Any batch of examples by index; ValueError for a stream.
  Arrays batch(int64_t number) const;
  // Batches per pass, the last one completed from the next pass; absent for a stream.
  std::optional<int64_t> batches() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara::training
