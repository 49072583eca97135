// Names of arrays, and the manifest as text.
#include "io/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <capibara/checkpoint.h>

#include "io/files/crc32c.h"

namespace capibara {

namespace {

constexpr std::string_view checksum_member = ", \"checksum\": \"";

void append_entries(const TreeDef& tree, KeyPath& path, std::vector<TreeEntry>& entries) {
  if (tree.children().empty()) {
    if (tree.kind() != TreeDef::Kind::value) entries.push_back({path, tree.kind()});
    return;
  }
  for (std::size_t i = 0; i < tree.children().size(); ++i) {
    path.push_back(tree.key(i));
    append_entries(tree.children()[i], path, entries);
    path.pop_back();
  }
}

bool is_reserved(std::string_view name) {
  static constexpr std::string_view names[] = {"_METADATA",       "_sharding",          "_strings.json",
                                               "array_metadatas", "commit_success.txt", "zarr.json"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

uint32_t checksum_of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

// Members of the manifest, with errors that name its file.
struct ManifestReader {
  const std::string& file;

  [[noreturn]] void fail(const std::string& message) const {
    throw CorruptCheckpointError(concat("checkpoint: the manifest ", file, " is damaged: ", message));
  }
  const Json& member(const Json& object, const char* key) const {
    const Json* found = object.find(key);
    if (!found) fail(concat("expected a member '", key, "'"));
    return *found;
  }
  int64_t integer(const Json& object, const char* key) const {
    const int64_t* found = member(object, key).integer();
    if (!found || *found < 0) fail(concat("expected '", key, "' to be a number that is not negative"));
    return *found;
  }
  const std::string& text(const Json& json, const char* what) const {
    if (!json.text()) fail(concat("expected ", what, " to be a text"));
    return *json.text();
  }
  const Json::List& list(const Json& json, const char* what) const {
    if (!json.list()) fail(concat("expected ", what, " to be a list"));
    return *json.list();
  }
  const Json::Object& object(const Json& json, const char* what) const {
    if (!json.object()) fail(concat("expected ", what, " to be an object"));
    return *json.object();
  }
  uint32_t checksum(std::string_view digits) const {
    uint32_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 8 || read.ptr != digits.data() + digits.size())
      fail("expected a checksum of eight hexadecimal digits");
    return value;
  }

  TreeDef structure(const Json& json) const {
    if (const std::string* word = json.text()) {
      if (*word == "leaf") return TreeDef::leaf();
      if (*word == "none") return TreeDef::none();
    }
    if (!json.object() || json.object()->size() != 1) fail("expected a structure");
    const auto& [kind, content] = *json.object()->begin();
    std::vector<TreeDef> children;
    std::vector<TreeKey> keys;
    for (const Json& child : list(content, "the children of a structure")) {
      if (kind != "dict") {
        children.push_back(structure(child));
        continue;
      }
      const Json::List& pair = list(child, "a member of a dictionary");
      if (pair.size() != 2) fail("expected a key and a structure");
      if (pair[0].integer())
        keys.push_back({TreeKey::integer, *pair[0].integer(), {}});
      else
        keys.push_back({TreeKey::text, 0, text(pair[0], "a key")});
      children.push_back(structure(pair[1]));
    }
    if (kind == "dict") return TreeDef::dict(std::move(keys), std::move(children));
    if (kind == "list") return TreeDef::list(std::move(children));
    if (kind == "tuple") return TreeDef::tuple(std::move(children));
    fail(concat("an unknown structure '", kind, "'"));
  }

  ManifestArray array(const Json& json) const {
    ManifestArray result;
    const std::string& dtype = text(member(json, "dtype"), "'dtype'");
    const std::optional<DType> known = dtype_from_name(dtype);
    if (!known || *known == DType::token) fail(concat("an unknown dtype '", dtype, "'"));
    result.type.dtype = *known;
    int64_t bytes = storage_size(*known);
    for (const Json& size : list(member(json, "shape"), "'shape'")) {
      if (!size.integer() || *size.integer() < 0) fail("expected a shape of sizes");
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(*size.integer(), 1), &bytes)) fail("an array is too large");
      result.type.shape.push_back(*size.integer());
    }
    const bool* weak = member(json, "weak_type").boolean();
    if (!weak) fail("expected 'weak_type' to be true or false");
    result.type.weak_type = *weak;
    const std::string_view digits = text(member(json, "chunks"), "'chunks'");
    if (digits.size() % 8 != 0) fail("expected the checksums of chunks to have eight digits each");
    for (std::size_t i = 0; i < digits.size(); i += 8) result.checksums.push_back(checksum(digits.substr(i, 8)));
    return result;
  }
};

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::vector<TreeEntry> tree_entries(const TreeDef& tree) {
  std::vector<TreeEntry> entries;
  KeyPath path;
  append_entries(tree, path, entries);
  return entries;
}

std::string key_text(const TreeKey& key) {
  return key.kind == TreeKey::index || key.kind == TreeKey::integer ? std::to_string(key.number) : key.name;
}

std::string array_name(const KeyPath& path) {
  if (path.empty()) return "value";
  std::string name = key_text(path[0]);
  for (std::size_t i = 1; i < path.size(); ++i) name += "." + key_text(path[i]);
  return name;
}

std::vector<std::string> array_names(const std::string& item, const TreeDef& tree) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const KeyPath& path : tree.paths()) {
    const std::string name = array_name(path);
    if (!is_safe_path(name) || is_reserved(name)) {
      throw ValueError(
          concat("checkpoint: the array ", item, keystr(path), " has no name that a folder may have: '", name, "'"));
    }
    if (!taken.insert(name).second) {
      throw ValueError(concat("checkpoint: two arrays of '", item, "' are called '", name, "', the second is ",
                              keystr(path), "; rename a key that has a '.' in it"));
    }
    names.push_back(name);
  }
  return names;
}

