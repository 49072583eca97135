// The peaks of the default device: the best of several matmuls per type, and of several copies larger than any cache.
#include <capibara/config.h>
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/profile.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

#include "backends/backend.h"
#include "core/runtime/counters.h"
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

bool on_the_processor() { return default_backend().platform().ends_with("cpu"); }  // also XLA's

// Elements that are neither equal nor round: processors and GPUs clock differently when multiplying zeros and ones.
Array varied(int64_t size, DType type) {
  const Array index = jax::lax::iota(DType::float32, size * size);
  const Array wave = jax::lax::sin(index * 0.37) * (type == DType::int8 ? 100.0 : 1.0);
  return jax::lax::convert_element_type(jax::lax::reshape(wave, Shape{size, size}), type);
}

// On an accelerator small matmuls take no longer than a kernel launch.
double matmul_rate(DType type) {
  const bool on_cpu = on_the_processor(), in_loops = default_backend().name() == "reference";
  const int64_t size = in_loops                 ? 64
                       : on_cpu                 ? (type == DType::float32 ? 768 : 512)
                       : type == DType::float64 ? 4096
                                                : 8192;
  const Array x = varied(size, type);
  const std::optional<DType> sums = type == DType::int8            ? std::optional(DType::int32)
                                    : type == DType::float8_e4m3fn ? std::optional(DType::float32)
                                                                   : std::nullopt;
  const auto matmul =
      jax::jit([sums](Array a) { return jax::lax::dot(a, a, {.precision = "", .preferred_element_type = sums}); });
  matmul(x).block_until_ready();
  const int tries = on_cpu && type == DType::float32 ? 12 : 5;
  return 2.0 * size * size * size / least_seconds(tries, [&] { matmul(x).block_until_ready(); });
}

// Bytes read and written by a copy.
double copy_rate() {
  if (!on_the_processor()) {
    constexpr int64_t rows = 8192;
    const Array x = varied(rows, DType::float32);
    const auto copy = jax::jit([](Array a) { return a + 1.0; });
    copy(x).block_until_ready();
    return 2.0 * 4 * rows * rows / least_seconds(10, [&] { copy(x).block_until_ready(); });
  }
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

// A description of the measured device: a different one, or other threads, have different peaks.
std::string device_text() {
  const Backend& backend = default_backend();
  const std::string platform = backend.platform();
  if (platform.ends_with("cpu")) return concat(backend.name(), " ", processor(), ", ", thread_count(), " threads");
  const std::vector<DeviceFacts> devices = backend.devices();
  return concat(platform, " ", devices.empty() ? "unknown" : devices[0].kind);
}

// Measured once per device and kind, and cached on disk; 0 if it cannot be measured.
template <class Measure>
double known_rate(const std::string& kind, const Measure& measure) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, double>;
  std::lock_guard lock(mutex);
  const std::string text = concat("rate of a device, 1\n", device_text(), "\n", kind);
  if (const auto it = known->find(text); it != known->end()) return it->second;
  const Digest key = digest(text);
  double& rate = (*known)[text];
  if (std::optional<std::string> kept = DiskCache::instance().find(key)) {
    try {
      if (const std::optional<double> value = Json::parse(*kept, "rate").number(); value && *value > 0)
        return rate = *value;
    } catch (const ValueError&) {  // not a stored rate: measure again
    }
  }
  const CountedWork uncounted;
  Config settings = config();
  settings.debug_nans = settings.debug_infs = settings.disable_jit = settings.log_compiles = false;
  const ConfigScope plain(settings);
  try {
    rate = measure();
  } catch (const Error&) {  // the device does not support the operation
    return rate = 0;
  }
  DiskCache::instance().store(key, Json(rate).dump());
  return rate;
}

}  // namespace

double peak_flops(RateType type) {
  const DType element = element_type(type);
  return known_rate(std::string(dtype_name(element)), [&] {
    Config settings = config();
    if (type == RateType::float64) settings.enable_x64 = true;
    const ConfigScope wide(settings);
    return matmul_rate(element);
  });
}

Peaks machine_peaks() { return {peak_flops(RateType::float32), known_rate("bytes", copy_rate), {}}; }

}  // namespace capibara::profile
