// Starts the profile requested by the environment, and writes it when the process exits.
#include "operate/reports/profile_by_environment.h"

#include <capibara/error.h>
#include <capibara/profile.h>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "core/runtime/background.h"
#include "core/runtime/warning.h"

namespace capibara {

namespace {

pid_t begun_by = 0;

void write_profile() {
  if (getpid() != begun_by || !profile::active()) return;  // a forked child writes nothing
  try {
    wait_for_background();
    profile::save(profile::stop(), std::getenv("CAPIBARA_PROFILE"));
  } catch (const std::exception& error) {
    warn(concat("CAPIBARA_PROFILE: ", error.what()), WarningKind::runtime);
  }
}

}  // namespace

void profile_by_environment() {
  static std::atomic<bool> begun = false;
  if (begun.load(std::memory_order_relaxed) || begun.exchange(true)) return;
  const char* file = std::getenv("CAPIBARA_PROFILE");
  if (!file || !*file || profile::active()) return;
  begun_by = getpid();
  profile::start();
  std::atexit(write_profile);
}

}  // namespace capibara
