// Starts the monitor requested by the environment; and takes the profile for the button of its page.
#include "operate/monitor/watch_by_environment.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <capibara/monitor.h>
#include <capibara/profile.h>
#include <capibara/profile_formats.h>

#include "core/runtime/warning.h"
#include "operate/monitor/capture.h"

namespace capibara {

std::string take_profile(double seconds) {
  const char* const named = std::getenv("CAPIBARA_PROFILE_FOLDER");
  profile::start();  // RuntimeError if a profile is already being taken
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return profile::save_tensorboard(profile::stop(false), named && *named ? named : "capibara-profiles");
}

void watch_by_environment() {
  static const bool requested = [] {
    const char* text = std::getenv("CAPIBARA_MONITOR");
    if (!text || !*text) return false;
    const std::string digits = text;
    if (digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string::npos || std::stoi(digits) > 65535) {
      warn(concat("CAPIBARA_MONITOR is a port from 0 to 65535, got '", digits, "'; nothing is monitored"),
           WarningKind::runtime);
      return false;
    }
    return true;
  }();
  // The first caller starts it, and no one waits: the measurement itself compiles programs.
  static std::atomic<bool> begun = false;
  if (!requested || begun.exchange(true)) return;
  MonitorOptions options;
  options.update_seconds = 1;
  options.port = std::atoi(std::getenv("CAPIBARA_MONITOR"));
  static Monitor* const monitor = new Monitor(std::move(options));  // never destroyed
  try {
    monitor->start();
  } catch (const Error& error) {
    warn(concat("CAPIBARA_MONITOR: ", error.what()), WarningKind::runtime);
  }
}

}  // namespace capibara
