// The nodes of pytrees: which Python types are containers, and how each is flattened and rebuilt.
#pragma once

#include "interpreter_lock.h"
#include "trees.h"

namespace capibara::python {

enum class NodeKind { leaf, none, tuple, list, dict, named_tuple, ordered_dict, default_dict, custom, dataclass };

// A registered class: the functions or fields by which it is flattened.
struct Registration {
  nb::object type;
  nb::object flatten, unflatten, flatten_with_keys;   // of custom nodes
  std::vector<std::string> data_fields, meta_fields;  // of dataclasses
  bool is_dataclass = false;
};

// Programs of the core hold structures too (in custom derivative rules): the last copy may be released without the GIL,
// or after the interpreter is finalized.
struct TreeNode {
  TreeNode() = default;
  TreeNode(const TreeNode&) = delete;
  ~TreeNode() {
    let_go(data);
    let_go(pattern);
  }
  NodeKind kind = NodeKind::leaf;
  std::vector<TreePointer> children;
  // dict: its keys in order; named tuple: its type; defaultdict: (factory, keys); custom: the auxiliary data;
  // dataclass: the values of its meta fields.
  nb::object data;
  const Registration* custom = nullptr;
  std::size_t leaves = 1, nodes = 1;
  // For large dicts, created on first use: a dict with these keys to copy, and the children's indices in the insertion
  // order of the original dict's keys.
  mutable nb::object pattern;
  mutable std::vector<std::size_t> arrival;
};

// One level of a tree: its children and auxiliary data.
struct Level {
  NodeKind kind = NodeKind::leaf;
  const Registration* custom = nullptr;
  std::vector<nb::object> children;
  nb::object data;
};

const TreePointer& leaf_node();
TreePointer make_node(NodeKind kind, std::vector<TreePointer> children, nb::object data = nb::object(),
                      const Registration* custom = nullptr);

PyTypeObject* ordered_dict_type();
PyTypeObject* default_dict_type();
const Registration* find_registration(PyTypeObject* type);  // null if the type is not registered
void add_registration(nb::handle type, Registration registration);

Level open_level(nb::handle tree);
std::vector<nb::object> level_keys(nb::handle tree, const Level& level);  // of its children
nb::object build_node(const TreeNode& node, const std::vector<nb::object>& children);
std::string type_name(const TreeNode& node);
std::vector<nb::object> items_of(nb::handle iterable);
// flatten_with_paths for an is_leaf that also takes the key path: is_leaf(path, tree).
PyTree flatten_asking_with_paths(nb::handle tree, std::vector<std::pair<nb::object, nb::object>>& leaves,
                                 nb::handle is_leaf);

}  // namespace capibara::python
