// The registry of node types; flattens and rebuilds one level of a pytree.
#include "tree_nodes.h"

#include <nanobind/stl/string.h>

namespace capibara::python {

namespace {

// Registrations are never removed: nodes point to them.
PyObject* registry() {
  static PyObject* types = PyDict_New();
  return types;
}

PyTypeObject* imported_type(const char* module, const char* name) {
  return reinterpret_cast<PyTypeObject*>(nb::object(nb::module_::import_(module).attr(name)).release().ptr());
}

nb::object sorted_keys(nb::handle dict) {
  nb::object keys = nb::steal(PyDict_Keys(dict.ptr()));
  if (PyList_Sort(keys.ptr()) < 0) {
    PyErr_Clear();
    throw ValueError("Comparator raised exception while sorting pytree dictionary keys.");
  }
  return keys;
}

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

void read_mapping(Level& level, nb::handle mapping, nb::handle keys) {
  for (nb::handle key : keys) level.children.push_back(nb::borrow(mapping[key]));
}

nb::object key_class(const char* name) {
  static PyObject* module = nb::module_::import_("capibara._tree_keys").release().ptr();
  return nb::handle(module).attr(name);
}

}  // namespace

TreePointer make_node(NodeKind kind, std::vector<TreePointer> children, nb::object data, const Registration* custom) {
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

const Registration* find_registration(PyTypeObject* type) {
  PyObject* found = PyDict_GetItem(registry(), reinterpret_cast<PyObject*>(type));
  return found ? static_cast<const Registration*>(PyCapsule_GetPointer(found, nullptr)) : nullptr;
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

std::vector<nb::object> items_of(nb::handle iterable) {
  std::vector<nb::object> items;
  for (nb::handle item : iterable) items.push_back(nb::borrow(item));
  return items;
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
      if (!nb::hasattr(both[0], "__iter__")) {
        throw ValueError(
            "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple where "
            "'children' is "
            "iterable, got " +
            nb::cast<std::string>(nb::repr(both)));
      }
      level.children = items_of(both[0]);
      level.data = nb::borrow(both[1]);
      break;
    }
  }
  return level;
}

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
    case NodeKind::list: {
      nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(children.size())));
      for (std::size_t i = 0; i < children.size(); ++i) {
        PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), nb::object(children[i]).release().ptr());
      }
      return list;
    }
    case NodeKind::dict: {
      nb::dict dict;
      for (std::size_t i = 0; i < children.size(); ++i) {
        if (PyDict_SetItem(dict.ptr(), PyList_GET_ITEM(node.data.ptr(), static_cast<Py_ssize_t>(i)),
                           children[i].ptr()) < 0)
          throw nb::python_error();
      }
      return dict;
    }
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

}  // namespace capibara::python
