// The index family: joins slices, gather and scatter, and holds the code that gather and scatter share.
#include "core/array/element.h"
#include "lax/index/index_map.h"

namespace capibara {

namespace lax = jax::lax;

GatherDimensionNumbers inverse_of(const ScatterDimensionNumbers& dims) {
  return {dims.update_window_dims, dims.inserted_window_dims, dims.scatter_dims_to_operand_dims,
          dims.operand_batching_dims, dims.scatter_indices_batching_dims};
}

Ints window_sizes(const ScatterDimensionNumbers& dims, int64_t operand_rank, const Shape& updates) {
  Ints sizes;
  std::size_t next = 0;
  for (int64_t i = 0; i < operand_rank; ++i) {
    bool absent = contains(dims.inserted_window_dims, i) || contains(dims.operand_batching_dims, i);
    sizes.push_back(absent ? 1 : at(updates, dims.update_window_dims.at(next++)));
  }
  return sizes;
}

lax::GatherScatterMode mode_of(const Attrs& attrs) {
  const std::string& mode = attrs.text("mode");
  if (mode == "clip") return lax::GatherScatterMode::clip;
  if (mode == "fill_or_drop") return lax::GatherScatterMode::fill_or_drop;
  if (mode == "promise_in_bounds") return lax::GatherScatterMode::promise_in_bounds;
  throw ValueError(
      concat("gather/scatter: unknown mode '", mode, "', expected clip, fill_or_drop or promise_in_bounds"));
}

const char* mode_name(lax::GatherScatterMode mode) {
  switch (mode) {
    case lax::GatherScatterMode::clip:
      return "clip";
    case lax::GatherScatterMode::fill_or_drop:
      return "fill_or_drop";
    case lax::GatherScatterMode::promise_in_bounds:
      return "promise_in_bounds";
    case lax::GatherScatterMode::one_hot:
      break;
  }
  throw ValueError("gather/scatter: mode one_hot is a mode of take_along_axis only");
}

std::optional<std::string> print_index_attribute(const std::string& name, const Attr& value) {
  const std::string* text = value.get_if<std::string>();
  if (name != "mode" || !text) return std::nullopt;
  std::string upper = *text;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return "GatherScatterMode." + upper;
}

Array clamped_indices(const Array& indices, const Ints& upper_bounds) {
  DType dtype = indices.dtype();
  // A bound beyond the index dtype is clipped: no index of that dtype can exceed it.
  IntInfo info = iinfo(dtype);
  std::vector<int64_t> bounds;
  for (int64_t bound : upper_bounds) {
    bounds.push_back(info.max < static_cast<uint64_t>(INT64_MAX) ? std::min(bound, static_cast<int64_t>(info.max))
                                                                 : bound);
  }
  ArrayType type = sample_type(dtype, {static_cast<int64_t>(bounds.size())});
  Buffer buffer = Buffer::allocate(bounds.size() * static_cast<std::size_t>(storage_size(dtype)));
  convert_elements(DType::int64, bounds.data(), dtype, buffer.mutable_data(), static_cast<int64_t>(bounds.size()));
  Array upper = lax::broadcast_in_dim(Array::from_buffer(type, buffer), indices.shape(), {indices.ndim() - 1});
  return lax::clamp(scalar_of(dtype, 0), indices, upper);
}

void require_sorted_unique(const char* op, const char* name, const Ints& dims, int64_t rank) {
  if (!std::is_sorted(dims.begin(), dims.end()))
    throw TypeError(concat(name, " in ", op, " op must be sorted; got ", tuple(dims)));
  if (has_duplicates(dims)) throw TypeError(concat(name, " in ", op, " op must not repeat; got ", tuple(dims)));
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank)
      throw TypeError(
          concat("Invalid ", name, " set in ", op, " op; valid range is [0, ", rank, "), got ", tuple(dims)));
  }
}

void require_disjoint(const char* op, const char* name, const Ints& dims, const char* other_name, const Ints& other) {
  for (int64_t dim : dims) {
    if (contains(other, dim)) {
      throw TypeError(concat(name, " and ", other_name, " in ", op, " op must be disjoint; got ", tuple(dims), " and ",
                             tuple(other)));
    }
  }
}

void require_batching_dims(const char* op, const ArrayType& operand, const ArrayType& indices,
                           const Ints& operand_batching, const Ints& indices_batching) {
  const bool is_gather = op == std::string_view("gather");
  const std::string shown = is_gather ? "Gather op" : "Scatter op";
  const char* name = is_gather ? "start_indices_batching_dims" : "scatter_indices_batching_dims";
  if (has_duplicates(indices_batching)) {
    throw TypeError(concat(name, " in ", op, " op must not repeat; got ", tuple(indices_batching)));
  }
  for (int64_t dim : indices_batching) {
    if (dim < 0 || dim >= indices.rank()) {
      throw TypeError(concat("Invalid ", name, " set in ", op, " op; valid range is [0, ", indices.rank(), "), got ",
                             tuple(indices_batching)));
    }
    if (dim == indices.rank() - 1) {
      throw TypeError(concat(op, ": ", shown, " cannot have the index vector dimension as a batching dimension; got ",
                             tuple(indices_batching), " for indices of shape ", tuple(indices.shape)));
    }
  }
  if (operand_batching.size() != indices_batching.size()) {
    throw TypeError(concat(op, ": ", shown, " requires equal numbers of operand_batching_dims and ", name, "; got ",
                           tuple(operand_batching), " and ", tuple(indices_batching)));
  }
  for (std::size_t i = 0; i < indices_batching.size(); ++i) {
    if (at(operand.shape, operand_batching[i]) == at(indices.shape, indices_batching[i])) continue;
    throw TypeError(concat(op, ": ", shown,
                           " requires operand batching dimensions and indices batching dimensions to have the ",
                           "same shape; got operand ", to_string(operand), " with ", tuple(operand_batching),
                           " and indices ", to_string(indices), " with ", tuple(indices_batching)));
  }
}

void require_index_map(const char* op, const char* name, const Ints& map, const ArrayType& operand,
                       const ArrayType& indices) {
  if (static_cast<int64_t>(map.size()) != indices.shape.back()) {
    throw TypeError(concat(op, op == std::string_view("gather") ? ": Gather" : ": Scatter", " op has ", map.size(),
                           " elements in ", name, " and the bound of dimension index_vector_dim=", indices.rank() - 1,
                           " of indices is ", indices.shape.back(), ". These two numbers must be equal."));
  }
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i] >= 0 && map[i] < operand.rank()) continue;
    throw TypeError(
        concat(op, ": Invalid ", name, " mapping; domain is [0, ", operand.rank(), "), got: ", i, "->", map[i], "."));
  }
  if (has_duplicates(map)) throw TypeError(concat(name, " in ", op, " op must not repeat; got ", tuple(map)));
}

Family index_family() {
  Family family;
  for (Family (*part)() : {slice_records, dynamic_slice_records, gather_records, scatter_records}) {
    for (PrimitiveRecord& record : part()) family.push_back(std::move(record));
  }
  return family;
}

}  // namespace capibara
