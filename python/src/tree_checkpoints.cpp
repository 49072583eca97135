// Checkpoints of pytrees: the class behind capibara.core.tpu.TPUCheckpointer.
#include <capibara/checkpoint.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "tree_checkpoints.h"
#include "tree_nodes.h"

namespace capibara::python {

namespace {

template <class T>
Array exact_scalar(DType dtype, T value) {
  ArrayType type;
  type.dtype = dtype;
  type.weak_type = dtype != DType::bool_;
  Buffer buffer = Buffer::allocate(sizeof value);
  std::memcpy(buffer.mutable_data(), &value, sizeof value);
  return Array::from_buffer(type, std::move(buffer));
}

// A leaf as an array, saved without narrowing to 32 bits. Leaves of `like` may be descriptions: shape and dtype.
Array exact_array(nb::handle leaf, const std::string& name, bool description) {
  PyObject* o = leaf.ptr();
  if (nb::isinstance<Array>(leaf)) return nb::cast<Array>(leaf);
  if (PyBool_Check(o)) return exact_scalar(DType::bool_, o == Py_True);
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow != 0) throw OverflowError(concat("checkpoint: ", name, " is an integer that int64 cannot hold"));
    return exact_scalar(DType::int64, static_cast<int64_t>(value));
  }
  if (PyFloat_CheckExact(o)) return exact_scalar(DType::float64, PyFloat_AsDouble(o));
  if (nb::hasattr(leaf, "shape") && nb::hasattr(leaf, "dtype")) {
    ArrayType type;
    for (nb::handle size : leaf.attr("shape")) type.shape.push_back(nb::cast<int64_t>(size));
    type.dtype = to_dtype(leaf.attr("dtype"));
    if (description) return Array::from_buffer(type, Buffer());
    if (nb::hasattr(leaf, "__array_interface__")) {
      nb::object numpy = nb::module_::import_("numpy");
      // A copy in native byte order: NumPy arrays may change before they are written.
      nb::object copy = numpy.attr("array")(leaf, nb::arg("dtype") = numpy_dtype(type.dtype), nb::arg("order") = "C",
                                            nb::arg("copy") = true);
      Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type.size() * storage_size(type.dtype)));
      const auto address = nb::cast<std::uintptr_t>(copy.attr("__array_interface__")["data"][0]);
      if (buffer.size() > 0) std::memcpy(buffer.mutable_data(), reinterpret_cast<const void*>(address), buffer.size());
      return Array::from_buffer(type, std::move(buffer));
    }
  }
  if (std::optional<Array> array = array_if(leaf)) return *array;
  throw TypeError(concat("checkpoint: ", name, " is a ", nb::cast<std::string>(nb::str(leaf.type().attr("__name__"))),
                         ", expected an array or a number; texts and the like go into metadata"));
}

TreeKey core_key(nb::handle key, const std::string& where) {
  for (const auto& [attribute, kind] :
       {std::pair("idx", TreeKey::index), std::pair("name", TreeKey::field), std::pair("key", TreeKey::text)}) {
    if (!nb::hasattr(key, attribute)) continue;
    nb::object value = key.attr(attribute);
    if (PyUnicode_Check(value.ptr()))
      return {kind == TreeKey::index ? TreeKey::text : kind, 0, nb::cast<std::string>(value)};
    if (PyLong_Check(value.ptr()))
      return {kind == TreeKey::index ? kind : TreeKey::integer, nb::cast<int64_t>(value), {}};
    throw TypeError(concat("checkpoint: a key of ", where, " is ", nb::cast<std::string>(nb::repr(value)),
                           ", expected a text or an integer"));
  }
  throw TypeError(concat("checkpoint: ", where, " has keys of an unknown kind"));
}

// Converts a pytree to the core's structure; registered classes become records of their children.
TreeDef core_tree(nb::handle tree, const std::string& where, bool description, Arrays& leaves,
                  std::vector<nb::object>& objects) {
  const Level level = open_level(tree);
  if (level.kind == NodeKind::none) return TreeDef::none();
  if (level.kind == NodeKind::leaf) {
    leaves.push_back(exact_array(tree, where, description));
    objects.push_back(nb::borrow(tree));
    return TreeDef::leaf();
  }
  std::vector<TreeKey> keys;
  std::vector<TreeDef> children;
  for (const nb::object& key : level_keys(tree, level)) keys.push_back(core_key(key, where));
  for (std::size_t i = 0; i < level.children.size(); ++i) {
    children.push_back(core_tree(level.children[i], where + keystr({keys[i]}), description, leaves, objects));
  }
  switch (level.kind) {
    case NodeKind::tuple:
      return TreeDef::tuple(std::move(children));
    case NodeKind::list:
      return TreeDef::list(std::move(children));
    case NodeKind::dict:
    case NodeKind::ordered_dict:
    case NodeKind::default_dict:
      return TreeDef::dict(std::move(keys), std::move(children));
    default: {
      std::string type = nb::cast<std::string>(nb::str(tree.type().attr("__name__")));
      return TreeDef::record(std::move(type), std::move(keys), std::move(children));
    }
  }
}

CheckpointItems core_items(nb::dict items, bool description, std::map<std::string, std::vector<nb::object>>& objects) {
  CheckpointItems result;
  for (auto [name, tree] : items) {
    const std::string item = nb::cast<std::string>(name);
    CheckpointTree& one = result[item];
    one.structure = core_tree(tree, item, description, one.leaves, objects[item]);
  }
  return result;
}

