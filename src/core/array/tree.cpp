// The structure of trees: equality, text, key paths, and what differs between two of them.
#include <capibara/tree.h>

#include <ostream>

namespace capibara {

struct TreeDef::Node {
  Kind kind = Kind::leaf;
  std::string type;  // records
  std::vector<TreeKey> keys;
  std::vector<TreeDef> children;
  std::shared_ptr<const StaticLeaf> value;
  std::size_t leaves = 0, nodes = 1, hash = 0;
};

namespace {

void mix(std::size_t& hash, std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2); }

std::shared_ptr<const TreeDef::Node> finish(TreeDef::Node node) {
  node.leaves = node.kind == TreeDef::Kind::leaf ? 1 : 0;
  node.hash = static_cast<std::size_t>(node.kind) + 0x51ed270b;
  for (char letter : node.type) mix(node.hash, static_cast<unsigned char>(letter));
  for (const TreeKey& key : node.keys) {
    mix(node.hash, static_cast<std::size_t>(key.number));
    mix(node.hash, std::hash<std::string>{}(key.name));
  }
  if (node.value) mix(node.hash, node.value->hash());
  for (const TreeDef& child : node.children) {
    node.leaves += child.num_leaves();
    node.nodes += child.num_nodes();
    mix(node.hash, child.hash());
  }
  return std::make_shared<const TreeDef::Node>(std::move(node));
}

std::shared_ptr<const TreeDef::Node> single(TreeDef::Kind kind) {
  TreeDef::Node node;
  node.kind = kind;
  return finish(std::move(node));
}

std::string key_text(const TreeKey& key) {
  return key.kind == TreeKey::text ? concat("'", key.name, "'") : std::to_string(key.number);
}

void print(const TreeDef& tree, std::string& text) {
  auto join = [&](auto piece) {
    for (std::size_t i = 0; i < tree.children().size(); ++i) {
      if (i) text += ", ";
      piece(i);
    }
  };
  auto child = [&](std::size_t i) { print(tree.children()[i], text); };
  switch (tree.kind()) {
    case TreeDef::Kind::leaf:
      text += "*";
      return;
    case TreeDef::Kind::none:
      text += "None";
      return;
    case TreeDef::Kind::value:
      text += tree.static_value()->print();
      return;
    case TreeDef::Kind::tuple:
      text += "(";
      join(child);
      text += tree.children().size() == 1 ? ",)" : ")";
      return;
    case TreeDef::Kind::list:
      text += "[";
      join(child);
      text += "]";
      return;
    case TreeDef::Kind::dict:
      text += "{";
      join([&](std::size_t i) {
        text += concat(key_text(tree.keys()[i]), ": ");
        child(i);
      });
      text += "}";
      return;
    case TreeDef::Kind::record: {
      // As jax prints a registered dataclass: static fields in the brackets, the others as children.
      std::string statics, separator;
      std::size_t static_count = 0;
      for (const TreeDef& field : tree.children()) {
        if (field.kind() != TreeDef::Kind::value) continue;
        statics += concat(static_count++ ? ", " : "", field.static_value()->print());
      }
      text += concat("CustomNode(", tree.type_name(), "[(", statics, static_count == 1 ? ",)" : ")", "], [");
      for (const TreeDef& field : tree.children()) {
        if (field.kind() == TreeDef::Kind::value) continue;
        text += separator;
        separator = ", ";
        print(field, text);
      }
      text += "])";
      return;
    }
  }
}

void collect_paths(const TreeDef& tree, KeyPath& path, std::vector<KeyPath>& paths) {
  if (tree.kind() == TreeDef::Kind::leaf) {
    paths.push_back(path);
    return;
  }
  for (std::size_t i = 0; i < tree.children().size(); ++i) {
    if (tree.children()[i].num_leaves() == 0) continue;
    path.push_back(tree.key(i));
    collect_paths(tree.children()[i], path, paths);
    path.pop_back();
  }
}

std::string describe(const TreeDef& tree) {
  switch (tree.kind()) {
    case TreeDef::Kind::leaf:
      return "an array";
    case TreeDef::Kind::none:
      return "None";
    case TreeDef::Kind::value:
      return concat("the static value ", tree.static_value()->print());
    case TreeDef::Kind::tuple:
      return concat("a tuple of ", tree.children().size());
    case TreeDef::Kind::list:
      return concat("a list of ", tree.children().size());
    case TreeDef::Kind::record:
      return concat("a ", tree.type_name());
    case TreeDef::Kind::dict:
      break;
  }
  std::string keys;
  for (const TreeKey& key : tree.keys()) keys += concat(keys.empty() ? "" : ", ", key_text(key));
  return concat("a dict with keys {", keys, "}");
}

std::optional<std::string> difference(const TreeDef& expected, const TreeDef& got, KeyPath& path) {
  if (expected == got) return std::nullopt;
  bool same_node = expected.kind() == got.kind() && expected.children().size() == got.children().size() &&
                   expected.keys() == got.keys() && expected.type_name() == got.type_name() &&
                   expected.kind() != TreeDef::Kind::value;
  if (!same_node) {
    std::string place = path.empty() ? "at the root" : concat("at ", keystr(path));
    return concat(place, " expected ", describe(expected), ", got ", describe(got));
  }
  for (std::size_t i = 0; i < expected.children().size(); ++i) {
    path.push_back(expected.key(i));
    if (auto found = difference(expected.children()[i], got.children()[i], path)) return found;
    path.pop_back();
  }
  return std::nullopt;
}

}  // namespace

