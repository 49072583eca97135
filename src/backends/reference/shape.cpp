// Reference kernels of the shape family: each is a strided copy.
#include "backends/reference/kernels.h"
#include "backends/reference/strided_copy.h"
#include "core/array/element.h"

#include <cstring>

namespace capibara::reference {

StridedCopy::StridedCopy(std::span<const int64_t> shape, std::span<const int64_t> target_strides,
                         std::span<const int64_t> source_strides, int64_t element_bytes)
    : element_bytes_(element_bytes) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) empty_ = true;
    if (shape[i] == 1) continue;
    int64_t target = target_strides[i] * element_bytes, source = source_strides[i] * element_bytes;
    if (!shape_.empty() && target_strides_.back() == target * shape[i] && source_strides_.back() == source * shape[i]) {
      shape_.back() *= shape[i];
      target_strides_.back() = target;
      source_strides_.back() = source;
    } else {
      shape_.push_back(shape[i]);
      target_strides_.push_back(target);
      source_strides_.push_back(source);
    }
  }
  if (shape_.empty()) {
    shape_ = {1};
    target_strides_ = source_strides_ = {element_bytes};
  }
}

namespace {

template <std::size_t bytes>
void copy_row(std::byte* target, const std::byte* source, int64_t count, int64_t target_stride, int64_t source_stride) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(target + i * target_stride, source + i * source_stride, bytes);
}

}  // namespace

void StridedCopy::run(std::byte* target, const std::byte* source) const {
  if (empty_) return;
  const std::size_t outer = shape_.size() - 1;
  const int64_t count = shape_[outer], target_stride = target_strides_[outer], source_stride = source_strides_[outer];
  Ints index(outer, 0);
  while (true) {
    if (target_stride == element_bytes_ && source_stride == element_bytes_) {
      std::memcpy(target, source, static_cast<std::size_t>(count * element_bytes_));
    } else {
      switch (element_bytes_) {
        case 1:
          copy_row<1>(target, source, count, target_stride, source_stride);
          break;
        case 2:
          copy_row<2>(target, source, count, target_stride, source_stride);
          break;
        case 4:
          copy_row<4>(target, source, count, target_stride, source_stride);
          break;
        case 8:
          copy_row<8>(target, source, count, target_stride, source_stride);
          break;
        default:
          copy_row<16>(target, source, count, target_stride, source_stride);
          break;
      }
    }
    std::size_t dim = outer;
    while (dim > 0) {
      --dim;
      target += target_strides_[dim];
      source += source_strides_[dim];
      if (++index[dim] < shape_[dim]) break;
      target -= target_strides_[dim] * shape_[dim];
      source -= source_strides_[dim] * shape_[dim];
      index[dim] = 0;
      if (dim == 0) return;
    }
    if (outer == 0) return;
  }
}

namespace {

int64_t element_bytes(const KernelArgs& args) { return storage_size(args.output_types[0].dtype); }

// Fills one output by reading the only input with these strides, one per output dimension, from `offset` (in elements).
Arrays read_strided(const KernelArgs& args, std::span<const int64_t> shape, const Ints& strides, int64_t offset = 0) {
  Output out = allocate(args.output_types[0]);
  int64_t bytes = element_bytes(args);
  StridedCopy copy(shape, row_major_strides(shape), strides, bytes);
  copy.run(out.data, args.inputs[0].raw_data() + offset * bytes);
  return {out.array};
}

Arrays broadcast_in_dim(const KernelArgs& args) {
  const Ints& dims = args.attrs.ints("broadcast_dimensions");
  const Shape& from = args.inputs[0].shape();
  Ints from_strides = row_major_strides(from);
  Ints strides(args.output_types[0].shape.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (from[i] != 1) strides[static_cast<std::size_t>(dims[i])] = from_strides[i];
  }
  return read_strided(args, args.output_types[0].shape, strides);
}

Arrays permuted(const KernelArgs& args, const Ints& permutation) {
  Ints from_strides = row_major_strides(args.inputs[0].shape());
  Shape shape;
  Ints strides;
  for (int64_t dim : permutation) {
    shape.push_back(args.inputs[0].shape(dim));
    strides.push_back(from_strides[static_cast<std::size_t>(dim)]);
  }
  return read_strided(args, shape, strides);
}

Arrays reshape(const KernelArgs& args) {
  if (args.attrs.has("dimensions")) {
    const Attr& dimensions = args.attrs["dimensions"];
    if (const Ints* order = dimensions.get_if<Ints>()) return permuted(args, *order);
  }
  const Shape& shape = args.inputs[0].shape();
  return read_strided(args, shape, row_major_strides(shape));
}

Arrays squeeze(const KernelArgs& args) {
  const Shape& shape = args.inputs[0].shape();
  return read_strided(args, shape, row_major_strides(shape));
}

Arrays transpose(const KernelArgs& args) { return permuted(args, args.attrs.ints("permutation")); }

Arrays rev(const KernelArgs& args) {
  const Shape& shape = args.inputs[0].shape();
  Ints strides = row_major_strides(shape);
  int64_t offset = 0;
  for (int64_t dim : args.attrs.ints("dimensions")) {
    auto d = static_cast<std::size_t>(dim);
    if (shape[d] > 0) offset += strides[d] * (shape[d] - 1);
    strides[d] = -strides[d];
  }
  return read_strided(args, shape, strides, offset);
}

Arrays tile(const KernelArgs& args) {
  const Shape& from = args.inputs[0].shape();
  const Ints& reps = args.attrs.ints("reps");
  Ints from_strides = row_major_strides(from);
  Shape shape;
  Ints strides;
  for (std::size_t i = 0; i < from.size(); ++i) {
    shape.insert(shape.end(), {reps[i], from[i]});
    strides.insert(strides.end(), {0, from_strides[i]});
  }
  return read_strided(args, shape, strides);
}

Arrays pad(const KernelArgs& args) {
  const Attr::List& config = args.attrs.list("padding_config");
  const Shape& from = args.inputs[0].shape();
  const Shape& to = args.output_types[0].shape;
  int64_t bytes = element_bytes(args);
  Output out = allocate(args.output_types[0]);
  StridedCopy fill(to, row_major_strides(to), Ints(to.size(), 0), bytes);
  fill.run(out.data, args.inputs[1].raw_data());
  // Element i of a dimension moves to low + i * step: keep those that stay inside.
  Ints from_strides = row_major_strides(from), to_strides = row_major_strides(to);
  Shape count;
  int64_t source = 0, target = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Ints& dim = *config[i].get_if<Ints>();
    int64_t low = dim[0], step = dim[2] + 1;
    int64_t first = low < 0 ? (-low + step - 1) / step : 0;
    int64_t limit = to[i] - low <= 0 ? 0 : (to[i] - low + step - 1) / step;  // first element beyond the end
    limit = std::min(limit, from[i]);
    count.push_back(std::max<int64_t>(0, limit - first));
    source += first * from_strides[i];
    target += (low + first * step) * to_strides[i];
    to_strides[i] *= step;
  }
  if (element_count(count) == 0) return {out.array};
  StridedCopy copy(count, to_strides, from_strides, bytes);
  copy.run(out.data + target * bytes, args.inputs[0].raw_data() + source * bytes);
  return {out.array};
}

