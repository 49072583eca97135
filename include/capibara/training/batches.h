// Batches of any examples: arrays, .npy and safetensors files, functions and streams, made ahead by threads.
#pragma once

#include <capibara/array.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capibara::training {

// Examples by number: a batch is one or several arrays, each with an example in front.
struct Examples {
  int64_t count = 0;
  // The examples of these numbers, in this order. Called by several threads at once.
  std::function<Arrays(std::span<const int64_t> numbers)> read;
};

// The rows of arrays of equal length.
Examples array_examples(const Arrays& arrays);
// The rows of .npy files of equal length, a file for each array of a batch. Files are read when this is called.
Examples npy_examples(const std::vector<std::string>& paths);
// The rows of arrays of a safetensors file, in the order of their names; all of them where none is named.
Examples safetensors_examples(const std::string& path, const std::vector<std::string>& names = {});

struct BatchLoaderOptions {
  int64_t batch = 8;
  bool shuffle = true;  // another order in each pass
  uint64_t seed = 0;
  int64_t num_workers = 1;  // threads
  int64_t prefetch = 4;     // batches that wait, at most
};

// Batches in an order that follows from the options alone, however many workers there are. Of examples: number n is the
// same at every start, passes follow each other without end, and the examples left over by a pass begin the next one.
// Of a stream: what it returns, until it returns nothing.
class BatchLoader {
 public:
  using Stream = std::function<std::optional<Arrays>()>;

  // `next` is the number of the first batch that next() returns.
  BatchLoader(Examples examples, const BatchLoaderOptions& options, int64_t next = 0);
  // A stream is read by one thread; with `next` its first batches are left out.
  BatchLoader(Stream stream, const BatchLoaderOptions& options, int64_t next = 0);
  BatchLoader(BatchLoader&&) noexcept;
  ~BatchLoader();

  // The next batch; empty behind the last of a stream. What a source throws is thrown here.
  std::optional<Arrays> next();
  int64_t position() const;  // the number of the batch that comes next
  // Any batch of examples by number; ValueError of a stream.
  Arrays batch(int64_t number) const;
  // Batches of one pass, the last one filled up by the next pass; nothing of a stream.
  std::optional<int64_t> batches() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara::training