// A structure as plain containers.
nb::object python_tree(const TreeDef& tree, const Arrays& leaves, std::size_t& leaf) {
  if (tree.kind() == TreeDef::Kind::leaf) return wrap(leaves[leaf++]);
  if (tree.kind() == TreeDef::Kind::none || tree.kind() == TreeDef::Kind::value) return nb::none();
  if (tree.kind() == TreeDef::Kind::dict || tree.kind() == TreeDef::Kind::record) {
    nb::dict result;
    for (std::size_t i = 0; i < tree.children().size(); ++i) {
      const TreeKey key = tree.key(i);
      nb::object name =
          key.kind == TreeKey::integer ? nb::object(nb::int_(key.number)) : nb::object(nb::str(key.name.c_str()));
      result[name] = python_tree(tree.children()[i], leaves, leaf);
    }
    return result;
  }
  nb::list result;
  for (const TreeDef& child : tree.children()) result.append(python_tree(child, leaves, leaf));
  if (tree.kind() == TreeDef::Kind::list) return result;
  return nb::tuple(result);
}

// The leaves in the form of `like`: numbers are returned as numbers, leaves that were not requested unchanged.
nb::list like_leaves(const CheckpointTree& got, const CheckpointTree& like, const std::vector<nb::object>& objects) {
  nb::list result;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (got.leaves[i].same_as(like.leaves[i]))
      result.append(objects[i]);
    else if (is_number(objects[i]))
      result.append(wrap(got.leaves[i]).attr("item")());
    else
      result.append(wrap(got.leaves[i]));
  }
  return result;
}

nb::tuple python_checkpoint(const Checkpoint& checkpoint, const CheckpointItems& like,
                            std::map<std::string, std::vector<nb::object>>& objects) {
  nb::dict items, leaves;
  for (const auto& [name, tree] : checkpoint.items) {
    const auto it = like.find(name);
    std::size_t leaf = 0;
    if (it == like.end())
      items[name.c_str()] = python_tree(tree.structure, tree.leaves, leaf);
    else
      leaves[name.c_str()] = like_leaves(tree, it->second, objects[name]);
  }
  return nb::make_tuple(checkpoint.step, items, leaves, checkpoint.metadata);
}

}  // namespace

void bind_tree_checkpoints(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& exception, void*) {
    try {
      std::rethrow_exception(exception);
    } catch (const CorruptCheckpointError& error) {
      PyErr_SetString(error_class("CorruptCheckpointError").ptr(), error.what());
    } catch (const CheckpointError& error) {
      PyErr_SetString(error_class("CheckpointError").ptr(), error.what());
    }
  });
  nb::class_<Checkpointer>(m, "Checkpointer")
      .def(
          "__init__",
          [](Checkpointer* self, std::string folder, int64_t max_to_keep, bool async_saving, bool link_unchanged,
             int64_t chunk_bytes) {
            new (self) Checkpointer(std::move(folder), {max_to_keep, async_saving, link_unchanged, chunk_bytes});
          },
          nb::arg("folder"), nb::arg("max_to_keep"), nb::arg("async_saving"), nb::arg("link_unchanged"),
          nb::arg("chunk_bytes"))
      .def("save",
           [](Checkpointer& self, int64_t step, nb::dict items, const std::string& metadata) {
             std::map<std::string, std::vector<nb::object>> objects;
             self.save(step, core_items(items, false, objects), metadata);
           })
      .def("wait", &Checkpointer::wait)
      .def("saving", &Checkpointer::saving)
      .def("steps", &Checkpointer::steps)
      .def("folder", &Checkpointer::folder)
      .def("remove", &Checkpointer::remove)
      .def("read_parts",
           [](const Checkpointer& self, int64_t step,
              const std::vector<std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>>>& boxes) {
             std::vector<CheckpointPart> parts;
             for (const auto& [array, start, size] : boxes)
               parts.push_back({array, Shape(start.begin(), start.end()), Shape(size.begin(), size.end())});
             nb::list result;
             for (const Array& array : self.read_parts(step, parts)) result.append(wrap(array));
             return result;
           })
      .def("arrays",
           [](const Checkpointer& self, int64_t step) {
             nb::list result;
             for (const CheckpointArrayInfo& info : self.arrays(step)) {
               result.append(nb::make_tuple(info.name, int_tuple(info.type.shape), numpy_dtype(info.type.dtype),
                                            info.bytes, info.chunks));
             }
             return result;
           })
      .def(
          "restore",
          [](const Checkpointer& self, std::optional<int64_t> step, nb::dict like, const std::vector<std::string>& only,
             bool previous) {
            std::map<std::string, std::vector<nb::object>> objects;
            RestoreOptions options;
            options.step = step;
            options.like = core_items(like, true, objects);
            options.only = only;
            options.on_corruption = previous ? OnCorruption::previous : OnCorruption::error;
            return python_checkpoint(self.restore(options), options.like, objects);
          },
          nb::arg("step").none(), nb::arg("like"), nb::arg("only"), nb::arg("previous"));
  m.def("read_checkpoint", [](const std::string& folder, const std::vector<std::string>& only) {
    std::map<std::string, std::vector<nb::object>> objects;
    auto read = [&] {
      nb::gil_scoped_release other_threads_run;
      return read_checkpoint(folder, only);
    };
    return python_checkpoint(read(), {}, objects);
  });
}

}  // namespace capibara::python
