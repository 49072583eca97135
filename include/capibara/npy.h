// Arrays in NumPy's files: .npy holds one array, .npz several by name.
#pragma once

#include <capibara/array.h>

#include <map>
#include <optional>
#include <string>

namespace capibara {

// The array of a .npy file, in either byte order, row by row or column by column; 64-bit types are narrowed unless x64
// is on. NumPy stores bfloat16 and the 8-bit floats as bytes without a type: `raw` says which of them they are.
// ValueError that names the file if it is damaged, shorter than its header says, or holds text, objects or records.
Array load_npy(const std::string& path, std::optional<DType> raw = std::nullopt);
// The file appears under its name only once it is complete.
void save_npy(const std::string& path, const Array& array);

// All arrays of a .npz file, compressed or not; their checksums are verified.
std::map<std::string, Array> load_npz(const std::string& path, std::optional<DType> raw = std::nullopt);
// Writes arrays uncompressed, as numpy.savez does; ValueError for files of 4 GiB and more.
void save_npz(const std::string& path, const std::map<std::string, Array>& arrays);

}  // namespace capibara
