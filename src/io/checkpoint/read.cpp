// Reading a step: which arrays, into which structure, with every checksum of the manifest.
#include <algorithm>
#include <set>

#include "io/checkpoint/files.h"
#include "io/checkpoint/reading_threads.h"
#include "io/checkpoint/step.h"
#include "io/checkpoint/zarr.h"
#include "io/files/crc32c.h"

namespace capibara {

namespace {

constexpr uint64_t max_manifest_bytes = uint64_t{1} << 30;
// From this size on an array is read by all threads, chunk by chunk; smaller ones are read by one thread each.
constexpr std::size_t large_array = std::size_t{1} << 26;

// The arrays that `only` selects: an item, an array, or all below a node.
class Selection {
 public:
  explicit Selection(const std::vector<std::string>& only) : only_(only), used_(only.size(), false) {}

  bool item(const std::string& name) {
    return all() || std::any_of(only_.begin(), only_.end(),
                                [&](const std::string& one) { return one == name || one.starts_with(name + "."); });
  }
  bool array(const std::string& name) {
    bool found = all();
    for (std::size_t i = 0; i < only_.size(); ++i) {
      if (name != only_[i] && !name.starts_with(only_[i] + ".")) continue;
      found = used_[i] = true;
    }
    return found;
  }
  void check(int64_t step, const std::vector<std::string>& names) const {
    for (std::size_t i = 0; i < only_.size(); ++i) {
      if (used_[i]) continue;
      std::string known;
      for (std::size_t j = 0; j < std::min<std::size_t>(names.size(), 8); ++j) known += (j == 0 ? "" : ", ") + names[j];
      throw ValueError(concat("checkpoint restore: step ", step, " holds no '", only_[i],
                              "' (argument 'only'); it holds ", known, names.size() > 8 ? ", ..." : ""));
    }
  }
  bool all() const { return only_.empty(); }

 private:
  const std::vector<std::string>& only_;
  std::vector<bool> used_;
};

// The structure with only the chosen leaves: dictionaries drop entries without any, sequences have None in their
// place.
TreeDef pruned(const TreeDef& tree, const std::vector<bool>& chosen, std::size_t& leaf) {
  if (tree.kind() == TreeDef::Kind::leaf) return chosen[leaf++] ? tree : TreeDef::none();
  std::vector<TreeDef> children;
  std::vector<TreeKey> keys;
  for (std::size_t i = 0; i < tree.children().size(); ++i) {
    TreeDef child = pruned(tree.children()[i], chosen, leaf);
    const bool kept = child.num_leaves() > 0;
    if (tree.kind() == TreeDef::Kind::dict && !kept) continue;
    children.push_back(kept ? std::move(child) : TreeDef::none());
    if (tree.kind() == TreeDef::Kind::dict) keys.push_back(tree.key(i));
  }
  switch (tree.kind()) {
    case TreeDef::Kind::dict:
      return TreeDef::dict(std::move(keys), std::move(children));
    case TreeDef::Kind::list:
      return TreeDef::list(std::move(children));
    case TreeDef::Kind::tuple:
      return TreeDef::tuple(std::move(children));
    default:
      return tree;
  }
}

class StepReader {
 public:
  StepReader(std::string folder, int64_t step, const RestoreOptions& options)
      : folder_(std::move(folder)),
        step_(step),
        options_(options),
        manifest_(read_manifest(folder_)),
        only_(options.only) {}

  Checkpoint read() {
    if (manifest_.step != step_) {
      throw CorruptCheckpointError(concat("checkpoint: the folder ", folder_, " holds step ", manifest_.step));
    }
    Checkpoint result;
    result.step = step_;
    const Json description = Json::parse(checked_file("_CHECKPOINT_METADATA"), folder_ + "/_CHECKPOINT_METADATA");
    const Json* metadata = description.find("custom_metadata");
    result.metadata = metadata && metadata->object() ? metadata->dump() : "{}";
    for (const auto& [name, like] : options_.like) {
      if (!manifest_.items.contains(name)) throw missing_item(name);
    }
    std::vector<std::string> known;
    for (const auto& [name, item] : manifest_.items) {
      for (const std::string& array : array_names(name, item.structure)) {
        known.push_back(name + "." + array);
        only_.array(known.back());
      }
    }
    only_.check(step_, known);
    for (const auto& [name, item] : manifest_.items) {
      if (!only_.item(name)) continue;
      for (const char* file : {"/_METADATA", "/_sharding"}) checked_file(name + file);
      const auto like = options_.like.find(name);
      result.items[name] =
          like == options_.like.end() ? read_item(name, item) : read_item_like(name, item, like->second);
    }
    return result;
  }

