// The peaks of this machine: the best of several matmuls, and of several copies that no cache holds.
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/profile.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>

#include "core/runtime/disk_cache.h"
#include "core/runtime/thread_pool.h"
#include "io/files/json.h"

namespace capibara::profile {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F>
double least_seconds(int tries, const F& work) {
  double best = 1e9;
  for (int i = 0; i < tries; ++i) {
    const double begin = seconds_now();
    work();
    best = std::min(best, seconds_now() - begin);
  }
  return best;
}

double matmul_rate() {
  constexpr int64_t size = 768;
  const Array x = array<float>(std::vector<float>(size * size, 1.0F), Shape{size, size});
  const auto matmul = jax::jit([](Array a) { return jax::lax::dot(a, a); });
  matmul(x).block_until_ready();
  return 2.0 * size * size * size / least_seconds(12, [&] { matmul(x).block_until_ready(); });
}

// Bytes read and written by a copy.
double copy_rate() {
  constexpr int64_t bytes = int64_t{96} << 20, piece = int64_t{1} << 20;
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{0});
  const double seconds = least_seconds(10, [&] {
    parallel_for(bytes / piece, 1, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin * piece, from.data() + begin * piece,
                  static_cast<std::size_t>((end - begin) * piece));
      return 0;
    });
  });
  return 2.0 * bytes / seconds;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") || line.starts_with("CPU part")) return line;
  }
  return "unknown";
}

std::optional<Peaks> read_peaks(const std::string& text) {
  try {
    const Json json = Json::parse(text, "peaks");
    const Json *flops = json.find("flops_per_second"), *bytes = json.find("bytes_per_second");
    if (!flops || !bytes || !flops->number() || !bytes->number()) return std::nullopt;
    return Peaks{*flops->number(), *bytes->number()};
  } catch (const ValueError&) {
    return std::nullopt;
  }
}

}  // namespace

Peaks machine_peaks() {
  static std::mutex mutex;
  static std::optional<Peaks> known;
  std::lock_guard lock(mutex);
  if (known) return *known;
  const Digest key = digest(concat("peaks of a machine, 1\n", processor(), "\n", thread_count(), " threads"));
  if (std::optional<std::string> text = DiskCache::instance().find(key)) known = read_peaks(*text);
  if (!known) {
    known = Peaks{matmul_rate(), copy_rate()};
    const Json json(
        Json::Object{{"flops_per_second", known->flops_per_second}, {"bytes_per_second", known->bytes_per_second}});
    DiskCache::instance().store(key, json.dump());
  }
  return *known;
}

}  // namespace capibara::profile
