// jax::multihost_utils: values exchanged between processes as arrays of the host.
#include <capibara/distributed.h>

#include <algorithm>
#include <cstring>

#include "core/processes/exchange.h"
#include "core/processes/multihost.h"

namespace capibara::processes {

namespace {

Call call_for(const char* name, const Array& x, const std::string& line, std::shared_ptr<const void> owner) {
  return {concat(name, " of ", to_string(x.type())), line, {}, true, std::move(owner)};
}

std::size_t bytes_of(const Array& x) { return static_cast<std::size_t>(x.size() * storage_size(x.dtype())); }

// The input and the output of a call, alive as long as it runs.
struct Ends {
  Array from;
  Buffer to;
};

Array made_of(const Array& like, Shape shape, const Buffer& buffer) {
  return Array::from_buffer({std::move(shape), like.dtype()}, buffer);
}

}  // namespace

Array all_gather(const Array& x, bool tiled, const std::string& line) {
  const bool stack = !tiled || x.ndim() == 0;
  const int64_t count = jax::process_count();
  Shape shape = x.shape();
  if (stack)
    shape.insert(shape.begin(), count);
  else
    shape[0] *= count;
  if (count == 1) return x.reshape(shape);
  auto ends = std::make_shared<Ends>(Ends{x, Buffer::allocate(bytes_of(x) * static_cast<std::size_t>(count))});
  exchange()
      .all_gather(call_for("process_allgather", x, line, ends), x.raw_data(), ends->to.mutable_data(), bytes_of(x))
      .wait();
  return made_of(x, shape, ends->to);
}

// All processes first learn which one is the source.
Array broadcast(const Array& x, std::optional<bool> is_source, const std::string& line) {
  if (jax::process_count() == 1) return x;
  int source = 0;
  if (is_source) {
    const std::vector<int32_t> all = all_gather(array<int32_t>({*is_source ? 1 : 0}), true, line).to_vector<int32_t>();
    if (std::count(all.begin(), all.end(), 1) != 1) {
      throw ValueError(concat("broadcast_one_to_all: exactly one process must be the source, got ",
                              std::count(all.begin(), all.end(), 1)));
    }
    source = static_cast<int>(std::find(all.begin(), all.end(), 1) - all.begin());
  }
  auto ends = std::make_shared<Ends>(Ends{x, Buffer::allocate(bytes_of(x))});
  if (bytes_of(x)) std::memcpy(ends->to.mutable_data(), x.raw_data(), bytes_of(x));
  exchange()
      .broadcast(call_for("broadcast_one_to_all", x, line, ends), ends->to.mutable_data(), bytes_of(x), source)
      .wait();
  return made_of(x, x.shape(), ends->to);
}

Array reduce(const Array& x, Reduction kind, const std::string& line) {
  const int64_t lanes = x.shape(0);
  const Shape shape(x.shape().begin() + 1, x.shape().end());
  auto ends = std::make_shared<Ends>(
      Ends{x, Buffer::allocate(bytes_of(x) / static_cast<std::size_t>(std::max<int64_t>(lanes, 1)))});
  const Reduce what{kind, x.dtype(), element_count(shape), static_cast<int>(lanes)};
  exchange().reduce(call_for("reduce", x, line, ends), what, x.raw_data(), ends->to.mutable_data()).wait();
  return made_of(x, shape, ends->to);
}

bool all_equal(const Array& x, const std::string& line) {
  const Array all = all_gather(x, false, line);
  const std::size_t size = bytes_of(x);
  for (int i = 0; i < jax::process_count(); ++i) {
    if (size && std::memcmp(all.raw_data() + static_cast<std::size_t>(i) * size, x.raw_data(), size) != 0) return false;
  }
  return true;
}

}  // namespace capibara::processes

namespace capibara::jax::multihost_utils {

namespace {
std::string text_of(const char* file, int line) { return concat(file, ":", line); }
}  // namespace

Array process_allgather(const Array& x, bool tiled, const char* file, int line) {
  return processes::all_gather(x, tiled, text_of(file, line));
}

Array broadcast_one_to_all(const Array& x, std::optional<bool> is_source, const char* file, int line) {
  return processes::broadcast(x, is_source, text_of(file, line));
}

void sync_global_devices(const std::string& name, const char* file, int line) {
  if (process_count() == 1) return;
  processes::exchange().barrier({concat("sync_global_devices('", name, "')"), text_of(file, line)}).wait();
}

void assert_equal(const Array& x, const std::string& fail_message, const char* file, int line) {
  if (process_count() == 1 || processes::all_equal(x, text_of(file, line))) return;
  throw ValueError(concat(fail_message, ". The processes have different values; this one has ", x.to_string(), "."));
}

}  // namespace capibara::jax::multihost_utils
