// Reading what Orbax has written: the tree from _METADATA, the arrays from zarr folders or from OCDBT.
#include <algorithm>

#include "io/checkpoint/files.h"
#include "io/checkpoint/ocdbt.h"
#include "io/checkpoint/step.h"
#include "io/checkpoint/zarr.h"

namespace capibara {

namespace {

constexpr uint64_t max_metadata_bytes = uint64_t{1} << 28;
constexpr std::size_t max_path_keys = 200;

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw CorruptCheckpointError(concat("checkpoint: file ", file, ": ", message));
}

Json read_json(const std::string& file) {
  const std::optional<Blob> found = Blob::open_if_there(file);
  if (!found) fail(file, "it is missing");
  try {
    return Json::parse(found->read_all(max_metadata_bytes), file);
  } catch (const ValueError& error) {
    fail(file, error.what());
  }
}

// A tree that is built from the paths of its leaves.
struct GrowingTree {
  enum Kind { undecided, leaf, none, dict, list, tuple } kind = undecided;
  std::map<std::pair<std::size_t, std::string>, GrowingTree> children;

  // Dictionaries are ordered by key, sequences by number.
  GrowingTree* child(const std::string& key) { return &children[{kind == list ? key.size() : 0, key}]; }
};

struct OrbaxLeaf {
  std::string name;
  std::string value_type;
};

class OrbaxItem {
 public:
  OrbaxItem(std::string folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {
    const std::string file = folder_ + "/_METADATA";
    const Json metadata = read_json(file);
    const Json* tree = metadata.find("tree_metadata");
    if (!tree || !tree->object()) fail(file, "expected an object 'tree_metadata'");
    for (const auto& [key, entry] : *tree->object()) add(file, key, entry);
    const Json* ocdbt = metadata.find("use_ocdbt");
    const bool in_ocdbt = ocdbt ? ocdbt->boolean() && *ocdbt->boolean() : is_file(folder_ + "/manifest.ocdbt");
    if (in_ocdbt) values_ = read_ocdbt(folder_);
  }

  CheckpointTree read(const std::vector<std::string>& only) {
    CheckpointTree result;
    result.structure = structure(root_, "", only, result.leaves);
    return result;
  }

 private:
  void add(const std::string& file, const std::string& key, const Json& entry) {
    const Json* keys = entry.find("key_metadata");
    const Json* value = entry.find("value_metadata");
    const Json* type = value ? value->find("value_type") : nullptr;
    if (!keys || !keys->list() || !type || !type->text())
      fail(file, concat("expected 'key_metadata' and 'value_metadata' of ", key));
    if (keys->list()->size() > max_path_keys) fail(file, concat("a path has more than ", max_path_keys, " keys"));
    GrowingTree* node = &root_;
    std::string name;
    for (const Json& part : *keys->list()) {
      const Json* text = part.find("key");
      const Json* key_type = part.find("key_type");
      if (!text || !text->text() || !key_type || !key_type->integer())
        fail(file, concat("expected keys with types in ", key));
      const GrowingTree::Kind kind = *key_type->integer() == 1 ? GrowingTree::list : GrowingTree::dict;
      if (node->kind != GrowingTree::undecided && node->kind != kind)
        fail(file, concat("the tree contradicts itself at ", key));
      node->kind = kind;
      node = node->child(*text->text());
      name += (name.empty() ? "" : ".") + *text->text();
    }
    if (node->kind != GrowingTree::undecided || !node->children.empty())
      fail(file, concat("the tree contradicts itself at ", key));
    const std::string& word = *type->text();
    node->kind = word == "None"                            ? GrowingTree::none
                 : word == "Dict"                          ? GrowingTree::dict
                 : word == "List"                          ? GrowingTree::list
                 : word == "Tuple" || word == "NamedTuple" ? GrowingTree::tuple
                                                           : GrowingTree::leaf;
    if (node->kind == GrowingTree::leaf && !is_safe_path(name))
      fail(file, concat("'", name, "' is not a path inside of the folder"));
    if (node->kind == GrowingTree::leaf) leaves_[node_name(*keys->list())] = {name, word};
  }

  static std::string node_name(const Json::List& keys) {
    std::string path;
    for (const Json& part : keys) path += "/" + *part.find("key")->text();
    return path;
  }

  static bool is_chosen(const std::string& name, const std::vector<std::string>& only) {
    return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& one) {
             return name == one || name.starts_with(one + ".");
           });
  }

