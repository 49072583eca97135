// Pytrees: the registry of node types, flattening, unflattening, and the class PyTreeDef.
#include "trees.h"

#include <capibara/ref.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace capibara::python {

enum class NodeKind { leaf, none, tuple, list, dict, named_tuple, ordered_dict, default_dict, custom, dataclass };

// How a registered class is taken apart.
struct Registration {
  nb::object type;
  nb::object flatten, unflatten, flatten_with_keys;   // of custom nodes
  std::vector<std::string> data_fields, meta_fields;  // of dataclasses
  bool is_dataclass = false;
};

struct TreeNode {
  NodeKind kind = NodeKind::leaf;
  std::vector<TreePointer> children;
  // dict: its keys in order; named tuple: its type; defaultdict: (factory, keys); custom: the auxiliary data;
  // dataclass: the values of its meta fields.
  nb::object data;
  const Registration* custom = nullptr;
  std::size_t leaves = 1, nodes = 1;
};

namespace {

TreePointer make_node(NodeKind kind, std::vector<TreePointer> children, nb::object data = nb::object(),
                      const Registration* custom = nullptr) {
  auto node = std::make_shared<TreeNode>();
  node->kind = kind;
  node->leaves = kind == NodeKind::leaf ? 1 : 0;
  for (const TreePointer& child : children) {
    node->leaves += child->leaves;
    node->nodes += child->nodes;
  }
  node->children = std::move(children);
  node->data = std::move(data);
  node->custom = custom;
  return node;
}

const TreePointer& leaf_node() {
  static auto* leaf = new TreePointer(make_node(NodeKind::leaf, {}));
  return *leaf;
}

// Registrations are never taken back: nodes point at them.
PyObject* registry() {
  static PyObject* types = PyDict_New();
  return types;
}

const Registration* find_registration(PyTypeObject* type) {
  PyObject* found = PyDict_GetItem(registry(), reinterpret_cast<PyObject*>(type));
  return found ? static_cast<const Registration*>(PyCapsule_GetPointer(found, nullptr)) : nullptr;
}

PyTypeObject* imported_type(const char* module, const char* name) {
  return reinterpret_cast<PyTypeObject*>(nb::object(nb::module_::import_(module).attr(name)).release().ptr());
}
PyTypeObject* ordered_dict_type() {
  static PyTypeObject* type = imported_type("collections", "OrderedDict");
  return type;
}
PyTypeObject* default_dict_type() {
  static PyTypeObject* type = imported_type("collections", "defaultdict");
  return type;
}

void add_registration(nb::handle type, Registration registration) {
  static PyTypeObject* const built_in[] = {&PyTuple_Type,    &PyList_Type,        &PyDict_Type,
                                           Py_TYPE(Py_None), ordered_dict_type(), default_dict_type()};
  bool known = PyDict_GetItem(registry(), type.ptr()) != nullptr;
  for (PyTypeObject* one : built_in) known = known || type.ptr() == reinterpret_cast<PyObject*>(one);
  if (known) {
    throw ValueError(
        concat("Duplicate custom PyTreeDef type registration for ", nb::cast<std::string>(nb::repr(type)), "."));
  }
  registration.type = nb::borrow(type);
  auto* kept = new Registration(std::move(registration));
  nb::object capsule = nb::steal(PyCapsule_New(kept, nullptr, nullptr));
  PyDict_SetItem(registry(), type.ptr(), capsule.ptr());
}

nb::object sorted_keys(nb::handle dict) {
  nb::object keys = nb::steal(PyDict_Keys(dict.ptr()));
  if (PyList_Sort(keys.ptr()) < 0) {
    PyErr_Clear();
    throw ValueError("Comparator raised exception while sorting pytree dictionary keys.");
  }
  return keys;
}

// Guards against trees nested deeper than the interpreter allows.
class RecursionGuard {
 public:
  RecursionGuard() {
    if (Py_EnterRecursiveCall(" while walking a pytree")) throw nb::python_error();
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
};

NodeKind kind_of(PyObject* o, const Registration*& custom) {
  PyTypeObject* type = Py_TYPE(o);
  if (o == Py_None) return NodeKind::none;
  if (type == &PyTuple_Type) return NodeKind::tuple;
  if (type == &PyList_Type) return NodeKind::list;
  if (type == &PyDict_Type) return NodeKind::dict;
  if (type == ordered_dict_type()) return NodeKind::ordered_dict;
  if (type == default_dict_type()) return NodeKind::default_dict;
  custom = find_registration(type);
  if (custom) return custom->is_dataclass ? NodeKind::dataclass : NodeKind::custom;
  if (PyTuple_Check(o) && PyObject_HasAttrString(o, "_fields")) return NodeKind::named_tuple;
  return NodeKind::leaf;
}

// One level of a tree: its children and what stands beside them.
struct Level {
  NodeKind kind = NodeKind::leaf;
  const Registration* custom = nullptr;
  std::vector<nb::object> children;
  nb::object data;
};

std::vector<nb::object> items_of(nb::handle iterable) {
  std::vector<nb::object> items;
  for (nb::handle item : iterable) items.push_back(nb::borrow(item));
  return items;
}

void read_mapping(Level& level, nb::handle mapping, nb::handle keys) {
  for (nb::handle key : keys) level.children.push_back(nb::borrow(mapping[key]));
}

Level open_level(nb::handle tree) {
  Level level;
  level.kind = kind_of(tree.ptr(), level.custom);
  switch (level.kind) {
    case NodeKind::leaf:
    case NodeKind::none:
      break;
    case NodeKind::tuple:
    case NodeKind::list:
      level.children = items_of(tree);
      break;
    case NodeKind::named_tuple:
      level.children = items_of(tree);
      level.data = nb::borrow(tree.type());
      break;
    case NodeKind::dict:
      level.data = sorted_keys(tree);
      read_mapping(level, tree, level.data);
      break;
    case NodeKind::ordered_dict:
      level.data = nb::tuple(nb::steal<nb::list>(PyDict_Keys(tree.ptr())));
      read_mapping(level, tree, level.data);
      break;
    case NodeKind::default_dict: {
      nb::object keys = nb::tuple(nb::borrow<nb::list>(sorted_keys(tree)));
      read_mapping(level, tree, keys);
      level.data = nb::make_tuple(tree.attr("default_factory"), keys);
      break;
    }
    case NodeKind::dataclass: {
      for (const std::string& field : level.custom->data_fields) level.children.push_back(tree.attr(field.c_str()));
      nb::list meta;
      for (const std::string& field : level.custom->meta_fields) meta.append(tree.attr(field.c_str()));
      level.data = nb::tuple(meta);
      break;
    }
    case NodeKind::custom: {
      nb::object both = level.custom->flatten(tree);
      if (!PyTuple_Check(both.ptr()) || PyTuple_GET_SIZE(both.ptr()) != 2) {
        throw ValueError(
            "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple, got " +
            nb::cast<std::string>(nb::repr(both)));
      }
      level.children = items_of(both[0]);
      level.data = nb::borrow(both[1]);
      break;
    }
  }
  return level;
}

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

nb::handle key_class(const char* name) {
  static PyObject* module = nb::module_::import_("capibara._tree_keys").release().ptr();
  return nb::handle(PyObject_GetAttrString(module, name));
}

// The keys of a level's children.
std::vector<nb::object> level_keys(nb::handle tree, const Level& level) {
  std::vector<nb::object> keys;
  auto each = [&](nb::handle names, const char* type) {
    for (nb::handle name : names) keys.push_back(key_class(type)(name));
  };
  switch (level.kind) {
    case NodeKind::dict:
    case NodeKind::ordered_dict:
      each(level.data, "DictKey");
      break;
    case NodeKind::default_dict:
      each(level.data[1], "DictKey");
      break;
    case NodeKind::named_tuple:
      each(tree.attr("_fields"), "GetAttrKey");
      break;
    case NodeKind::dataclass:
      for (const std::string& field : level.custom->data_fields) keys.push_back(key_class("GetAttrKey")(field));
      break;
    case NodeKind::custom:
      if (level.custom->flatten_with_keys.is_valid() && !level.custom->flatten_with_keys.is_none()) {
        nb::object both = level.custom->flatten_with_keys(tree);
        for (nb::handle pair : both[0]) keys.push_back(nb::borrow(pair[0]));
        break;
      }
      for (std::size_t i = 0; i < level.children.size(); ++i) keys.push_back(key_class("FlattenedIndexKey")(i));
      break;
    default:
      for (std::size_t i = 0; i < level.children.size(); ++i) keys.push_back(key_class("SequenceKey")(i));
  }
  return keys;
}

TreePointer flatten_paths(nb::handle tree, std::vector<std::pair<nb::object, nb::object>>& leaves, nb::handle is_leaf,
                          nb::list path) {
  RecursionGuard guard;
  auto add_leaf = [&] {
    leaves.emplace_back(nb::tuple(path), nb::borrow(tree));
    return leaf_node();
  };
  if (is_leaf.is_valid() && !is_leaf.is_none() && nb::cast<bool>(nb::bool_(is_leaf(tree)))) return add_leaf();
  Level level = open_level(tree);
  if (level.kind == NodeKind::leaf) return add_leaf();
  std::vector<nb::object> keys = level_keys(tree, level);
  std::vector<TreePointer> children;
  for (std::size_t i = 0; i < level.children.size(); ++i) {
    path.append(keys[i]);
    children.push_back(flatten_paths(level.children[i], leaves, is_leaf, path));
    path.attr("pop")();
  }
  return make_node(level.kind, std::move(children), std::move(level.data), level.custom);
}

nb::object build_node(const TreeNode& node, const std::vector<nb::object>& children) {
  auto as_tuple = [&] {
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(children.size())));
    for (std::size_t i = 0; i < children.size(); ++i) {
      PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), nb::object(children[i]).release().ptr());
    }
    return tuple;
  };
  auto fill = [&](nb::object mapping, nb::handle keys) {
    std::size_t i = 0;
    for (nb::handle key : keys) mapping[key] = children[i++];
    return mapping;
  };
  switch (node.kind) {
    case NodeKind::leaf:
    case NodeKind::none:
      return nb::none();
    case NodeKind::tuple:
      return as_tuple();
    case NodeKind::list:
      return nb::steal(PySequence_List(as_tuple().ptr()));
    case NodeKind::dict:
      return fill(nb::dict(), node.data);
    case NodeKind::ordered_dict:
      return fill(nb::borrow(reinterpret_cast<PyObject*>(ordered_dict_type()))(), node.data);
    case NodeKind::default_dict:
      return fill(nb::borrow(reinterpret_cast<PyObject*>(default_dict_type()))(node.data[0]), node.data[1]);
    case NodeKind::named_tuple:
      return node.data(*nb::borrow<nb::tuple>(as_tuple()));
    case NodeKind::custom:
      return node.custom->unflatten(node.data, as_tuple());
    case NodeKind::dataclass: {
      nb::kwargs fields = nb::steal<nb::kwargs>(PyDict_New());
      for (std::size_t i = 0; i < children.size(); ++i) fields[node.custom->data_fields[i].c_str()] = children[i];
      for (std::size_t i = 0; i < node.custom->meta_fields.size(); ++i) {
        fields[node.custom->meta_fields[i].c_str()] = node.data[i];
      }
      return node.custom->type(**fields);
    }
  }
  return nb::none();
}

