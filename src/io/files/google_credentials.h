// Credentials of Google's services: tokens from a service account's key, a user's refresh token or the metadata server.
#pragma once

#include <string>

namespace capibara {

// A token for the header "Authorization: Bearer TOKEN", refreshed before it expires; empty if the store is an
// emulator and no credentials are named. `refused`: a token that the service rejected, so that another is
// fetched. Raises a RuntimeError that lists where credentials were searched; messages never contain a secret.
std::string google_token(const std::string& refused = "");

// The time limit of an operation, retries included: CAPIBARA_STORE_DEADLINE in seconds, or two minutes.
double store_deadline_seconds();

}  // namespace capibara
