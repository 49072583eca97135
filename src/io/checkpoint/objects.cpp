// Steps in an object store: objects below a name, and a marker that comes last.
#include "io/checkpoint/objects.h"

#include <algorithm>

#include <capibara/checkpoint.h>

#include "io/checkpoint/files.h"
#include "io/files/crc32c.h"

namespace capibara {

namespace {

// Converts errors of the store, of credentials and of a missing module to those of checkpoints.
template <class Function>
auto in_store(const Function& function) {
  try {
    return function();
  } catch (const CheckpointError&) {
    throw;
  } catch (const RuntimeError& error) {
    throw CheckpointError(concat("checkpoint: ", error.what()));
  }
}

std::string bucket_of(const std::string& path) { return path.substr(0, path.find('/', 5)); }

}  // namespace

std::optional<ObjectInfo> object_at(const std::string& path) {
  return in_store([&] { return stat_object(path); });
}

void read_object_part(const std::string& path, const ObjectInfo& info, uint64_t offset, std::span<std::byte> to) {
  in_store([&] { read_object(path, info, offset, to); });
}

std::vector<std::string> object_names_in(const std::string& folder) {
  return in_store([&] {
    ObjectListing listing = list_objects(folder, false);
    std::vector<std::string> names = std::move(listing.folders);
    for (const ObjectInfo& object : listing.objects) {
      std::string name = object.name.substr(object.name.find_last_of('/') + 1);
      if (!name.empty()) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
  });
}

ObjectFolder::ObjectFolder(std::string path) : path_(std::move(path)) { remove_object_tree(path_); }

void ObjectFolder::write_pieces(const std::string& relative, std::vector<iovec> pieces) {
  in_store([&] { write_object(path_ + "/" + relative, pieces); });
}

bool ObjectFolder::link_file(const std::string& from, const std::string& relative, const std::vector<iovec>& pieces) {
  uint64_t size = 0;
  uint32_t checksum = 0;
  for (const iovec& piece : pieces) {
    size += piece.iov_len;
    checksum = crc32c({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, checksum);
  }
  return in_store([&] { return copy_object(from, path_ + "/" + relative, size, checksum).has_value(); });
}

void write_commit_marker(const std::string& step_folder) {
  std::string text = "Checkpoint commit was successful to " + step_folder;
  in_store([&] { write_object(step_folder + "/" + commit_marker, {iovec{text.data(), text.size()}}, true); });
}

void remove_object_tree(const std::string& folder) {
  in_store([&] {
    const ObjectListing listing = list_objects(folder, true);
    if (listing.objects.empty()) return;
    remove_object(folder + "/" + commit_marker);
    for (const ObjectInfo& object : listing.objects) remove_object(bucket_of(folder) + "/" + object.name);
  });
}

}  // namespace capibara