  Arrays read_parts(const std::vector<CheckpointPart>& parts) {
    std::map<std::string, std::pair<const std::string*, std::size_t>> places;  // the item, and the number of the array
    for (const auto& [name, item] : manifest_.items) {
      const std::vector<std::string> names = array_names(name, item.structure);
      for (std::size_t i = 0; i < names.size(); ++i) places[name + "." + names[i]] = {&name, i};
    }
    Arrays arrays(parts.size());
    std::vector<Wanted> wanted;
    for (const CheckpointPart& part : parts) {
      const auto it = places.find(part.array);
      if (it == places.end())
        throw ValueError(concat("checkpoint restore: step ", step_, " holds no array '", part.array, "'"));
      const auto& [item, index] = it->second;
      const ManifestArray& entry = manifest_.items.at(*item).arrays[index];
      const Shape& shape = entry.type.shape;
      bool inside = part.start.size() == shape.size() && part.size.size() == shape.size();
      for (std::size_t i = 0; inside && i < shape.size(); ++i)
        inside = part.start[i] >= 0 && part.size[i] >= 0 && part.start[i] <= shape[i] &&
                 part.size[i] <= shape[i] - part.start[i];
      if (!inside)
        throw ValueError(
            concat("checkpoint restore: a part of ", part.array, " is not inside of ", to_string(entry.type)));
      wanted.push_back(
          {*item, part.array.substr(item->size() + 1), entry, &arrays[wanted.size()], ZarrPart{part.start, part.size}});
    }
    read_arrays(wanted);
    return arrays;
  }

 private:
  ValueError missing_item(const std::string& name) const {
    std::string held;
    for (const auto& [item, content] : manifest_.items) held += (held.empty() ? "'" : ", '") + item + "'";
    return ValueError(
        concat("checkpoint restore: step ", step_, " holds no item '", name, "' (argument 'like'); it holds ", held));
  }

  // A small file, verified by the manifest's checksum.
  std::string checked_file(const std::string& file) const {
    const auto it = manifest_.files.find(file);
    const std::string path = folder_ + "/" + file;
    if (it == manifest_.files.end())
      throw CorruptCheckpointError(concat("checkpoint: the manifest of ", folder_, " does not know ", file));
    const std::optional<Blob> found = Blob::open_if_there(path);
    if (!found) throw CorruptCheckpointError(concat("checkpoint: step ", step_, ": the file ", path, " is missing"));
    const std::string text = found->read_all(max_manifest_bytes);
    const uint32_t computed = crc32c(std::as_bytes(std::span(text)));
    if (text.size() != it->second.bytes || computed != it->second.checksum) {
      throw CorruptCheckpointError(concat("checkpoint: step ", step_, ": the file ", path, " has ", text.size(),
                                          " bytes with the checksum ", checksum_text(computed), ", expected ",
                                          it->second.bytes, " bytes with ", checksum_text(it->second.checksum)));
    }
    return text;
  }

  Array read_array(const std::string& item, const std::string& name, const ManifestArray& entry,
                   const ZarrPart* part = nullptr) const {
    const std::string folder = item + "/" + name, full_name = item + "." + name;
    const ZarrStore store = [&](const std::string& key) -> std::optional<Blob> {
      if (key == "zarr.json") {
        try {
          return Blob::of_bytes(checked_file(folder + "/" + key), folder_ + "/" + folder + "/" + key);
        } catch (const CorruptCheckpointError& error) {
          throw CorruptCheckpointError(concat("checkpoint: array ", full_name, ": ", error.what()));
        }
      }
      return Blob::open_if_there(folder_ + "/" + folder + "/" + key);
    };
    const ZarrArray array = read_zarr_description(store, full_name);
    const StoredType stored = stored_type(entry.type.dtype, entry.type.shape);
    if (array.type.dtype != stored.dtype || array.type.shape != stored.shape) {
      throw CorruptCheckpointError(concat("checkpoint: array ", full_name, ", file ", folder_, "/", folder,
                                          "/zarr.json: it describes ", to_string(array.type), ", the manifest ",
                                          to_string(entry.type)));
    }
    ArrayType type = entry.type;
    ZarrPart words;
    if (part) {
      type.shape = part->size;
      words = {part->start, stored_type(type.dtype, part->size).shape};
      words.start.resize(words.size.size(), 0);  // the words of a key
    }
    return Array::from_buffer(type,
                              read_zarr(store, array, full_name, &entry.checksums, part ? &words : nullptr).buffer());
  }

