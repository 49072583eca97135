// Flattens pytrees into leaves and rebuilds them; compares, hashes and prints their structures.
#include "tree_nodes.h"

#include <capibara/ref.h>

#include <nanobind/stl/string.h>

namespace capibara::python {

namespace {

// Guards against trees nested deeper than the interpreter allows.
class RecursionGuard {
 public:
  RecursionGuard() {
    if (Py_EnterRecursiveCall(" while walking a pytree")) throw nb::python_error();
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
};

TreePointer flatten_node(nb::handle tree, std::vector<nb::object>& leaves, nb::handle is_leaf) {
  RecursionGuard guard;
  if (is_leaf.is_valid() && !is_leaf.is_none() && nb::cast<bool>(nb::bool_(is_leaf(tree)))) {
    leaves.push_back(nb::borrow(tree));
    return leaf_node();
  }
  Level level = open_level(tree);
  if (level.kind == NodeKind::leaf) {
    leaves.push_back(nb::borrow(tree));
    return leaf_node();
  }
  std::vector<TreePointer> children;
  for (const nb::object& child : level.children) children.push_back(flatten_node(child, leaves, is_leaf));
  return make_node(level.kind, std::move(children), std::move(level.data), level.custom);
}

TreePointer flatten_paths(nb::handle tree, std::vector<std::pair<nb::object, nb::object>>& leaves, nb::handle is_leaf,
                          bool takes_path, nb::list path) {
  RecursionGuard guard;
  auto add_leaf = [&] {
    leaves.emplace_back(nb::tuple(path), nb::borrow(tree));
    return leaf_node();
  };
  if (is_leaf.is_valid() && !is_leaf.is_none()) {
    const nb::object answer = takes_path ? is_leaf(nb::tuple(path), tree) : is_leaf(tree);
    if (nb::cast<bool>(nb::bool_(answer))) return add_leaf();
  }
  Level level = open_level(tree);
  if (level.kind == NodeKind::leaf) return add_leaf();
  std::vector<nb::object> keys = level_keys(tree, level);
  std::vector<TreePointer> children;
  for (std::size_t i = 0; i < level.children.size(); ++i) {
    path.append(keys[i]);
    children.push_back(flatten_paths(level.children[i], leaves, is_leaf, takes_path, path));
    path.attr("pop")();
  }
  return make_node(level.kind, std::move(children), std::move(level.data), level.custom);
}

nb::object unflatten_node(const TreeNode& node, std::span<const nb::object> leaves, std::size_t& position) {
  if (node.kind == NodeKind::leaf) return leaves[position++];
  std::vector<nb::object> children;
  children.reserve(node.children.size());
  for (const TreePointer& child : node.children) children.push_back(unflatten_node(*child, leaves, position));
  return build_node(node, children);
}

// A dict to fill in. Large ones are copied from a dict with the same keys, so that they do not grow while filled.
nb::object new_dict(const TreeNode& node) {
  constexpr std::size_t large = 8;
  if (node.children.size() < large) return nb::dict();
  if (!node.pattern.is_valid()) {
    nb::dict pattern;
    for (nb::handle key : nb::borrow<nb::list>(node.data)) {
      if (PyDict_SetItem(pattern.ptr(), key.ptr(), Py_None) < 0) throw nb::python_error();
    }
    node.pattern = pattern;
  }
  nb::object dict = nb::steal(PyDict_Copy(node.pattern.ptr()));
  if (!dict.is_valid()) throw nb::python_error();
  return dict;
}

// The same with arrays as leaves; fills built-in containers directly, without intermediate lists.
template <class Leaf>  // Array (non-const) if the caller owns the leaves: they are moved
nb::object unflatten_node(const TreeNode& node, std::span<Leaf> leaves, std::size_t& position) {
  const auto count = static_cast<Py_ssize_t>(node.children.size());
  switch (node.kind) {
    case NodeKind::leaf:
      if constexpr (std::is_const_v<Leaf>)
        return wrap(leaves[position++]);
      else
        return wrap(std::move(leaves[position++]));
    case NodeKind::tuple: {
      nb::object tuple = nb::steal(PyTuple_New(count));
      for (Py_ssize_t i = 0; i < count; ++i) {
        PyTuple_SET_ITEM(tuple.ptr(), i,
                         unflatten_node(*node.children[static_cast<std::size_t>(i)], leaves, position).release().ptr());
      }
      return tuple;
    }
    case NodeKind::list: {
      nb::object list = nb::steal(PyList_New(count));
      for (Py_ssize_t i = 0; i < count; ++i) {
        PyList_SET_ITEM(list.ptr(), i,
                        unflatten_node(*node.children[static_cast<std::size_t>(i)], leaves, position).release().ptr());
      }
      return list;
    }
    case NodeKind::dict: {
      nb::object dict = new_dict(node);
      for (Py_ssize_t i = 0; i < count; ++i) {
        const nb::object value = unflatten_node(*node.children[static_cast<std::size_t>(i)], leaves, position);
        if (PyDict_SetItem(dict.ptr(), PyList_GET_ITEM(node.data.ptr(), i), value.ptr()) < 0) throw nb::python_error();
      }
      return dict;
    }
    default: {
      std::vector<nb::object> children;
      children.reserve(node.children.size());
      for (const TreePointer& child : node.children) children.push_back(unflatten_node(*child, leaves, position));
      return build_node(node, children);
    }
  }
}

bool same_data(const nb::object& a, const nb::object& b) {
  if (a.is_valid() != b.is_valid()) return false;
  if (!a.is_valid() || a.is(b)) return true;
  int equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (equal < 0) {
    nb::python_error cause;
    nb::raise_from(
        cause, PyExc_ValueError,
        "Exception raised while checking equality of metadata fields of pytree. Make sure that metadata fields "
        "are hashable and have simple equality semantics. (Note: arrays cannot be passed as metadata fields!)");
  }
  return equal == 1;
}

bool same_level(const TreeNode& node, const Level& level) {
  return node.kind == level.kind && node.custom == level.custom && node.children.size() == level.children.size() &&
         same_data(node.data, level.data);
}

void flatten_up_to_node(const TreeNode& node, nb::handle tree, std::vector<nb::object>& out) {
  if (node.kind == NodeKind::leaf) {
    out.push_back(nb::borrow(tree));
    return;
  }
  Level level = open_level(tree);
  const auto text = [](nb::handle object) { return nb::cast<std::string>(nb::repr(object)); };
  if (node.kind != level.kind || node.custom != level.custom) {
    if (node.custom || node.kind == NodeKind::ordered_dict || node.kind == NodeKind::default_dict) {
      PyTypeObject* const mapping = node.kind == NodeKind::ordered_dict ? ordered_dict_type() : default_dict_type();
      const nb::handle type = node.custom ? node.custom->type.ptr() : reinterpret_cast<PyObject*>(mapping);
      throw ValueError(concat("Custom node type mismatch: expected type: ", text(type), ", value: ", text(tree), "."));
    }
    if (node.kind == NodeKind::named_tuple && PyTuple_Check(tree.ptr()) && nb::hasattr(tree, "_fields"))
      throw ValueError(
          concat("Named tuple type mismatch: expected type: ", text(node.data), ", tuple: ", text(tree), "."));
    const std::string expected = node.kind == NodeKind::named_tuple ? "named tuple" : type_name(node);
    throw ValueError(concat("Expected ", expected, ", got ", text(tree), "."));
  }
  if (!same_level(node, level)) {
    if (node.kind == NodeKind::dict)
      throw ValueError(
          concat("Dict key mismatch; expected keys: ", text(node.data), "; present keys: ", text(level.data), "."));
    if (node.kind == NodeKind::named_tuple && !node.data.is(level.data))
      throw ValueError(
          concat("Named tuple type mismatch: expected type: ", text(node.data), ", tuple: ", text(tree), "."));
    if (node.children.size() != level.children.size() && node.kind != NodeKind::ordered_dict &&
        node.kind != NodeKind::default_dict) {
      const bool list = node.kind == NodeKind::list, tuple = node.kind == NodeKind::tuple;
      throw ValueError(concat(list    ? "List"
                              : tuple ? "Tuple"
                                      : type_name(node),
                              " arity mismatch: ", level.children.size(), " != ", node.children.size(), "; ",
                              type_name(node), ": ", text(tree), "."));
    }
    throw ValueError(
        concat("Mismatch custom node data: ", text(node.data), " != ", text(level.data), "; value: ", text(tree), "."));
  }
  for (std::size_t i = 0; i < node.children.size(); ++i) flatten_up_to_node(*node.children[i], level.children[i], out);
}

bool equal_nodes(const TreeNode& a, const TreeNode& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.custom != b.custom || a.children.size() != b.children.size() || a.leaves != b.leaves ||
      !same_data(a.data, b.data)) {
    return false;
  }
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (!equal_nodes(*a.children[i], *b.children[i])) return false;
  }
  return true;
}

// Auxiliary data need not be hashable: the shape of the tree distinguishes most structures.
std::size_t hash_node(const TreeNode& node) {
  std::size_t hash = static_cast<std::size_t>(node.kind) * 1000003u + node.children.size();
  if (node.data.is_valid() && node.kind != NodeKind::custom && node.kind != NodeKind::dataclass) {
    nb::object data = node.data;
    if (PyList_Check(data.ptr())) data = nb::steal(PyList_AsTuple(data.ptr()));
    Py_hash_t own = PyObject_Hash(data.ptr());
    if (own == -1)
      PyErr_Clear();
    else
      hash ^= static_cast<std::size_t>(own) + 0x9e3779b9 + (hash << 6);
  }
  for (const TreePointer& child : node.children) hash = hash * 31 + hash_node(*child);
  return hash;
}

void print_node(const TreeNode& node, std::string& out) {
  auto children = [&](const char* open, const char* close) {
    out += open;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      if (i > 0) out += ", ";
      print_node(*node.children[i], out);
    }
    out += close;
  };
  auto custom = [&](const std::string& data) {
    out += concat("CustomNode(", node.kind == NodeKind::named_tuple ? "namedtuple" : type_name(node), "[", data, "], ");
    children("[", "])");
  };
  switch (node.kind) {
    case NodeKind::leaf:
      out += "*";
      break;
    case NodeKind::none:
      out += "None";
      break;
    case NodeKind::tuple:
      children("(", node.children.size() == 1 ? ",)" : ")");
      break;
    case NodeKind::list:
      children("[", "]");
      break;
    case NodeKind::dict: {
      out += "{";
      std::size_t i = 0;
      for (nb::handle key : node.data) {
        out += concat(i > 0 ? ", " : "", nb::cast<std::string>(nb::repr(key)), ": ");
        print_node(*node.children[i++], out);
      }
      out += "}";
      break;
    }
    case NodeKind::named_tuple:
      custom(nb::cast<std::string>(node.data.attr("__name__")));
      break;
    default:
      custom(nb::cast<std::string>(nb::str(node.data)));
  }
}

