// The capture button of the page: access control, and the callback.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/processes/job_secret.h"
#include "operate/monitor/server.h"

namespace capibara {

bool can_capture();  // true unless an empty hook was set
// The default hook: a profile for xprof.
std::string take_profile(double seconds);
// The response to POST /capture. It requires the server's token, which the page does not contain: read access to the
// page does not permit taking profiles.
HttpAnswer capture(const HttpCall& call, const std::string& token);

// The token of the server on a port: for the lifetime of this object it is left in a file that only this user can
// read, if the user's cache folder is usable.
class CaptureToken {
 public:
  explicit CaptureToken(int port);
  const std::string& text() const { return left_ ? left_->secret() : text_; }

 private:
  std::unique_ptr<LeftJobSecret> left_;
  std::string text_;
};
// The token left by a process of this user.
std::optional<std::string> find_capture_token(int port);

}  // namespace capibara