nb::object unflatten_node(const TreeNode& node, std::span<const nb::object> leaves, std::size_t& position) {
  if (node.kind == NodeKind::leaf) return leaves[position++];
  std::vector<nb::object> children;
  for (const TreePointer& child : node.children) children.push_back(unflatten_node(*child, leaves, position));
  return build_node(node, children);
}

std::string type_name(const TreeNode& node) {
  switch (node.kind) {
    case NodeKind::none:
      return "None";
    case NodeKind::tuple:
      return "tuple";
    case NodeKind::list:
      return "list";
    case NodeKind::dict:
      return "dict";
    case NodeKind::ordered_dict:
      return "OrderedDict";
    case NodeKind::default_dict:
      return "defaultdict";
    case NodeKind::named_tuple:
      return nb::cast<std::string>(node.data.attr("__name__"));
    default:
      return node.custom ? nb::cast<std::string>(node.custom->type.attr("__name__")) : "leaf";
  }
}

bool same_data(const nb::object& a, const nb::object& b) {
  if (a.is_valid() != b.is_valid()) return false;
  if (!a.is_valid() || a.is(b)) return true;
  int equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
  if (equal < 0) throw nb::python_error();
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
  if (node.kind != level.kind || node.custom != level.custom) {
    throw ValueError(concat("Expected ", type_name(node), ", got ", nb::cast<std::string>(nb::repr(tree)), "."));
  }
  if (!same_level(node, level)) {
    if (node.children.size() != level.children.size()) {
      throw ValueError(concat(type_name(node), " arity mismatch: ", level.children.size(), " != ", node.children.size(),
                              "; ", type_name(node), ": ", nb::cast<std::string>(nb::repr(tree)), "."));
    }
    throw ValueError(concat("Mismatch custom node data: ", nb::cast<std::string>(nb::repr(node.data)),
                            " != ", nb::cast<std::string>(nb::repr(level.data)),
                            "; value: ", nb::cast<std::string>(nb::repr(tree)), "."));
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

// Auxiliary data need not be hashable: the shape of the tree is enough to tell most structures apart.
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
      custom(nb::cast<std::string>(nb::repr(node.data)));
  }
}

