// Takes profiles when the page asks for them.
#include "monitor/capture.h"

#include <arpa/inet.h>

#include <atomic>
#include <mutex>

#include <capibara/monitor.h>

#include "io/json.h"
#include "runtime/private_folder.h"

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

bool is_address(std::string host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    in6_addr address{};
    return end != std::string::npos && ::inet_pton(AF_INET6, host.substr(1, end - 1).c_str(), &address) == 1;
  }
  host = host.substr(0, host.find(':'));
  in_addr address{};
  return host == "localhost" || ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool same_secret(const std::string& a, const std::string& b) {  // in a time that does not depend on where they differ
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

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

const std::string& capture_token() {
  static const std::string token = random_digits(16);
  return token;
}

HttpAnswer capture(const HttpCall& call) {
  if (call.method != "POST") return said(405, "error", "expected POST");
  if (!same_secret(call.token, capture_token()) || !is_address(call.host))
    return said(403, "error", "expected the token of this process in X-Capibara-Token, and an address as Host");
  CaptureHook hook;
  {
    std::lock_guard lock(capture_state().mutex);
    hook = capture_state().hook;
  }
  if (!hook) return said(404, "error", "nobody takes profiles in this process");
  if (capture_state().running.exchange(true)) return said(409, "error", "a profile is being taken");
  HttpAnswer answer;
  try {
    answer = said(200, "profile", hook(capture_seconds));
  } catch (const std::exception& error) {
    answer = said(500, "error", error.what());
  }
  capture_state().running = false;
  return answer;
}

}  // namespace capibara