  // Arrays to read, each into its own slot.
  struct Wanted {
    const std::string& item;
    std::string name;
    const ManifestArray& entry;
    Array* to;
    std::optional<ZarrPart> part = std::nullopt;

    bool is_large() const {
      const int64_t count = element_count(part ? part->size : entry.type.shape);
      return static_cast<uint64_t>(count) >= large_array / static_cast<uint64_t>(storage_size(entry.type.dtype));
    }
  };

  void read_arrays(const std::vector<Wanted>& all) const {
    const auto read = [&](const Wanted& one) {
      *one.to = read_array(one.item, one.name, one.entry, one.part ? &*one.part : nullptr);
    };
    std::vector<const Wanted*> small;
    for (const Wanted& one : all) {
      if (one.is_large())
        read(one);
      else
        small.push_back(&one);
    }
    for_each_read(small.size(), [&](std::size_t i) { read(*small[i]); });
  }

  CheckpointTree read_item(const std::string& name, const ManifestItem& item) {
    CheckpointTree result;
    const std::vector<std::string> names = array_names(name, item.structure);
    std::vector<bool> chosen;
    for (const std::string& array : names) chosen.push_back(only_.array(name + "." + array));
    result.leaves.resize(static_cast<std::size_t>(std::count(chosen.begin(), chosen.end(), true)));
    std::vector<Wanted> wanted;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (chosen[i]) wanted.push_back({name, names[i], item.arrays[i], &result.leaves[wanted.size()]});
    }
    read_arrays(wanted);
    std::size_t leaf = 0;
    result.structure = only_.all() ? item.structure : pruned(item.structure, chosen, leaf);
    return result;
  }

  CheckpointTree read_item_like(const std::string& name, const ManifestItem& item, const CheckpointTree& like) {
    std::map<std::string, std::size_t> saved;
    const std::vector<std::string> names = array_names(name, item.structure);
    for (std::size_t i = 0; i < names.size(); ++i) saved[names[i]] = i;
    CheckpointTree result{like.structure, like.leaves};
    std::set<std::string> known;
    std::vector<Wanted> wanted;
    const std::vector<KeyPath> paths = like.structure.paths();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const std::string array = array_name(paths[i]);
      known.insert(array);
      if (!only_.array(name + "." + array)) continue;  // keeps the value of `like`
      const auto it = saved.find(array);
      if (it == saved.end()) {
        throw ValueError(
            concat("checkpoint restore: step ", step_, " holds no array ", name, keystr(paths[i]),
                   " (argument 'like'); tree unlike the saved one: ", tree_difference(item.structure, like.structure)));
      }
      const ArrayType& expected = like.leaves[i].type();
      const ArrayType& got = item.arrays[it->second].type;
      if (expected.shape != got.shape || expected.dtype != got.dtype) {
        throw ValueError(concat("checkpoint restore: array ", name, keystr(paths[i]), ": expected ",
                                to_string(expected), " (argument 'like'), got ", to_string(got)));
      }
      wanted.push_back({name, array, item.arrays[it->second], &result.leaves[i]});
    }
    for (const auto& [array, index] : saved) {
      if (known.contains(array) || !only_.array(name + "." + array)) continue;
      throw ValueError(concat("checkpoint restore: step ", step_, " holds an array '", name, ".", array,
                              "' that 'like' does not have; name what to read with 'only'"));
    }
    read_arrays(wanted);
    return result;
  }

