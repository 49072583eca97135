// A program for several processes: exchange_program collectives | bits | loop | mismatch | agree
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include <capibara/capibara.h>
#include <capibara/distributed.h>

#include "core/array/element.h"
#include "core/processes/exchange.h"
#include "core/processes/reduce.h"
#include "core/runtime/digest.h"

using namespace capibara;
using namespace capibara::processes;

namespace {

int own = 0, count = 1;

const std::byte* bytes(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* bytes(void* data) { return static_cast<std::byte*>(data); }

void expect(bool holds, const char* what, std::size_t size = 0) {
  if (holds) return;
  std::printf("WRONG: %s of %zu elements\n", what, size);
  std::_Exit(9);
}

int value(int process, std::size_t i) { return process * 1000003 + static_cast<int>(i) * 7; }

std::vector<int> filled(int process, std::size_t size) {
  std::vector<int> all(size);
  for (std::size_t i = 0; i < size; ++i) all[i] = value(process, i);
  return all;
}

void check_moves(Exchange& e, const std::vector<int>& group, std::size_t size) {
  const auto position = static_cast<std::size_t>(std::find(group.begin(), group.end(), own) - group.begin());
  const std::size_t n = group.size(), each = size * sizeof(int);
  const std::vector<int> mine = filled(own, size * n);
  std::vector<int> all(size * n), blocks(size * n), sent(size), moved(size, -1);
  const Call call{"a move", "program", group};
  // Three exchanges at once: they run in this order.
  const Pending gathering = e.all_gather(call, bytes(mine.data()), bytes(all.data()), each);
  const Pending scattering = e.all_to_all(call, bytes(mine.data()), bytes(blocks.data()), each);
  const int target = static_cast<int>((position + 1) % n), source = static_cast<int>((position + n - 1) % n);
  const bool last = position + 1 == n;  // the last one sends to no one
  const Pending moving =
      e.permute(call, bytes(mine.data()), bytes(moved.data()), each, position == 0 ? -1 : source, last ? -1 : target);
  moving.wait();
  scattering.wait();
  gathering.wait();
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t i = 0; i < size; ++i) {
      expect(all[p * size + i] == value(group[p], i), "all_gather", size);
      expect(blocks[p * size + i] == value(group[p], position * size + i), "all_to_all", size);
    }
  }
  for (std::size_t i = 0; i < size; ++i)
    expect(moved[i] == (position == 0 ? 0 : value(group[static_cast<std::size_t>(source)], i)), "permute", size);
  std::vector<int> data = filled(own, size);
  e.broadcast(call, bytes(data.data()), each, static_cast<int>(n - 1)).wait();
  expect(data == filled(group[n - 1], size), "broadcast", size);
  std::vector<int> part(size);
  e.reduce_scatter(call, {Reduction::sum, DType::int32, static_cast<int64_t>(size * n), 1}, bytes(mine.data()),
                   bytes(part.data()))
      .wait();
  for (std::size_t i = 0; i < size; ++i) {
    unsigned sum = 0;
    for (const int p : group) sum += static_cast<unsigned>(value(p, position * size + i));
    expect(static_cast<unsigned>(part[i]) == sum, "reduce_scatter", size);
  }
  e.barrier(call).wait();
}

// An array spread over processes, one element each, cannot be read as a whole.
void distant_values() {
  const Mesh mesh{{"p"}, {count}};
  const std::vector<float> ones(static_cast<std::size_t>(count), 1.0f);
  const Array split = jax::device_put(array<float>(ones), jax::make_sharding(mesh, PartitionSpec{{{"p"}}}));
  std::string said;
  try {
    split.to_vector<float>();
  } catch (const RuntimeError& error) {
    said = error.what();
  }
  expect(said.starts_with("Fetching value for `jax.Array` that spans non-addressable"), "the error of a read");
  expect(split.to_string() == concat("Array(shape=(", count, ",), dtype=float32)"), "the text without values");
  expect(jax::addressable_shards(split)[0].item<float>() == 1, "the part of this process");
}