// Python's ==, item by item in tuples, so that errors can name the types of the two objects that raised.
bool equal_objects(nb::handle a, nb::handle b) {
  if (a.is(b)) return true;
  if (PyTuple_CheckExact(a.ptr()) && PyTuple_CheckExact(b.ptr())) {
    const Py_ssize_t size = PyTuple_GET_SIZE(a.ptr());
    if (size != PyTuple_GET_SIZE(b.ptr())) return false;
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (!equal_objects(PyTuple_GET_ITEM(a.ptr(), i), PyTuple_GET_ITEM(b.ptr(), i))) return false;
    }
    return true;
  }
  const int equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (equal >= 0) return equal == 1;
  const nb::python_error error;
  throw ValueError(
      concat("static arguments should be comparable using __eq__.The following error was raised when comparing two "
             "objects of types ",
             nb::cast<std::string>(nb::str(a.type())), " and ", nb::cast<std::string>(nb::str(b.type())),
             ". The error was:\n", error.what()));
}

// A Python object inside the core's tree structures, compared and hashed by Python.
class StaticObject final : public StaticLeaf {
 public:
  explicit StaticObject(nb::handle object) : object_(object) {
    Py_hash_t hash = PyObject_Hash(object.ptr());
    if (hash == -1) throw nb::python_error();
    hash_ = static_cast<std::size_t>(hash);
  }
  bool equals(const StaticLeaf& other) const override {
    const auto* same = dynamic_cast<const StaticObject*>(&other);
    if (!same) return false;
    if (object_.get().is(same->object_.get())) return true;
    if (hash_ != same->hash_) return false;
    const InterpreterLock lock;
    return equal_objects(object_.get(), same->object_.get());
  }
  std::size_t hash() const override { return hash_; }
  std::string print() const override {
    const InterpreterLock lock;
    return nb::cast<std::string>(nb::repr(object_.get()));
  }
  nb::handle get() const { return object_.get(); }