void check_item_name(const std::string& item) {
  if (!is_safe_path(item) || item.find('/') != std::string::npos || item[0] == '_' || item == manifest_file ||
      item == "commit_success.txt") {
    throw ValueError(
        concat("checkpoint: '", item,
               "' cannot be the name of an item; expected a name for a folder that does not begin with '_'"));
  }
}

Json structure_json(const TreeDef& tree) {
  Json::List children;
  for (std::size_t i = 0; i < tree.children().size(); ++i) {
    Json child = structure_json(tree.children()[i]);
    if (tree.kind() == TreeDef::Kind::dict || tree.kind() == TreeDef::Kind::record) {
      const TreeKey key = tree.key(i);
      child = Json::List{key.kind == TreeKey::integer ? Json(key.number) : Json(key_text(key)), std::move(child)};
    }
    children.push_back(std::move(child));
  }
  switch (tree.kind()) {
    case TreeDef::Kind::leaf:
      return "leaf";
    case TreeDef::Kind::tuple:
      return Json::Object{{"tuple", std::move(children)}};
    case TreeDef::Kind::list:
      return Json::Object{{"list", std::move(children)}};
    case TreeDef::Kind::dict:
    case TreeDef::Kind::record:
      return Json::Object{{"dict", std::move(children)}};
    default:
      return "none";
  }
}

TreeDef structure_from_json(const Json& json, const std::string& file) { return ManifestReader{file}.structure(json); }

std::string checksum_text(uint32_t checksum) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", checksum);
  return text;
}

std::string Manifest::text() const {
  Json::Object all_items, all_files;
  for (const auto& [name, item] : items) {
    Json::List arrays;
    for (const ManifestArray& array : item.arrays) {
      Json::List shape;
      for (const int64_t size : array.type.shape) shape.emplace_back(size);
      std::string chunks;
      for (const uint32_t checksum : array.checksums) chunks += checksum_text(checksum);
      arrays.emplace_back(Json::Object{{"dtype", dtype_name(array.type.dtype)},
                                       {"shape", std::move(shape)},
                                       {"weak_type", array.type.weak_type},
                                       {"chunks", std::move(chunks)}});
    }
    all_items[name] = Json::Object{{"structure", structure_json(item.structure)}, {"arrays", std::move(arrays)}};
  }
  for (const auto& [name, file] : files) {
    all_files[name] =
        Json::Object{{"bytes", static_cast<int64_t>(file.bytes)}, {"crc32c", checksum_text(file.checksum)}};
  }
  std::string text = Json(Json::Object{{"capibara_checkpoint", 1},
                                       {"step", step},
                                       {"items", std::move(all_items)},
                                       {"files", std::move(all_files)}})
                         .dump();
  text.pop_back();  // its closing brace: the checksum of the text before it comes last
  return text + std::string(checksum_member) + checksum_text(checksum_of(text)) + "\"}\n";
}

Manifest Manifest::parse(std::string_view text, const std::string& file) {
  const ManifestReader reader{file};
  const std::size_t ending = checksum_member.size() + 8 + 3;
  if (text.size() < ending || text.substr(text.size() - ending, checksum_member.size()) != checksum_member ||
      !text.ends_with("\"}\n")) {
    reader.fail("it does not end with its checksum");
  }
  const std::string_view content = text.substr(0, text.size() - ending);
  const uint32_t computed = checksum_of(content), stored = reader.checksum(text.substr(text.size() - 11, 8));
  if (computed != stored)
    reader.fail(concat("its checksum is ", checksum_text(computed), ", expected ", checksum_text(stored)));
  try {
    const Json json = Json::parse(text, file);
    if (reader.integer(json, "capibara_checkpoint") != 1) {
      throw CheckpointError(concat("checkpoint: ", file, " was written by a newer version of capibara"));
    }
    Manifest manifest;
    manifest.step = reader.integer(json, "step");
    for (const auto& [name, item] : reader.object(reader.member(json, "items"), "'items'")) {
      check_item_name(name);
      ManifestItem& entry = manifest.items[name];
      entry.structure = reader.structure(reader.member(item, "structure"));
      array_names(name, entry.structure);
      for (const Json& array : reader.list(reader.member(item, "arrays"), "'arrays'"))
        entry.arrays.push_back(reader.array(array));
      if (entry.arrays.size() != entry.structure.num_leaves())
        reader.fail(concat("item '", name, "' has another number of arrays than leaves"));
    }
    for (const auto& [name, entry] : reader.object(reader.member(json, "files"), "'files'")) {
      if (!is_safe_path(name)) reader.fail(concat("'", name, "' is not a path inside of the step"));
      manifest.files[name] = {static_cast<uint64_t>(reader.integer(entry, "bytes")),
                              reader.checksum(reader.text(reader.member(entry, "crc32c"), "'crc32c'"))};
    }
    return manifest;
  } catch (const ValueError& error) {
    reader.fail(error.what());
  }
}

}  // namespace capibara