Arrays concatenate(const KernelArgs& args) {
  auto dim = static_cast<std::size_t>(args.attrs.integer("dimension"));
  Output out = allocate(args.output_types[0]);
  int64_t bytes = element_bytes(args);
  Ints to_strides = row_major_strides(args.output_types[0].shape);
  int64_t position = 0;
  for (const Array& x : args.inputs) {
    StridedCopy copy(x.shape(), to_strides, row_major_strides(x.shape()), bytes);
    copy.run(out.data + position * to_strides[dim] * bytes, x.raw_data());
    position += x.shape()[dim];
  }
  return {out.array};
}

Arrays stack(const KernelArgs& args) {
  auto axis = args.attrs.integer("axis");
  Output out = allocate(args.output_types[0]);
  int64_t bytes = element_bytes(args);
  Ints to_strides = row_major_strides(args.output_types[0].shape);
  int64_t step = to_strides[static_cast<std::size_t>(axis)];
  to_strides.erase(to_strides.begin() + axis);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const Array& x = args.inputs[i];
    StridedCopy copy(x.shape(), to_strides, row_major_strides(x.shape()), bytes);
    copy.run(out.data + static_cast<int64_t>(i) * step * bytes, x.raw_data());
  }
  return {out.array};
}

// Parts of the input along an axis, one output each; `drop_axis`: parts of size 1, without the axis.
Arrays parts_along(const KernelArgs& args, int64_t axis, bool drop_axis) {
  Arrays parts;
  const Array& x = args.inputs[0];
  Ints from_strides = row_major_strides(x.shape());
  int64_t step = from_strides[static_cast<std::size_t>(axis)];
  if (drop_axis) from_strides.erase(from_strides.begin() + axis);
  int64_t bytes = storage_size(x.dtype()), position = 0;
  for (const ArrayType& type : args.output_types) {
    Output out = allocate(type);
    StridedCopy copy(type.shape, row_major_strides(type.shape), from_strides, bytes);
    copy.run(out.data, x.raw_data() + position * step * bytes);
    position += drop_axis ? 1 : type.shape[static_cast<std::size_t>(axis)];
    parts.push_back(out.array);
  }
  return parts;
}

Arrays split(const KernelArgs& args) { return parts_along(args, args.attrs.integer("axis"), false); }
Arrays unstack(const KernelArgs& args) { return parts_along(args, args.attrs.integer("axis"), true); }

Arrays iota(const KernelArgs& args) {
  const ArrayType& type = args.output_types[0];
  auto dim = static_cast<std::size_t>(args.attrs.integer("dimension"));
  int64_t bytes = element_bytes(args), count = type.shape[dim];
  std::vector<int64_t> counter(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) counter[static_cast<std::size_t>(i)] = i;
  std::vector<std::byte> row(static_cast<std::size_t>(count * bytes));
  convert_elements(DType::int64, counter.data(), type.dtype, row.data(), count);
  Output out = allocate(type);
  Ints strides(type.shape.size(), 0);
  strides[dim] = 1;
  StridedCopy copy(type.shape, row_major_strides(type.shape), strides, bytes);
  copy.run(out.data, row.data());
  return {out.array};
}

Arrays empty(const KernelArgs& args) {
  Output out = allocate(args.output_types[0]);
  std::memset(out.data, 0, static_cast<std::size_t>(args.output_types[0].size() * element_bytes(args)));
  return {out.array};
}

}  // namespace

KernelList shape_kernels() {
  return {{"broadcast_in_dim", broadcast_in_dim},
          {"reshape", reshape},
          {"squeeze", squeeze},
          {"transpose", transpose},
          {"rev", rev},
          {"tile", tile},
          {"pad", pad},
          {"concatenate", concatenate},
          {"stack", stack},
          {"split", split},
          {"unstack", unstack},
          {"iota", iota},
          {"empty", empty}};
}

}  // namespace capibara::reference
