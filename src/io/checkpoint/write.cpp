// Writing a step: everything into a temporary folder, synced, then one rename.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/array/hash.h"
#include "io/checkpoint/files.h"
#include "io/checkpoint/step.h"
#include "io/checkpoint/zarr.h"
#include "io/files/crc32c.h"

namespace capibara {

namespace {

constexpr std::string_view temporary_mark = ".orbax-checkpoint-tmp-";  // Orbax ignores such folders as well

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// The memory of a held array once it is filled. Polling leaves the program to the thread that runs it:
// a wait would run the program on this thread, at the lowest priority.
const std::byte* filled_memory(const HeldArray& array) {
  while (!array.buffer.is_ready()) std::this_thread::sleep_for(std::chrono::microseconds(500));
  array.buffer.wait();  // raises the error of the program
  return array.buffer.address();
}

class StepWriter {
 public:
  StepWriter(StepFolder& folder, const SaveJob& job, const CheckpointOptions& options, const EarlierStep* before,
             bool in_store)
      : folder_(folder), job_(job), options_(options), before_(before), in_store_(in_store) {}

  EarlierStep write(const std::string& path) {
    manifest_.step = job_.step;
    for (const auto& [name, item] : job_.items) write_item(name, item);
    write_text("_CHECKPOINT_METADATA", orbax_step_metadata(job_, now_ns()));
    folder_.write_file(manifest_file, manifest_.text());
    folder_.sync();
    return {path, std::move(manifest_), std::move(hashes_)};
  }

 private:
  void write_text(const std::string& file, const std::string& text) {
    folder_.write_file(file, text);
    remember(file, text);
  }
  void remember(const std::string& file, const std::string& text) {
    manifest_.files[file] = {text.size(), crc32c(std::as_bytes(std::span(text)))};
  }

  void write_item(const std::string& name, const HeldItem& item) {
    folder_.make_folders(name);
    ManifestItem& entry = manifest_.items[name];
    entry.structure = item.structure;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < item.arrays.size(); ++i) {
      names.push_back(item.arrays[i].name);
      entry.arrays.push_back(write_array(name + "/" + item.arrays[i].name, item.arrays[i]));
    }
    write_text(name + "/_METADATA", orbax_tree_metadata(item.structure));
    write_text(name + "/_sharding", orbax_shardings(names));
  }

  ManifestArray write_array(const std::string& path, const HeldArray& array) {
    const StoredType stored = stored_type(array.type.dtype, array.type.shape);
    const ChunkGrid grid = make_chunk_grid(stored.shape, storage_size(stored.dtype), options_.chunk_bytes);
    const std::string description = zarr_metadata(stored, grid), description_file = path + "/zarr.json";
    ManifestArray entry{array.type, {}};
    folder_.make_folders(path);
    remember(description_file, description);
    if (element_count(stored.shape) == 0) {
      folder_.write_file(description_file, description);
      return entry;
    }
    const ShardBytes bytes(grid, filled_memory(array));
    entry.checksums = bytes.checksums();
    const std::string data_file = path + "/" + zarr_data_key(stored.shape.size());
    if (in_store_ && options_.link_unchanged) hashes_[data_file] = hash_of(bytes);
    if (is_unchanged(path, array, entry, data_file, bytes) &&
        folder_.link_file(before_->folder + "/" + data_file, data_file, bytes.pieces())) {
      folder_.write_file(description_file, description);
      return entry;
    }
    folder_.write_file(description_file, description);
    folder_.write_pieces(data_file, bytes.pieces());
    return entry;
  }

  static std::size_t hash_of(const ShardBytes& bytes) {
    Hasher hasher;
    for (const iovec& piece : bytes.pieces()) hasher.bytes(piece.iov_base, piece.iov_len);
    return hasher.value();
  }

  // True if the previous step holds the same bytes: its checksums are the quick test, the file itself the proof; in a
  // store, the hash that this process took of what it wrote.
  bool is_unchanged(const std::string& path, const HeldArray& array, const ManifestArray& entry,
                    const std::string& data_file, const ShardBytes& bytes) const {
    if (!before_) return false;
    const auto item = before_->manifest.items.find(path.substr(0, path.find('/')));
    if (item == before_->manifest.items.end()) return false;
    const std::vector<KeyPath> paths = item->second.structure.paths();
    const auto it =
        std::find_if(paths.begin(), paths.end(), [&](const KeyPath& one) { return array_name(one) == array.name; });
    if (it == paths.end()) return false;
    const ManifestArray& earlier = item->second.arrays[static_cast<std::size_t>(it - paths.begin())];
    if (earlier.checksums != entry.checksums || earlier.type != entry.type) return false;
    if (in_store_) {
      const auto hash = before_->hashes.find(data_file);
      return hash != before_->hashes.end() && hash->second == hashes_.at(data_file);
    }
    try {
      return bytes.equals(Blob::open(before_->folder + "/" + data_file));
    } catch (const CheckpointError&) {
      return false;  // it is written anew
    }
  }

