// Python's pytrees: nested containers and registered classes, flattened into leaves and rebuilt.
#pragma once

#include <capibara/tree.h>

#include "bindings.h"

#include <memory>
#include <string>
#include <vector>

namespace capibara::python {

struct TreeNode;
using TreePointer = std::shared_ptr<const TreeNode>;

// The structure of a pytree. Copies share their nodes.
class PyTree {
 public:
  PyTree();  // one leaf
  explicit PyTree(TreePointer node) : node_(std::move(node)) {}

  std::size_t num_leaves() const;
  std::size_t num_nodes() const;
  std::string to_string() const;  // PyTreeDef({'a': *})
  nb::object unflatten(std::span<const nb::object> leaves) const;
  std::vector<nb::object> flatten_up_to(nb::handle tree) const;  // one subtree for each leaf of this structure
  PyTree compose(const PyTree& inner) const;
  std::vector<PyTree> children() const;
  const TreePointer& node() const { return node_; }
  Py_hash_t hash() const;
  friend bool operator==(const PyTree& a, const PyTree& b);

  static PyTree tuple(std::vector<PyTree> children);

 private:
  TreePointer node_;
};

PyTree flatten(nb::handle tree, std::vector<nb::object>& leaves, nb::handle is_leaf = nb::handle());
nb::object none_is_leaf();  // an is_leaf that treats None as a leaf
// Leaves with their key paths: tuples of SequenceKey, DictKey ... from capibara.jax.tree_util.
PyTree flatten_with_paths(nb::handle tree, std::vector<std::pair<nb::object, nb::object>>& leaves, nb::handle is_leaf);

Array to_operand(nb::handle leaf, const char* operation);  // to_array, or the handle of a ref
// Every leaf as an array; raises TypeError that names the operation and the leaf.
Arrays to_arrays(const std::vector<nb::object>& leaves, const char* operation);
nb::object unflatten_arrays(const PyTree& tree, std::span<const Array> leaves);
nb::object unflatten_arrays(const PyTree& tree, Arrays&& leaves);

// A pytree structure, or another Python object, as a static part of the core's tree structures.
TreeDef static_part(nb::handle object);
// One static part, then n leaves: the form of Python's structures in the core's caches and messages.
TreeDef leaves_behind(nb::handle static_object, std::size_t leaves);
nb::object static_object(const TreeDef& tree);  // of leaves_behind
TreeDef plain_leaves(std::size_t count);        // a tuple of leaves

}  // namespace capibara::python
