// Batches of arbitrary examples, prefetched by threads.
#include <capibara/training/batches.h>

#include <capibara/error.h>
#include <capibara/safetensors.h>

#include <cstring>

#include "io/files/npy.h"
#include "models/training/ordered_workers.h"
#include "models/training/shuffle.h"

namespace capibara::training {

namespace {

Examples rows_of(const char* operation, const Arrays& arrays, const std::vector<std::string>& names) {
  if (arrays.empty()) throw ValueError(concat(operation, ": expected at least one array, got none"));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].ndim() > 0 && arrays[i].shape(0) == arrays[0].shape(0) && arrays[i].shape(0) > 0) continue;
    throw ValueError(concat(operation, ": expected arrays with one and the same number of rows, got ",
                            to_string(arrays[i].type()), " (", names[i], ")",
                            i == 0 ? "" : concat(" beside ", to_string(arrays[0].type()), " (", names[0], ")")));
  }
  Examples examples;
  examples.count = arrays[0].shape(0);
  examples.read = [arrays](std::span<const int64_t> numbers) {
    Arrays batch;
    for (const Array& array : arrays) {
      Shape shape = array.shape();
      const auto bytes = static_cast<std::size_t>(array.size() / shape[0] * storage_size(array.dtype()));
      shape[0] = static_cast<int64_t>(numbers.size());
      std::vector<std::byte> rows(bytes * numbers.size());
      const auto* from = reinterpret_cast<const std::byte*>(array.raw_data());
      for (std::size_t i = 0; i < numbers.size() && bytes > 0; ++i)
        std::memcpy(rows.data() + i * bytes, from + static_cast<std::size_t>(numbers[i]) * bytes, bytes);
      batch.push_back(Array::from_host(array.dtype(), shape, rows.data()));
    }
    return batch;
  };
  return examples;
}

void check(const BatchLoaderOptions& options, int64_t next) {
  struct Field {
    const char* name;
    int64_t value;
  };
  const Field fields[] = {
      {"batch", options.batch}, {"num_workers", options.num_workers}, {"prefetch", options.prefetch}};
  for (const Field& field : fields) {
    if (field.value < 1) throw ValueError(concat("BatchLoader: ", field.name, " must be positive, got ", field.value));
  }
  if (next < 0) throw ValueError(concat("BatchLoader: the number of the first batch must not be negative, got ", next));
}

}  // namespace

Examples array_examples(const Arrays& arrays) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arrays.size(); ++i) names.push_back(concat("array ", i));
  return rows_of("array_examples", arrays, names);
}

Examples npy_examples(const std::vector<std::string>& paths) {
  Arrays arrays;
  for (const std::string& path : paths) arrays.push_back(read_npy(path));
  return rows_of("npy_examples", arrays, paths);
}

Examples safetensors_examples(const std::string& path, const std::vector<std::string>& names) {
  const SafetensorsFile file(path);
  const std::vector<std::string> chosen = names.empty() ? file.names() : names;
  Arrays arrays;
  for (const std::string& name : chosen) arrays.push_back(file.read(name));
  return rows_of("safetensors_examples", arrays, chosen);
}

struct BatchLoader::State {
  Examples examples;
  BatchLoaderOptions options;
  int64_t position = 0;
  std::unique_ptr<OrderedWorkers<Arrays>> workers;

  Arrays batch(int64_t number) const {
    const auto count = static_cast<uint64_t>(examples.count);
    std::vector<int64_t> numbers;
    for (int64_t row = 0; row < options.batch; ++row) {
      const auto sample = static_cast<uint64_t>(number * options.batch + row);
      const uint64_t key = mixed(options.seed ^ mixed(sample / count)), index = sample % count;
      numbers.push_back(static_cast<int64_t>(options.shuffle ? permuted(index, count, key) : index));
    }
    return examples.read(numbers);
  }
};

BatchLoader::BatchLoader(Examples examples, const BatchLoaderOptions& options, int64_t next)
    : state_(std::make_unique<State>()) {
  check(options, next);
  if (examples.count < 1 || !examples.read) {
    throw ValueError(concat("BatchLoader: expected a source of at least one example, got ", examples.count));
  }
  state_->examples = std::move(examples);
  state_->options = options;
  state_->position = next;
  state_->workers = std::make_unique<OrderedWorkers<Arrays>>(
      [state = state_.get()](int64_t number) { return std::optional(state->batch(number)); }, next, options.num_workers,
      options.prefetch);
}

BatchLoader::BatchLoader(Stream stream, const BatchLoaderOptions& options, int64_t next)
    : state_(std::make_unique<State>()) {
  check(options, next);
  if (options.num_workers != 1) {
    throw ValueError(
        concat("BatchLoader: a stream is read by one worker, since its batches have an order, got num_workers=",
               options.num_workers, "; give examples by number (a count and a function) for several"));
  }
  state_->options = options;
  state_->position = next;
  auto left_out = std::make_shared<int64_t>(next);
  state_->workers = std::make_unique<OrderedWorkers<Arrays>>(
      [stream = std::move(stream), left_out](int64_t) -> std::optional<Arrays> {
        for (; *left_out > 0; --*left_out) {
          if (!stream()) return std::nullopt;
        }
        return stream();
      },
      next, 1, options.prefetch);
}

BatchLoader::BatchLoader(BatchLoader&&) noexcept = default;
BatchLoader::~BatchLoader() = default;

std::optional<Arrays> BatchLoader::next() {
  std::optional<Arrays> batch = state_->workers->next();
  if (batch) ++state_->position;
  return batch;
}

int64_t BatchLoader::position() const { return state_->position; }

Arrays BatchLoader::batch(int64_t number) const {
  if (!state_->examples.read) throw ValueError("BatchLoader.batch: a stream has no batches by number");
  if (number < 0) throw ValueError(concat("BatchLoader.batch: the number must not be negative, got ", number));
  return state_->batch(number);
}

std::optional<int64_t> BatchLoader::batches() const {
  if (!state_->examples.read) return std::nullopt;
  return (state_->examples.count + state_->options.batch - 1) / state_->options.batch;
}

}  // namespace capibara::training
