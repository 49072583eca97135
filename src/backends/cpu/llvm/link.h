// Links object code into this process and makes it callable.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/execution/compiler.h"

namespace capibara::cpu {

std::unique_ptr<Code> link_object(const std::string& object_code);

}  // namespace capibara::cpu
