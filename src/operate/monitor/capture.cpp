// Takes profiles on request of the monitor's page.
#include "operate/monitor/capture.h"

#include <atomic>
#include <mutex>

#include <capibara/error.h>
#include <capibara/monitor.h>

#include "core/runtime/private_folder.h"
#include "io/files/json.h"

namespace capibara {

namespace {

constexpr double capture_seconds = 2;

struct CaptureState {
  std::mutex mutex;
  CaptureHook hook = take_profile;
  std::atomic<bool> running = false;
};

CaptureState& capture_state() {
  static auto* const state = new CaptureState;  // servers may outlive statics
  return *state;
}

bool same_secret(const std::string& a, const std::string& b) {  // in constant time
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::string name_of_server(int port) { return concat("monitor ", port); }

HttpAnswer said(int status, const char* key, const std::string& text) {
  return {status, "application/json", Json(Json::Object{{key, text}}).dump()};
}

}  // namespace

void set_capture_hook(CaptureHook hook) {
  std::lock_guard lock(capture_state().mutex);
  capture_state().hook = std::move(hook);
}

bool can_capture() {
  std::lock_guard lock(capture_state().mutex);
  return static_cast<bool>(capture_state().hook);
}

HttpAnswer capture(const HttpCall& call, const std::string& token) {
  if (call.method != "POST") return said(405, "error", "expected POST");
  if (!same_secret(call.token, token))
    return said(403, "error",
                "expected the token of this server in X-Capibara-Token; 'capibara top PORT --link' prints it");
  CaptureHook hook;
  {
    std::lock_guard lock(capture_state().mutex);
    hook = capture_state().hook;
  }
  if (!hook) return said(404, "error", "this process takes no profiles");
  if (capture_state().running.exchange(true)) return said(409, "error", "a profile is being taken");
  HttpAnswer promised;
  promised.later = [hook = std::move(hook)] {
    HttpAnswer answer;
    try {
      answer = said(200, "profile", hook(capture_seconds));
    } catch (const std::exception& error) {
      answer = said(500, "error", error.what());
    }
    capture_state().running = false;
    return answer;
  };
  return promised;
}

CaptureToken::CaptureToken(int port) {
  try {
    left_ = std::make_unique<LeftJobSecret>(name_of_server(port));
  } catch (const RuntimeError&) {  // no private folder for this user: only Monitor::link has the token
    text_ = random_digits(32);
  }
}

std::optional<std::string> find_capture_token(int port) { return LeftJobSecret::find(name_of_server(port)); }

}  // namespace capibara
