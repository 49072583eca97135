// Objects of Google Cloud Storage: gs://BUCKET/NAME. STORAGE_EMULATOR_HOST names a server that replaces it.
//
// Every operation is retried after temporary failures, with growing pauses, until its deadline
// (CAPIBARA_STORE_DEADLINE seconds without progress).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/uio.h>

#include <capibara/error.h>

namespace capibara {

// The store refused or failed; the message names the operation and the object.
class ObjectStoreError : public RuntimeError {
 public:
  ObjectStoreError(std::string message, int status) : RuntimeError(std::move(message)), status_(status) {}
  int status() const { return status_; }  // of HTTP; 0 if the deadline passed

 private:
  int status_;
};

bool is_object_path(std::string_view path);  // gs://

struct ObjectInfo {
  std::string name;  // without the bucket
  uint64_t size = 0;
  std::optional<uint32_t> checksum;  // CRC-32C
  std::string generation;
};

// Empty if there is no such object.
std::optional<ObjectInfo> stat_object(const std::string& path);
// The bytes from `offset` on, of the version in `info`.
void read_object(const std::string& path, const ObjectInfo& info, uint64_t offset, std::span<std::byte> to);
// All bytes, verified by the store's checksum.
std::string read_object(const std::string& path);
// Writes an object, in parts if it is large, and compares checksums. `only_new`: refused if it exists.
ObjectInfo write_object(const std::string& path, const std::vector<iovec>& pieces, bool only_new = false);
// A second object with the same bytes, copied by the store; empty if `from` does not exist, or is not of this size and
// checksum.
std::optional<ObjectInfo> copy_object(const std::string& from, const std::string& to, uint64_t size, uint32_t checksum);
// No error if it does not exist.
void remove_object(const std::string& path);

struct ObjectListing {
  std::vector<ObjectInfo> objects;   // directly in the folder, or all below it
  std::vector<std::string> folders;  // their names, without slashes
};
ObjectListing list_objects(const std::string& folder, bool recursive);

}  // namespace capibara
