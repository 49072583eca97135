// Reader of OCDBT, tensorstore's key-value store in files: where Orbax keeps the chunks of arrays.
#pragma once

#include <map>
#include <string>

#include "io/checkpoint/files.h"

namespace capibara {

// All keys of the newest version and the locations of their values. Verifies the checksums of all nodes; raises
// CorruptCheckpointError that names the file.
std::map<std::string, Blob> read_ocdbt(const std::string& folder);

}  // namespace capibara