std::string keystr(const KeyPath& path) {
  std::string text;
  for (const TreeKey& key : path) {
    text += key.kind == TreeKey::field ? concat(".", key.name) : concat("[", key_text(key), "]");
  }
  return text;
}

TreeDef::TreeDef() : TreeDef(leaf()) {}

TreeDef TreeDef::leaf() {
  static const TreeDef shared(single(Kind::leaf));
  return shared;
}

TreeDef TreeDef::none() {
  static const TreeDef shared(single(Kind::none));
  return shared;
}

TreeDef TreeDef::tuple(std::vector<TreeDef> children) {
  Node node;
  node.kind = Kind::tuple;
  node.children = std::move(children);
  return TreeDef(finish(std::move(node)));
}

TreeDef TreeDef::list(std::vector<TreeDef> children) {
  Node node;
  node.kind = Kind::list;
  node.children = std::move(children);
  return TreeDef(finish(std::move(node)));
}

TreeDef TreeDef::dict(std::vector<TreeKey> keys, std::vector<TreeDef> children) {
  Node node;
  node.kind = Kind::dict;
  node.keys = std::move(keys);
  node.children = std::move(children);
  return TreeDef(finish(std::move(node)));
}

TreeDef TreeDef::record(std::string type, std::vector<TreeKey> fields, std::vector<TreeDef> children) {
  Node node;
  node.kind = Kind::record;
  node.type = std::move(type);
  node.keys = std::move(fields);
  node.children = std::move(children);
  return TreeDef(finish(std::move(node)));
}

TreeDef TreeDef::value(std::shared_ptr<const StaticLeaf> value) {
  Node node;
  node.kind = Kind::value;
  node.value = std::move(value);
  return TreeDef(finish(std::move(node)));
}

TreeDef::Kind TreeDef::kind() const { return node_->kind; }
std::size_t TreeDef::num_leaves() const { return node_->leaves; }
std::size_t TreeDef::num_nodes() const { return node_->nodes; }
std::size_t TreeDef::hash() const { return node_->hash; }
const std::vector<TreeDef>& TreeDef::children() const { return node_->children; }
const std::vector<TreeKey>& TreeDef::keys() const { return node_->keys; }
const std::string& TreeDef::type_name() const { return node_->type; }
const StaticLeaf* TreeDef::static_value() const { return node_->value.get(); }

TreeKey TreeDef::key(std::size_t child) const {
  if (!node_->keys.empty()) return node_->keys[child];
  return {TreeKey::index, static_cast<int64_t>(child), {}};
}

std::string TreeDef::to_string() const {
  std::string text = "PyTreeDef(";
  print(*this, text);
  return text + ")";
}

std::vector<KeyPath> TreeDef::paths() const {
  std::vector<KeyPath> paths;
  KeyPath path;
  collect_paths(*this, path, paths);
  return paths;
}

TreeDef TreeDef::compose(const TreeDef& inner) const {
  if (kind() == Kind::leaf) return inner;
  if (num_leaves() == 0) return *this;
  Node node;
  node.kind = kind();
  node.type = node_->type;
  node.keys = node_->keys;
  for (const TreeDef& child : children()) node.children.push_back(child.compose(inner));
  return TreeDef(finish(std::move(node)));
}

bool operator==(const TreeDef& a, const TreeDef& b) {
  const TreeDef::Node& x = *a.node_;
  const TreeDef::Node& y = *b.node_;
  if (&x == &y) return true;
  if (x.hash != y.hash || x.kind != y.kind || x.leaves != y.leaves || x.type != y.type || x.keys != y.keys)
    return false;
  if (x.value && !x.value->equals(*y.value)) return false;
  return x.children == y.children;
}

std::ostream& operator<<(std::ostream& out, const TreeDef& tree) { return out << tree.to_string(); }

std::string tree_difference(const TreeDef& expected, const TreeDef& got) {
  KeyPath path;
  return difference(expected, got, path).value_or("no difference");
}

namespace detail {

Array LeafReader::next() {
  if (position_ >= leaves_.size()) {
    throw ValueError(concat("unflatten: the structure needs more leaves than the ", leaves_.size(), " given"));
  }
  const std::size_t leaf = position_++;
  return movable_ ? std::move(movable_[leaf]) : leaves_[leaf];
}

void LeafReader::finish() const {
  if (position_ != leaves_.size()) {
    throw ValueError(concat("unflatten: the structure needs ", position_, " leaves, got ", leaves_.size()));
  }
}

void throw_unexpected_node(const TreeDef& got, const char* expected) {
  throw ValueError(concat("unflatten: the C++ type needs ", expected, ", the structure has ", describe(got)));
}

void require_children(const TreeDef& tree, TreeDef::Kind kind, std::size_t count, const char* expected) {
  if (tree.kind() != kind) throw_unexpected_node(tree, expected);
  if (tree.children().size() != count) {
    throw ValueError(
        concat("unflatten: the C++ type needs ", expected, " of ", count, ", the structure has ", describe(tree)));
  }
}

void require_same_structure(const char* operation, const TreeDef& expected, const TreeDef& got) {
  if (expected == got) return;
  throw ValueError(concat(operation, ": the trees have different structures: ", tree_difference(expected, got), " (",
                          expected.to_string(), " against ", got.to_string(), ")"));
}

}  // namespace detail
}  // namespace capibara