 private:
  KeptObject object_;
  std::size_t hash_ = 0;
};

}  // namespace

PyTree::PyTree() : node_(leaf_node()) {}
std::size_t PyTree::num_leaves() const { return node_->leaves; }
std::size_t PyTree::num_nodes() const { return node_->nodes; }
Py_hash_t PyTree::hash() const {
  auto hash = static_cast<Py_hash_t>(hash_node(*node_));
  return hash == -1 ? -2 : hash;
}
bool operator==(const PyTree& a, const PyTree& b) { return equal_nodes(*a.node_, *b.node_); }

std::string PyTree::to_string() const {
  std::string text = "PyTreeDef(";
  print_node(*node_, text);
  return text + ")";
}

nb::object PyTree::unflatten(std::span<const nb::object> leaves) const {
  if (leaves.size() < num_leaves()) {
    throw ValueError(concat("Too few leaves for PyTreeDef; expected ", num_leaves(), ", got ", leaves.size()));
  }
  if (leaves.size() > num_leaves())
    throw ValueError(concat("Too many leaves for PyTreeDef; expected ", num_leaves(), "."));
  std::size_t position = 0;
  return unflatten_node(*node_, leaves, position);
}

std::vector<nb::object> PyTree::flatten_up_to(nb::handle tree) const {
  std::vector<nb::object> out;
  flatten_up_to_node(*node_, tree, out);
  return out;
}

