// The button of the page: who may press it, and what it calls.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/processes/job_secret.h"
#include "operate/monitor/server.h"

namespace capibara {

bool can_capture();  // unless an empty hook was set
// The hook until another is set: a profile for xprof.
std::string take_profile(double seconds);
// What POST /capture answers. It needs the server's token, which the page does not hold: who may read the page may not
// take profiles.
HttpAnswer capture(const HttpCall& call, const std::string& token);

// The token of the server on a port: left in a file that this user alone may read, where the user's cache folder can be
// used, for as long as this lives.
class CaptureToken {
 public:
  explicit CaptureToken(int port);
  const std::string& text() const { return left_ ? left_->secret() : text_; }

 private:
  std::unique_ptr<LeftJobSecret> left_;
  std::string text_;
};
// The token that a process of this user has left.
std::optional<std::string> find_capture_token(int port);

}  // namespace capibara