nb::object node_data(const PyTree& tree) {
  const TreeNode& node = *tree.node();
  nb::object data = node.data.is_valid() ? node.data : nb::none();
  auto type = [](PyTypeObject& t) { return nb::borrow(reinterpret_cast<PyObject*>(&t)); };
  switch (node.kind) {
    case NodeKind::leaf:
      return nb::none();
    case NodeKind::none:
      return nb::make_tuple(nb::borrow(nb::none().type()), nb::none());
    case NodeKind::tuple:
      return nb::make_tuple(type(PyTuple_Type), nb::none());
    case NodeKind::list:
      return nb::make_tuple(type(PyList_Type), nb::none());
    case NodeKind::dict:
      return nb::make_tuple(type(PyDict_Type), data);
    case NodeKind::ordered_dict:
      return nb::make_tuple(type(*ordered_dict_type()), data);
    case NodeKind::default_dict:
      return nb::make_tuple(type(*default_dict_type()), data);
    case NodeKind::named_tuple:
      return nb::make_tuple(data, nb::none());
    default:
      return nb::make_tuple(node.custom->type, data);
  }
}

nb::list object_list(const std::vector<nb::object>& objects) {
  nb::list list;
  for (const nb::object& object : objects) list.append(object);
  return list;
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
    nb::gil_scoped_acquire lock;
    int equal = PyObject_RichCompareBool(object_.get().ptr(), same->object_.get().ptr(), Py_EQ);
    if (equal < 0) throw nb::python_error();
    return equal == 1;
  }
  std::size_t hash() const override { return hash_; }
  std::string print() const override {
    nb::gil_scoped_acquire lock;
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
  return PyTree(flatten_paths(tree, leaves, is_leaf, nb::list()));
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

nb::object unflatten_arrays(const PyTree& tree, std::span<const Array> leaves) {
  std::vector<nb::object> objects;
  objects.reserve(leaves.size());
  for (const Array& leaf : leaves) objects.push_back(wrap(leaf));
  return tree.unflatten(objects);
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

void bind_trees(nb::module_& m) {
  nb::class_<PyTree>(m, "PyTreeDef")
      .def_prop_ro("num_leaves", &PyTree::num_leaves)
      .def_prop_ro("num_nodes", &PyTree::num_nodes)
      .def("__repr__", &PyTree::to_string)
      .def("__str__", &PyTree::to_string)
      .def("__hash__", &PyTree::hash)
      .def(
          "__eq__",
          [](const PyTree& self, nb::handle other) -> nb::object {
            if (!nb::isinstance<PyTree>(other)) return nb::borrow(nb::handle(Py_NotImplemented));
            return nb::bool_(self == nb::cast<const PyTree&>(other));
          },
          nb::arg().none())
      .def("unflatten", [](const PyTree& self, nb::handle leaves) { return self.unflatten(items_of(leaves)); })
      .def(
          "flatten_up_to", [](const PyTree& self, nb::handle tree) { return object_list(self.flatten_up_to(tree)); },
          nb::arg().none())
      .def("compose", &PyTree::compose)
      .def("children",
           [](const PyTree& self) {
             nb::list list;
             for (const PyTree& child : self.children()) list.append(nb::cast(child));
             return list;
           })
      .def("node_data", &node_data)
      .def("__reduce__",
           [](const PyTree& self) {
             std::vector<nb::object> numbers;
             for (std::size_t i = 0; i < self.num_leaves(); ++i) numbers.push_back(nb::int_(i));
             return nb::make_tuple(nb::module_::import_("capibara.jax.tree_util").attr("tree_structure"),
                                   nb::make_tuple(self.unflatten(numbers)));
           })
      .def_static("from_node_data_and_children", [](nb::handle, nb::handle data, std::vector<PyTree> children) {
        std::vector<TreePointer> nodes;
        for (const PyTree& child : children) nodes.push_back(child.node());
        if (data.is_none()) return PyTree();
        nb::handle type = data[0];
        auto is = [&](PyTypeObject& t) { return type.ptr() == reinterpret_cast<PyObject*>(&t); };
        nb::object own = nb::borrow(data[1]);
        if (is(*Py_TYPE(Py_None))) return PyTree(make_node(NodeKind::none, {}));
        if (is(PyTuple_Type)) return PyTree(make_node(NodeKind::tuple, nodes));
        if (is(PyList_Type)) return PyTree(make_node(NodeKind::list, nodes));
        if (is(PyDict_Type)) return PyTree(make_node(NodeKind::dict, nodes, own));
        if (is(*ordered_dict_type())) return PyTree(make_node(NodeKind::ordered_dict, nodes, own));
        if (is(*default_dict_type())) return PyTree(make_node(NodeKind::default_dict, nodes, own));
        const Registration* custom = find_registration(reinterpret_cast<PyTypeObject*>(type.ptr()));
        if (custom)
          return PyTree(make_node(custom->is_dataclass ? NodeKind::dataclass : NodeKind::custom, nodes, own, custom));
        return PyTree(make_node(NodeKind::named_tuple, nodes, nb::borrow(type)));
      });
  m.def(
      "tree_flatten",
      [](nb::handle tree, nb::handle is_leaf) {
        std::vector<nb::object> leaves;
        PyTree structure = flatten(tree, leaves, is_leaf);
        return nb::make_tuple(object_list(leaves), nb::cast(structure));
      },
      nb::arg("tree").none(), nb::arg("is_leaf") = nb::none());
  m.def(
      "tree_structure",
      [](nb::handle tree, nb::handle is_leaf) {
        std::vector<nb::object> leaves;
        return flatten(tree, leaves, is_leaf);
      },
      nb::arg("tree").none(), nb::arg("is_leaf") = nb::none());
  m.def(
      "tree_leaves",
      [](nb::handle tree, nb::handle is_leaf) {
        std::vector<nb::object> leaves;
        flatten(tree, leaves, is_leaf);
        return object_list(leaves);
      },
      nb::arg("tree").none(), nb::arg("is_leaf") = nb::none());
  m.def(
      "tree_flatten_with_path",
      [](nb::handle tree, nb::handle is_leaf) {
        std::vector<std::pair<nb::object, nb::object>> leaves;
        PyTree structure = flatten_with_paths(tree, leaves, is_leaf);
        nb::list list;
        for (const auto& [path, leaf] : leaves) list.append(nb::make_tuple(path, leaf));
        return nb::make_tuple(list, nb::cast(structure));
      },
      nb::arg("tree").none(), nb::arg("is_leaf") = nb::none());
  // One level: (children, keys, what stands beside them), or None for a leaf.
  m.def(
      "tree_level",
      [](nb::handle tree) -> nb::object {
        Level level = open_level(tree);
        if (level.kind == NodeKind::leaf) return nb::none();
        return nb::make_tuple(object_list(level.children), object_list(level_keys(tree, level)),
                              level.data.is_valid() ? level.data : nb::none());
      },
      nb::arg("tree").none());
  m.def("is_node_type", [](nb::handle type) {
    if (!PyType_Check(type.ptr())) return false;
    auto* own = reinterpret_cast<PyTypeObject*>(type.ptr());
    for (PyTypeObject* one :
         {&PyTuple_Type, &PyList_Type, &PyDict_Type, Py_TYPE(Py_None), ordered_dict_type(), default_dict_type()}) {
      if (own == one) return true;
    }
    if (find_registration(own)) return true;
    return PyType_IsSubtype(own, &PyTuple_Type) && PyObject_HasAttrString(type.ptr(), "_fields");
  });
  m.def("tuple_tree", [](std::vector<PyTree> children) { return PyTree::tuple(std::move(children)); });
  m.def(
      "register_node",
      [](nb::handle type, nb::object flatten, nb::object unflatten, nb::object with_keys) {
        Registration registration;
        registration.flatten = flatten;
        registration.unflatten = unflatten;
        registration.flatten_with_keys = with_keys;
        add_registration(type, std::move(registration));
      },
      nb::arg("type"), nb::arg("flatten"), nb::arg("unflatten"), nb::arg("with_keys") = nb::none());
  m.def("register_dataclass_node", [](nb::handle type, std::vector<std::string> data, std::vector<std::string> meta) {
    Registration registration;
    registration.is_dataclass = true;
    registration.data_fields = std::move(data);
    registration.meta_fields = std::move(meta);
    add_registration(type, std::move(registration));
  });
}

}  // namespace capibara::python
