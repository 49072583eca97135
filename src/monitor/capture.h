// The button of the page: who may press it, and what it calls.
#pragma once

#include <string>

#include "monitor/server.h"

namespace capibara {

bool can_capture();  // unless an empty hook was set
// The hook until another is set: a profile for xprof. The profiler's files come after this room; assembly answers.
std::string take_profile(double seconds);
// What POST /capture answers. It needs the token of this process, which only its own page knows, and a Host that is an
// address or localhost: a page elsewhere whose name leads to this machine is refused.
HttpAnswer capture(const HttpCall& call);
const std::string& capture_token();

}  // namespace capibara
