// The class PyTreeDef and the pytree functions behind capibara.jax.tree_util.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "tree_nodes.h"

namespace capibara::python {

namespace {

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

// Visits leaves and nodes in postorder; visit_node takes the results of its children's visits, and the node's data.
nb::object walk(const PyTree& tree, nb::handle visit_node, nb::handle visit_leaf, const std::vector<nb::object>& leaves,
                std::size_t& position) {
  if (tree.node()->kind == NodeKind::leaf) return visit_leaf(leaves[position++]);
  nb::list children;
  for (const PyTree& child : tree.children()) children.append(walk(child, visit_node, visit_leaf, leaves, position));
  const nb::object data = node_data(tree);
  return visit_node(nb::tuple(children), data[1]);
}

nb::list object_list(const std::vector<nb::object>& objects) {
  nb::list list;
  for (const nb::object& object : objects) list.append(object);
  return list;
}

// Checks the arrays that are ready and collects the other leaves: while waiting, other threads may change containers.
void wait_for_ready(PyObject* tree, std::vector<nb::object>& others) {
  static PyTypeObject* const concrete = reinterpret_cast<PyTypeObject*>(nb::type<ConcreteArray>().ptr());
  PyTypeObject* const type = Py_TYPE(tree);
  if (type == concrete) {
    const Array& array = *nb::inst_ptr<ConcreteArray>(tree);
    if (array.is_ready())
      array.block_until_ready();  // raises if its program has failed
    else
      others.push_back(nb::borrow(tree));
  } else if (type == &PyTuple_Type) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tree); ++i) wait_for_ready(PyTuple_GET_ITEM(tree, i), others);
  } else if (type == &PyList_Type) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tree); ++i) wait_for_ready(PyList_GET_ITEM(tree, i), others);
  } else if (type == &PyDict_Type) {
    PyObject *key, *value;
    for (Py_ssize_t position = 0; PyDict_Next(tree, &position, &key, &value);) wait_for_ready(value, others);
  } else {
    flatten(tree, others);
  }
}

nb::object block_until_ready(nb::handle tree) {
  std::vector<nb::object> others;
  wait_for_ready(tree.ptr(), others);
  for (const nb::object& leaf : others) {
    if (nb::hasattr(leaf, "block_until_ready")) leaf.attr("block_until_ready")();
  }
  return nb::borrow(tree);
}

}  // namespace

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
      .def(
          "walk",
          [](const PyTree& self, nb::handle visit_node, nb::handle visit_leaf, nb::handle leaves) {
            const std::vector<nb::object> items = items_of(leaves);
            if (items.size() != self.num_leaves())
              throw ValueError(concat("PyTreeDef.walk: expected ", self.num_leaves(), " leaves, got ", items.size()));
            std::size_t position = 0;
            return walk(self, visit_node, visit_leaf, items, position);
          },
          nb::arg("f_node"), nb::arg("f_leaf"), nb::arg("leaves"))
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
  m.def("block_until_ready", block_until_ready, nb::arg("x").none());
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
      [](nb::handle tree, nb::handle is_leaf, bool is_leaf_takes_path) {
        std::vector<std::pair<nb::object, nb::object>> leaves;
        PyTree structure = is_leaf_takes_path ? flatten_asking_with_paths(tree, leaves, is_leaf)
                                              : flatten_with_paths(tree, leaves, is_leaf);
        nb::list list;
        for (const auto& [path, leaf] : leaves) list.append(nb::make_tuple(path, leaf));
        return nb::make_tuple(list, nb::cast(structure));
      },
      nb::arg("tree").none(), nb::arg("is_leaf") = nb::none(), nb::arg("is_leaf_takes_path") = false);
  // One level: (children, keys, auxiliary data), or None for a leaf.
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