  StepFolder& folder_;
  const SaveJob& job_;
  const CheckpointOptions& options_;
  const EarlierStep* before_;
  const bool in_store_;
  Manifest manifest_;
  std::map<std::string, std::size_t> hashes_;
};

bool is_step_name(const std::string& name) {
  return !name.empty() && name.size() <= 18 && name.find_first_not_of("0123456789") == std::string::npos &&
         (name[0] != '0' || name.size() == 1);
}

// Steps without a marker that are older than a committed one: they are no longer being written.
void remove_object_leftovers(const std::string& folder) {
  const std::vector<int64_t> steps = committed_steps(folder);
  for (const std::string& name : names_in(folder)) {
    if (!is_step_name(name) || steps.empty() || std::stoll(name) >= steps.back()) continue;
    if (std::find(steps.begin(), steps.end(), std::stoll(name)) == steps.end()) remove_object_tree(folder + "/" + name);
  }
}

}  // namespace

SaveJob make_save_job(int64_t step, CheckpointItems items, const std::string& metadata) {
  SaveJob job;
  job.step = step;
  job.begun_ns = now_ns();
  if (step < 0) throw ValueError(concat("checkpoint save: a step is a number from 0, got ", step));
  if (items.empty()) throw ValueError("checkpoint save: expected at least one item, got none");
  job.metadata = Json::parse(metadata.empty() ? "{}" : metadata, "checkpoint save: metadata");
  if (!job.metadata.object())
    throw ValueError(concat("checkpoint save: metadata: expected a JSON object, got ", metadata));
  for (auto& [name, item] : items) {
    check_item_name(name);
    HeldItem& held = job.items[name];
    held.structure = item.structure;
    const std::vector<std::string> names = array_names(name, item.structure);
    if (names.size() != item.leaves.size()) {
      throw ValueError(concat("checkpoint save: item '", name, "' has ", item.leaves.size(),
                              " arrays for a structure of ", names.size(), " leaves"));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Array& array = item.leaves[i];
      const std::string full_name = name + "." + names[i];
      if (!array.defined() || array.is_tracer() || array.type().ref) {
        throw TypeError(concat("checkpoint save: ", full_name, " has no value that could be saved: it is ",
                               !array.defined()    ? "empty"
                               : array.is_tracer() ? "a tracer; save outside of transformed functions"
                                                   : "a ref; save its value"));
      }
      if (array.dtype() == DType::float0 || array.dtype() == DType::token) {
        throw TypeError(
            concat("checkpoint save: ", full_name, " is ", to_string(array.type()), ", which has no value"));
      }
      if (array.is_deleted())
        throw CheckpointError(
            concat("checkpoint save: ", full_name, " has been deleted: its buffer was donated or freed"));
      HeldArray one{names[i], array.type(), array.buffer()};
      one.type.sharding = {};
      if (!one.buffer.address() && one.buffer.size() > 0) one.buffer.data();  // only a device has it: fetched here
      held.arrays.push_back(std::move(one));
    }
  }
  return job;
}

std::string step_folder(const std::string& folder, int64_t step) { return concat(folder, "/", step); }

EarlierStep write_step(const std::string& folder, const SaveJob& job, const CheckpointOptions& options,
                       const EarlierStep* before) {
  const std::string target = step_folder(folder, job.step);
  EarlierStep written;
  if (is_object_path(folder)) {
    ObjectFolder objects(target);
    written = StepWriter(objects, job, options, before, true).write(target);
    write_commit_marker(target);
    return written;
  }
  const std::string temporary = concat(target, temporary_mark, random_digits(6));
  try {
    NewFolder files(temporary);
    written = StepWriter(files, job, options, before, false).write(target);
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0) {
      // File systems without RENAME_NOREPLACE replace at most an empty folder.
      if (errno != EINVAL || ::rename(temporary.c_str(), target.c_str()) != 0) throw_file_error("committing", target);
    }
  } catch (...) {
    remove_tree(temporary);
    throw;
  }
  sync_folder(folder);
  return written;
}

std::vector<int64_t> committed_steps(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder)) {
    if (is_step_name(name) && is_committed(folder + "/" + name)) steps.push_back(std::stoll(name));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool is_committed(const std::string& path) {
  return is_object_path(path) ? is_file(path + "/" + commit_marker) : is_folder(path);
}

void remove_leftovers(const std::string& folder) {
  if (is_object_path(folder)) return remove_object_leftovers(folder);
  for (const std::string& name : names_in(folder)) {
    const std::size_t mark = name.find(temporary_mark);
    // Only names of ours: digits, the mark, twelve hexadecimal digits.
    if (mark == std::string::npos || mark == 0 || name.find_first_not_of("0123456789") != mark) continue;
    const std::string_view rest = std::string_view(name).substr(mark + temporary_mark.size());
    if (rest.size() == 12 && rest.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
        is_abandoned(folder + "/" + name)) {
      remove_tree(folder + "/" + name);
    }
  }
}

void remove_step(const std::string& folder, int64_t step) {
  const std::string path = step_folder(folder, step);
  if (is_object_path(folder)) return remove_object_tree(path);
  const std::string temporary = concat(path, temporary_mark, random_digits(6));
  if (::rename(path.c_str(), temporary.c_str()) != 0) throw_file_error("removing", path);
  sync_folder(folder);
  remove_tree(temporary);
}

}  // namespace capibara
