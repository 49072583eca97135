// The object store's operations with the errors of checkpoints.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/files/object_store.h"

namespace capibara {

std::optional<ObjectInfo> object_at(const std::string& path);
void read_object_part(const std::string& path, const ObjectInfo& info, uint64_t offset, std::span<std::byte> to);
std::vector<std::string> object_names_in(const std::string& folder);  // of objects and folders, sorted

}  // namespace capibara
