// The metadata server of Google's machines, and local ports, queried with short time-outs.
#pragma once

#include <string>

namespace capibara::tpu {

// An attribute of this instance; empty if the server does not answer or does not have it.
std::string ask_metadata(const std::string& address, const std::string& attribute, double seconds);
bool port_answers(int port);  // of this machine

}  // namespace capibara::tpu
