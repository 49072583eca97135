// Start and stop of a profile: what the recorder below all rooms cannot know is added here.
#include <capibara/profile.h>

#include "profile/recorder.h"
#include "runtime/arena_blocks.h"
#include "runtime/thread_pool.h"

namespace capibara::profile {

void start() {
  std::vector<InitialBlock> blocks;
  for (const arena::BlockInUse& block : arena::blocks_in_use()) {
    blocks.push_back({reinterpret_cast<uint64_t>(block.data), static_cast<int64_t>(block.bytes), block.words});
  }
  begin_session(std::move(blocks));
}

Profile stop() {
  Profile profile = end_session();
  profile.threads_used = thread_count();
  if (!profile.slots.empty()) profile.peaks = machine_peaks();
  return profile;
}

}  // namespace capibara::profile
