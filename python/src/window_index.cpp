// Indexing with windows (jax.ds), whose position may be known only at run time.
#include <capibara/config.h>
#include <capibara/device.h>
#include <capibara/lax.h>

#include <cstring>
#include <optional>

#include "array_index.h"
#include "program/trace/trace.h"

namespace capibara::python {

namespace {

bool is_window(nb::handle key) {
  static PyObject* window = nb::object(nb::module_::import_("capibara._types").attr("Slice")).release().ptr();
  return PyObject_IsInstance(key.ptr(), window) == 1;
}

int64_t static_size(nb::handle size) {
  nb::object index = nb::isinstance<Array>(size) && nb::cast<const Array&>(size).is_tracer()
                         ? nb::object()
                         : nb::steal(PyNumber_Index(size.ptr()));
  if (!index) {
    PyErr_Clear();
    throw TypeError(concat("Shapes must be 1D sequences of concrete values of integer type, got the size ",
                           nb::cast<std::string>(nb::str(size)), " of jax.ds"));
  }
  return nb::cast<int64_t>(index);
}

// The number of dimensions that an entry of the key consumes.
int64_t consumed(nb::handle entry) {
  if (entry.is_none() || PyBool_Check(entry.ptr())) return 0;
  if (PySlice_Check(entry.ptr()) || PyLong_Check(entry.ptr()) || is_window(entry)) return 1;
  std::optional<Array> array = array_if(entry);
  return array && is_bool(array->dtype()) ? array->ndim() : 1;
}

Array start_of(nb::handle window) {
  Array start = to_array(window.attr("start"), "jax.ds");
  if (!is_integer(start.dtype())) {
    throw TypeError(
        concat("index arguments to dynamic_slice must be integers of the same type, got: ", to_string(start.dtype())));
  }
  if (start.ndim() != 0) throw TypeError("jax.ds: the start must be a scalar");
  return jax::lax::convert_element_type(start, DType::int32, false);
}

// True if a window starting at `start` (counted from the end if negative) fits within the dimension.
Array lies_within(const Array& start, int64_t extent, int64_t dimension) {
  auto constant = [&](int64_t value) { return jax::lax::full_like(start, Array(value)); };
  Array low = jax::lax::ge(start, constant(-dimension)), high = jax::lax::le(start, constant(dimension - extent));
  Array counted = jax::lax::ge(start, constant(0)), whole = jax::lax::le(start, constant(-extent));
  Array inner = jax::lax::bitwise_or(counted, whole);
  return jax::lax::bitwise_and(jax::lax::bitwise_and(low, high), inner);
}

}  // namespace

IndexedPart indexed_part(const Array& array, nb::handle key) {
  nb::list items;
  if (PyTuple_Check(key.ptr())) {
    for (nb::handle item : key) items.append(item);
  } else {
    items.append(key);
  }
  bool any = false;
  for (nb::handle item : items) any = any || is_window(item);
  if (!any) return {array, index_entries(key, array), {}};

  int64_t named = 0;
  for (nb::handle item : items) named += item.ptr() == Py_Ellipsis ? 0 : consumed(item);
  Arrays starts(static_cast<std::size_t>(array.ndim()), jax::lax::full({}, Array(0), DType::int32));
  Ints sizes = array.shape();
  nb::list rest;
  std::size_t axis = 0;
  for (nb::handle item : items) {
    if (item.ptr() == Py_Ellipsis) {
      axis += static_cast<std::size_t>(std::max<int64_t>(array.ndim() - named, 0));
      rest.append(item);
      continue;
    }
    if (!is_window(item)) {
      axis += static_cast<std::size_t>(consumed(item));
      rest.append(item);
      continue;
    }
    if (axis >= sizes.size()) throw IndexError(concat("Too many indices: array is ", array.ndim(), "-dimensional"));
    const int64_t dimension = array.shape()[axis], stride = nb::cast<int64_t>(item.attr("stride"));
    const int64_t count = static_size(item.attr("size")), extent = count == 0 ? 0 : (count - 1) * stride + 1;
    if (extent > dimension) {
      throw TypeError(concat("slice slice_sizes must be less than or equal to operand shape, got slice_sizes (", extent,
                             ",) for operand shape (", dimension, ",)."));
    }
    starts[axis] = start_of(item);
    sizes[axis] = extent;
    rest.append(nb::steal(PySlice_New(nb::none().ptr(), nb::none().ptr(), nb::int_(stride).ptr())));
    ++axis;
  }
  IndexedPart result;
  result.array = jax::lax::dynamic_slice(array, starts, sizes);
  result.indices = index_entries(nb::tuple(rest), result.array);
  // A window that does not fit is clamped on reads and dropped on writes.
  result.put_back = [array, starts, sizes](const Array& updated) {
    Array fits = Array(true);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (sizes[i] != array.shape()[i])
        fits = jax::lax::bitwise_and(fits, lies_within(starts[i], sizes[i], array.shape()[i]));
    }
    return jax::lax::select(fits, jax::lax::dynamic_update_slice(array, updated, starts), array);
  };
  return result;
}

namespace {

// Fast path for x[i] and x[i, j] of an array in host memory: copies the contiguous elements instead of binding slice
// and reshape. Empty in all other cases.
std::optional<Array> read_neighbours(const Array& array, PyObject* key) {
  constexpr int64_t max_bytes = 1 << 16;  // bytes; above this, a backend's threads pay off
  if (array.is_tracer() || !evaluating()) return std::nullopt;
  const ArrayType& type = array.type();
  if (type.ref || is_key(type.dtype) || type.dtype == DType::token || !type.sharding.single_device() ||
      array.committed())
    return std::nullopt;
  const bool several = PyTuple_CheckExact(key);
  const Py_ssize_t named = several ? PyTuple_GET_SIZE(key) : 1;
  if (named == 0 || named > type.rank()) return std::nullopt;
  int64_t place = 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* item = several ? PyTuple_GET_ITEM(key, i) : key;
    if (!PyLong_CheckExact(item)) return std::nullopt;
    int overflow = 0;
    int64_t index = PyLong_AsLongLongAndOverflow(item, &overflow);
    const int64_t size = type.shape[static_cast<std::size_t>(i)];
    if (index < 0) index += size;
    if (overflow != 0 || index < 0 || index >= size) return std::nullopt;
    place = place * size + index;
  }
  ArrayType result = type;
  result.shape.erase(result.shape.begin(), result.shape.begin() + named);
  const int64_t bytes = result.size() * storage_size(type.dtype);
  const Buffer& whole = array.buffer();
  if (bytes > max_bytes || whole.deleted() || !whole.address() || !whole.is_ready() || whole.device_memory() ||
      !(whole.device() == Device{}) || config().debug_nans || config().debug_infs)
    return std::nullopt;
  const std::byte* data = whole.data();
  Buffer part = Buffer::allocate(static_cast<std::size_t>(bytes));
  std::memcpy(part.address(), data + place * bytes, static_cast<std::size_t>(bytes));
  return Array::from_buffer(std::move(result), std::move(part));
}

}  // namespace

Array read_index(const Array& array, nb::handle key) {
  if (std::optional<Array> part = read_neighbours(array, key.ptr())) return *std::move(part);
  IndexedPart part = indexed_part(array, key);
  return capibara::index(part.array, part.indices);
}

}  // namespace capibara::python
