// Who asks Google's services: tokens from a service account's key, a user's refresh token or the metadata server.
#pragma once

#include <string>

namespace capibara {

// A token for the header "Authorization: Bearer TOKEN", refreshed before it expires; empty where the store is an
// emulator and no credentials are named. `refused`: the token that the service did not take, so that another is
// fetched. Raises RuntimeError that says where credentials were searched; no message has a secret in it.
std::string google_token(const std::string& refused = "");

// How long an operation may take, its repetitions included: CAPIBARA_STORE_DEADLINE in seconds, or two minutes.
double store_deadline_seconds();

}  // namespace capibara
