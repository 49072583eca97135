// The C header of an object: its function, the size of its arena, and the meaning of each pointer.
#pragma once

#include <capibara/object_code.h>

namespace capibara::cpu {

struct ObjectHeader {
  std::string name;  // of the function
  std::vector<std::string> targets;
  std::vector<std::pair<std::string, ArrayType>> inputs, outputs;
  int64_t arena_bytes = 0;
  int64_t constant_bytes = 0;  // in the object
  bool takes_weights = false;
  int64_t weights_bytes = 0;
};

std::string to_string(const ObjectHeader& header);

// A valid C identifier for a name: predict, lambda_, f3.
std::string c_identifier(const std::string& name);

}  // namespace capibara::cpu
