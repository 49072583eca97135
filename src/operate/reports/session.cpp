// Start and stop of a profile: adds the data that the recorder in the lowest room cannot access.
#include <capibara/profile.h>

#include <algorithm>

#include "core/profile/recorder.h"
#include "core/runtime/arena_blocks.h"
#include "core/runtime/background.h"
#include "core/runtime/thread_pool.h"

namespace capibara::profile {

namespace {

constexpr int64_t min_nanoseconds = 1'000'000;  // minimum time of a site for its rate to be trusted

}  // namespace

void start() {
  std::vector<InitialBlock> blocks;
  for (const arena::BlockInUse& block : arena::blocks_in_use()) {
    blocks.push_back({reinterpret_cast<uint64_t>(block.data), static_cast<int64_t>(block.bytes), block.words});
  }
  begin_session(std::move(blocks));
}

Profile stop(bool wait) {
  if (wait && active() && !in_background()) {
    try {
      wait_for_background();  // programs already called belong to it
    } catch (...) {           // an interruption also ends the profile
      end_session();
      throw;
    }
  }
  Profile profile = end_session();
  profile.threads_used = thread_count();
  if (profile.slots.empty()) return profile;
  profile.peaks = machine_peaks();
  for (const Slot& slot : profile.slots) {
    double& peak = profile.peaks.by_type[static_cast<std::size_t>(slot.rate_type)];
    if (slot.rate_type != RateType::float32 && slot.calls > 0 && slot.flops > 0 && peak == 0)
      peak = peak_flops(slot.rate_type);
  }
  // A machine that was busy during the measurement is faster than measured: rates of matmuls here also count.
  for (const Slot& slot : profile.slots) {
    if (slot.kind != "matmul" || slot.nanoseconds < min_nanoseconds) continue;
    const double rate = slot.flops * static_cast<double>(slot.calls) / static_cast<double>(slot.nanoseconds) * 1e9;
    double& peak = slot.rate_type == RateType::float32
                       ? profile.peaks.flops_per_second
                       : profile.peaks.by_type[static_cast<std::size_t>(slot.rate_type)];
    peak = std::max(peak, rate);
  }
  return profile;
}

}  // namespace capibara::profile
