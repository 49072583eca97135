// Arrays in NumPy's .npy files.
#pragma once

#include <optional>
#include <string>

#include <capibara/array.h>

namespace capibara {

// Raises ValueError naming the file if it is missing, malformed or holds a dtype that arrays cannot have. NumPy
// writes bfloat16 and the float8 types as raw bytes: `expected` names which of them these are. 64-bit types stay.
Array read_npy(const std::string& path, std::optional<DType> expected = std::nullopt);
void write_npy(const std::string& path, const Array& array);

}  // namespace capibara