  const std::string folder_;
  const int64_t step_;
  const RestoreOptions& options_;
  const Manifest manifest_;
  Selection only_;
};

// Puts what Orbax saved into the structures of `like`.
void match_like(Checkpoint& checkpoint, const RestoreOptions& options) {
  for (const auto& [name, like] : options.like) {
    const auto item = checkpoint.items.find(name);
    if (item == checkpoint.items.end())
      throw ValueError(concat("checkpoint restore: the folder holds no item '", name, "' (argument 'like')"));
    std::map<std::string, Array> saved;
    const std::vector<KeyPath> have = item->second.structure.paths(), want = like.structure.paths();
    for (std::size_t i = 0; i < have.size(); ++i) saved[array_name(have[i])] = item->second.leaves[i];
    CheckpointTree result = like;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto it = saved.find(array_name(want[i]));
      if (it == saved.end()) {
        if (!options.only.empty()) continue;
        throw ValueError(concat("checkpoint restore: there is no array ", name, keystr(want[i]), " (argument 'like')"));
      }
      const ArrayType& expected = like.leaves[i].type();
      if (expected.shape != it->second.shape() || expected.dtype != it->second.dtype()) {
        throw ValueError(concat("checkpoint restore: array ", name, keystr(want[i]), ": expected ", to_string(expected),
                                " (argument 'like'), got ", to_string(it->second.type())));
      }
      result.leaves[i] = it->second;
    }
    item->second = std::move(result);
  }
}

}  // namespace

bool has_manifest(const std::string& step_folder) { return is_file(step_folder + "/" + manifest_file); }

Manifest read_manifest(const std::string& step_folder) {
  const std::string file = step_folder + "/" + manifest_file;
  const std::optional<Blob> found = Blob::open_if_there(file);
  if (!found) throw CorruptCheckpointError(concat("checkpoint: the manifest ", file, " is missing"));
  return Manifest::parse(found->read_all(max_manifest_bytes), file);
}

Checkpoint read_step(const std::string& folder, int64_t step, const RestoreOptions& options) {
  const std::string path = step_folder(folder, step);
  if (has_manifest(path) || !is_orbax_folder(path)) return StepReader(path, step, options).read();
  Checkpoint result = read_orbax(path, options.only);
  result.step = step;
  match_like(result, options);
  return result;
}

Arrays read_step_parts(const std::string& folder, int64_t step, const std::vector<CheckpointPart>& parts) {
  const RestoreOptions options;
  return StepReader(step_folder(folder, step), step, options).read_parts(parts);
}

Checkpoint read_checkpoint(const std::string& folder, const std::vector<std::string>& only) {
  if (!is_folder(folder)) throw CheckpointError(concat("checkpoint: there is no folder ", folder));
  if (!has_manifest(folder)) {
    if (!is_orbax_folder(folder))
      throw CheckpointError(concat("checkpoint: ", folder, " holds neither ", manifest_file,
                                   " nor _METADATA of Orbax; expected the folder of a step"));
    return read_orbax(folder, only);
  }
  RestoreOptions options;
  options.only = only;
  return StepReader(folder, read_manifest(folder).step, options).read();
}

std::vector<CheckpointArrayInfo> step_arrays(const std::string& folder, int64_t step) {
  std::vector<CheckpointArrayInfo> infos;
  const std::string path = step_folder(folder, step);
  if (!has_manifest(path) && is_orbax_folder(path)) {
    for (const auto& [name, item] : read_orbax(path, {}).items) {
      const std::vector<KeyPath> paths = item.structure.paths();
      for (std::size_t i = 0; i < paths.size(); ++i) {
        const ArrayType& type = item.leaves[i].type();
        infos.push_back({name + "." + array_name(paths[i]), type, type.size() * storage_size(type.dtype), 0});
      }
    }
    return infos;
  }
  for (const auto& [name, item] : read_manifest(path).items) {
    const std::vector<std::string> names = array_names(name, item.structure);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ArrayType& type = item.arrays[i].type;
      infos.push_back({name + "." + names[i], type, type.size() * storage_size(type.dtype),
                       static_cast<int64_t>(item.arrays[i].checksums.size())});
    }
  }
  return infos;
}

}  // namespace capibara