void collectives() {
  Exchange& e = exchange();
  std::vector<int> all, halves;
  for (int i = 0; i < count; ++i) all.push_back(i);
  for (int i = own % 2; i < count; i += 2) halves.push_back(i);
  const std::vector<int> back(all.rbegin(), all.rend());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{140000}}) {
    for (const auto& group : {all, halves, back}) check_moves(e, group, size);
  }
  bool refused = false;
  try {
    e.broadcast({"a broadcast"}, nullptr, 0, count);
  } catch (const ValueError&) {
    refused = true;
  }
  expect(refused, "a root that is no process");
  distant_values();
  std::printf("right: %s\n", e.description().c_str());
}

// Eight positions, spread over any number of processes: the digest of the sums must not depend on it.
void bits() {
  constexpr int positions = 8;
  const int lanes = positions / count;
  for (const DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16, DType::float8_e4m3fn,
                            DType::complex64, DType::int8}) {
    for (const int64_t size : {5, 700, 20003}) {
      std::mt19937 generator(3);
      std::normal_distribution<double> draw(0, 3);
      std::vector<double> numbers(static_cast<std::size_t>(positions * size) * (is_complex(dtype) ? 2 : 1));
      for (double& number : numbers) number = draw(generator);
      const auto item = static_cast<std::size_t>(storage_size(dtype));
      std::vector<std::byte> from(numbers.size() * item / (is_complex(dtype) ? 2 : 1)),
          to(static_cast<std::size_t>(size) * item);
      convert_elements(DType::float64, numbers.data(), is_complex(dtype) ? DType::float32 : dtype, from.data(),
                       static_cast<int64_t>(numbers.size()));
      const std::size_t first = static_cast<std::size_t>(own * lanes) * to.size();
      exchange().reduce({"a sum"}, {Reduction::sum, dtype, size, lanes}, from.data() + first, to.data()).wait();
      if (own == 0) {
        std::printf("%s %lld %s\n", to_string(dtype).c_str(), static_cast<long long>(size),
                    digest({reinterpret_cast<const char*>(to.data()), to.size()}).hex().c_str());
      }
    }
  }
}

// Runs until a process dies.
void loop() {
  std::printf("pid %d\n", getpid());
  std::fflush(stdout);
  std::vector<float> from(20000, 1.0f), to(20000);
  for (int i = 0;; ++i) {
    exchange()
        .reduce({"psum over 'data'", "loop:1"}, {Reduction::sum, DType::float32, i % 2 ? 20000 : 16, 1},
                bytes(from.data()), bytes(to.data()))
        .wait();
    if (i == 20) std::printf("under way\n"), std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void mismatch() {
  if (own == 1)
    jax::multihost_utils::broadcast_one_to_all(array<float>({1, 2, 3, 4}));
  else
    jax::multihost_utils::process_allgather(array<float>({1, 2, 3}));
}

void agree() {
  exchange().agree({"the first program", "a.py:1"}, "same", "step");
  std::printf("agreed\n");
  exchange().agree({"the second program", "a.py:2"}, own == count - 1 ? "other" : "usual", "step of (f32[4])");
}

}  // namespace

int main(int arguments, char** words) {
  const std::string what = arguments > 1 ? words[1] : "";
  try {
    jax::distributed::initialize();
    own = jax::process_index();
    count = jax::process_count();
    if (what == "collectives") collectives();
    if (what == "bits") bits();
    if (what == "loop") loop();
    if (what == "mismatch") mismatch();
    if (what == "agree") agree();
    jax::distributed::shutdown();
  } catch (const DistributedError& error) {
    std::printf("DistributedError: %s\n", error.what());
    std::fflush(stdout);
    jax::distributed::shutdown();
    return 3;
  }
  return 0;
}