  TreeDef structure(GrowingTree& node, const std::string& path, const std::vector<std::string>& only, Arrays& leaves) {
    if (node.kind == GrowingTree::leaf) {
      const OrbaxLeaf& leaf = leaves_.at(path);
      if (!is_chosen(name_ + "." + leaf.name, only)) return TreeDef::none();
      leaves.push_back(read_array(leaf));
      return TreeDef::leaf();
    }
    if (node.kind == GrowingTree::none) return TreeDef::none();
    const bool is_dict = node.kind == GrowingTree::dict || node.kind == GrowingTree::undecided;
    std::vector<TreeDef> children;
    std::vector<TreeKey> keys;
    for (auto& [key, child] : node.children) {
      children.push_back(structure(child, path + "/" + key.second, only, leaves));
      keys.push_back({TreeKey::text, 0, key.second});
    }
    if (is_dict) return TreeDef::dict(std::move(keys), std::move(children));
    return node.kind == GrowingTree::list ? TreeDef::list(std::move(children)) : TreeDef::tuple(std::move(children));
  }

  Array read_array(const OrbaxLeaf& leaf) const {
    const std::string full_name = name_ + "." + leaf.name;
    if (leaf.value_type == "string")
      throw CheckpointError(
          concat("checkpoint: ", full_name, " is a text, and only arrays can be read; name others with 'only'"));
    const ZarrStore store = [&](const std::string& key) -> std::optional<Blob> {
      if (values_.empty()) return Blob::open_if_there(folder_ + "/" + leaf.name + "/" + key);
      const auto it = values_.find(leaf.name + "/" + key);
      return it == values_.end() ? std::nullopt : std::optional(it->second);
    };
    const ZarrArray array = read_zarr_description(store, full_name);
    if (array.own)
      throw CorruptCheckpointError(concat("checkpoint: array ", full_name, " was saved by capibara, and its manifest ",
                                          manifest_file, " is missing"));
    return read_zarr(store, array, full_name);
  }

  const std::string folder_, name_;
  GrowingTree root_;
  std::map<std::string, OrbaxLeaf> leaves_;
  std::map<std::string, Blob> values_;
};

}  // namespace

bool is_orbax_folder(const std::string& folder) {
  if (is_file(folder + "/_METADATA")) return true;
  const std::vector<std::string> names = names_in(folder);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return is_file(folder + "/" + name + "/_METADATA"); });
}

Checkpoint read_orbax(const std::string& folder, const std::vector<std::string>& only) {
  Checkpoint result;
  Json::Object metadata;
  if (is_file(folder + "/_METADATA")) {
    result.items["default"] = OrbaxItem(folder, "default").read(only);
  } else {
    for (const std::string& name : names_in(folder)) {
      const std::string item = folder + "/" + name;
      const bool wanted = only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& one) {
                            return one == name || one.starts_with(name + ".");
                          });
      if (is_file(item + "/_METADATA")) {
        if (wanted) result.items[name] = OrbaxItem(item, name).read(only);
      } else if (is_file(item + "/metadata")) {
        metadata[name] = read_json(item + "/metadata");
      }
    }
  }
  if (is_file(folder + "/_CHECKPOINT_METADATA")) {
    const Json description = read_json(folder + "/_CHECKPOINT_METADATA");
    const Json* custom = description.find("custom_metadata");
    if (custom && custom->object()) metadata.insert(custom->object()->begin(), custom->object()->end());
  }
  result.metadata = Json(std::move(metadata)).dump();
  return result;
}

}  // namespace capibara