PyTree PyTree::compose(const PyTree& inner) const {
  if (node_->kind == NodeKind::leaf) return inner;
  std::vector<TreePointer> children;
  for (const TreePointer& child : node_->children) children.push_back(PyTree(child).compose(inner).node());
  return PyTree(make_node(node_->kind, std::move(children), node_->data, node_->custom));
}

std::vector<PyTree> PyTree::children() const {
  std::vector<PyTree> all;
  for (const TreePointer& child : node_->children) all.emplace_back(child);
  return all;
}

PyTree PyTree::tuple(std::vector<PyTree> children) {
  std::vector<TreePointer> nodes;
  for (const PyTree& child : children) nodes.push_back(child.node());
  return PyTree(make_node(NodeKind::tuple, std::move(nodes)));
}

PyTree flatten(nb::handle tree, std::vector<nb::object>& leaves, nb::handle is_leaf) {
  return PyTree(flatten_node(tree, leaves, is_leaf));
}

nb::object none_is_leaf() {
  return nb::cpp_function([](nb::handle x) { return x.is_none(); }, nb::arg().none());
}

PyTree flatten_with_paths(nb::handle tree, std::vector<std::pair<nb::object, nb::object>>& leaves, nb::handle is_leaf) {
  return PyTree(flatten_paths(tree, leaves, is_leaf, false, nb::list()));
}

PyTree flatten_asking_with_paths(nb::handle tree, std::vector<std::pair<nb::object, nb::object>>& leaves,
                                 nb::handle is_leaf) {
  return PyTree(flatten_paths(tree, leaves, is_leaf, true, nb::list()));
}

Array to_operand(nb::handle leaf, const char* operation) {
  return nb::isinstance<jax::Ref>(leaf) ? nb::cast<const jax::Ref&>(leaf).handle() : to_array(leaf, operation);
}

Arrays to_arrays(const std::vector<nb::object>& leaves, const char* operation) {
  Arrays arrays;
  arrays.reserve(leaves.size());
  for (const nb::object& leaf : leaves) arrays.push_back(to_operand(leaf, operation));
  return arrays;
}

namespace {

template <class Leaf>
nb::object unflatten_all(const PyTree& tree, std::span<Leaf> leaves) {
  if (leaves.size() != tree.num_leaves()) {
    throw InternalError(concat("a structure of ", tree.num_leaves(), " leaves was given ", leaves.size()));
  }
  std::size_t position = 0;
  return unflatten_node(*tree.node(), leaves, position);
}

}  // namespace

nb::object unflatten_arrays(const PyTree& tree, std::span<const Array> leaves) { return unflatten_all(tree, leaves); }
nb::object unflatten_arrays(const PyTree& tree, Arrays&& leaves) {
  return unflatten_all(tree, std::span<Array>(leaves));
}

TreeDef static_part(nb::handle object) { return TreeDef::value(std::make_shared<StaticObject>(object)); }

TreeDef plain_leaves(std::size_t count) { return TreeDef::tuple(std::vector<TreeDef>(count)); }

TreeDef leaves_behind(nb::handle static_object, std::size_t leaves) {
  std::vector<TreeDef> children = {static_part(static_object)};
  children.resize(leaves + 1);
  return TreeDef::tuple(std::move(children));
}

nb::object static_object(const TreeDef& tree) {
  const auto* kept = dynamic_cast<const StaticObject*>(tree.children().at(0).static_value());
  if (!kept) throw InternalError("a structure made by Python has lost its static part");
  return nb::borrow(kept->get());
}

}  // namespace capibara::python
