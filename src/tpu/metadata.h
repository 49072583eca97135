// The metadata server of Google's machines, and ports of this one, asked with short time-outs.
#pragma once

#include <string>

namespace capibara::tpu {

// An attribute of this instance; empty where the server does not answer or does not know it.
std::string ask_metadata(const std::string& address, const std::string& attribute, double seconds);
bool port_answers(int port);  // of this machine

}  // namespace capibara::tpu
