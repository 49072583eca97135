// Copies of unchanged elements: broadcasts, slices, concatenations, pads and reversals outside generated code.
//
// Each is one or more copies between strided views. Generated code reads through such operations instead; these
// kernels serve eager operations.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/index/index_windows.h"
#include "backends/cpu/kernels/small_families.h"
#include "backends/reference/kernels.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using reference::row_major_strides;

std::size_t as_index(int64_t position) { return static_cast<std::size_t>(position); }

// A copy of a box of elements between two views; strides and offsets count elements.
class BoxCopy {
 public:
  BoxCopy(const Shape& shape, const Ints& to, const Ints& from, int64_t size, int64_t to_offset = 0,
          int64_t from_offset = 0)
      : size_(size), to_offset_(to_offset), from_offset_(from_offset), is_empty_(element_count(shape) == 0) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      if (!steps_.empty() && steps_.back().to == to[d] * shape[d] && steps_.back().from == from[d] * shape[d]) {
        steps_.back() = {steps_.back().count * shape[d], to[d], from[d]};
      } else {
        steps_.push_back({shape[d], to[d], from[d]});
      }
    }
    if (steps_.empty()) steps_.push_back({1, 1, 1});
    for (std::size_t d = 1; d < steps_.size(); ++d) inner_ *= steps_[d].count;
  }

  void run(const std::byte* from, std::byte* to) const {
    if (is_empty_) return;
    constexpr double byte_nanoseconds = 0.05;
    visit_bytes(size_, [&]<class T>(Type<T>) {
      const T* source = reinterpret_cast<const T*>(from) + from_offset_;
      T* target = reinterpret_cast<T*>(to) + to_offset_;
      const Step& outer = steps_[0];
      parallel_for_cost(outer.count, byte_nanoseconds * static_cast<double>(inner_ * size_),
                        [&](int64_t begin, int64_t end) {
                          run_from(0, source + begin * outer.from, target + begin * outer.to, end - begin);
                          return 0;
                        });
    });
  }

 private:
  struct Step {
    int64_t count, to, from;
  };

  // The first `count` entries of step d.
  template <class T>
  void run_from(std::size_t d, const T* from, T* to, int64_t count) const {
    const Step& step = steps_[d];
    if (d + 1 == steps_.size()) return copy_run(to, step.to, from, step.from, count);
    const int64_t next = steps_[d + 1].count;
    for (int64_t i = 0; i < count; ++i) run_from(d + 1, from + i * step.from, to + i * step.to, next);
  }

  std::vector<Step> steps_;
  int64_t size_, to_offset_, from_offset_;
  int64_t inner_ = 1;  // elements per step of the outermost dimension
  bool is_empty_;
};

int64_t size_of(const KernelRequest& request) { return storage_size(request.outputs[0].dtype); }

// Fills the output, row by row, from the only operand.
HostKernel read_strided(const KernelRequest& request, const Shape& shape, const Ints& from, int64_t offset = 0) {
  return [copy = BoxCopy(shape, row_major_strides(shape), from, size_of(request), 0, offset)](
             std::byte* const* buffers) { copy.run(buffers[0], buffers[1]); };
}

HostKernel make_broadcast_in_dim(const KernelRequest& request) {
  if (request.inputs.size() != 1) return {};
  const Shape& in = request.inputs[0].shape;
  const Ints strides = row_major_strides(in), &dims = request.attrs.ints("broadcast_dimensions");
  Ints from(request.outputs[0].shape.size(), 0);
  for (std::size_t d = 0; d < dims.size(); ++d) from[as_index(dims[d])] = in[d] == 1 ? 0 : strides[d];
  return read_strided(request, request.outputs[0].shape, from);
}

HostKernel make_reshape(const KernelRequest& request) {
  const Shape& in = request.inputs[0].shape;
  const Ints strides = row_major_strides(in);
  const Attr* dimensions = request.attrs.find("dimensions");
  const Ints* order = dimensions ? dimensions->get_if<Ints>() : nullptr;
  if (!order) return read_strided(request, in, strides);
  Shape shape;
  Ints from;
  for (int64_t d : *order) {
    shape.push_back(in[as_index(d)]);
    from.push_back(strides[as_index(d)]);
  }
  return read_strided(request, shape, from);
}

HostKernel make_squeeze(const KernelRequest& request) {
  const Shape& in = request.inputs[0].shape;
  return read_strided(request, in, row_major_strides(in));
}

HostKernel make_rev(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  Ints from = row_major_strides(shape);
  int64_t last = 0;
  for (int64_t d : request.attrs.ints("dimensions")) {
    last += from[as_index(d)] * (shape[as_index(d)] - 1);
    from[as_index(d)] = -from[as_index(d)];
  }
  return read_strided(request, shape, from, last);
}

HostKernel make_slice(const KernelRequest& request) {
  Ints from = row_major_strides(request.inputs[0].shape);
  const Ints& starts = request.attrs.ints("start_indices");
  const Attr* given = request.attrs.find("strides");
  const Ints* strides = given ? given->get_if<Ints>() : nullptr;
  int64_t offset = 0;
  for (std::size_t d = 0; d < from.size(); ++d) {
    offset += starts[d] * from[d];
    if (strides) from[d] *= (*strides)[d];
  }
  return read_strided(request, request.outputs[0].shape, from, offset);
}

HostKernel make_tile(const KernelRequest& request) {
  const Shape& in = request.inputs[0].shape;
  const Ints strides = row_major_strides(in), &reps = request.attrs.ints("reps");
  Shape shape;
  Ints from;
  for (std::size_t d = 0; d < in.size(); ++d) {
    shape.insert(shape.end(), {reps[d], in[d]});
    from.insert(from.end(), {0, strides[d]});
  }
  return read_strided(request, shape, from);
}

HostKernel make_pad(const KernelRequest& request) {
  const Shape &in = request.inputs[0].shape, &out = request.outputs[0].shape;
  const Ints from = row_major_strides(in);
  Ints to = row_major_strides(out);
  const BoxCopy fill(out, to, Ints(out.size(), 0), size_of(request));
  const Attr::List& config = request.attrs.list("padding_config");
  Shape kept;
  int64_t to_offset = 0, from_offset = 0;
  for (std::size_t d = 0; d < in.size(); ++d) {
    const Ints& padding = *config[d].get_if<Ints>();
    const int64_t low = padding[0], step = padding[2] + 1;
    // Element i is stored at low + i * step.
    int64_t first = 0;
    while (first < in[d] && low + first * step < 0) ++first;
    int64_t end = first;
    while (end < in[d] && low + end * step < out[d]) ++end;
    kept.push_back(end - first);
    from_offset += first * from[d];
    to_offset += (low + first * step) * to[d];
    to[d] *= step;
  }
  const BoxCopy inner(kept, to, from, size_of(request), to_offset, from_offset);
  return [fill, inner](std::byte* const* buffers) {
    fill.run(buffers[1], buffers[2]);
    inner.run(buffers[0], buffers[2]);
  };
}

// Copies between a whole and its parts, which are adjacent along a dimension; `adds`: the whole has this dimension, the
// parts do not.
enum class Direction { to_whole, to_parts };
std::vector<BoxCopy> part_copies(const KernelRequest& request, std::size_t dimension, bool adds, Direction direction) {
  const bool joins = direction == Direction::to_whole;
  const Ints whole = row_major_strides((joins ? request.outputs : request.inputs)[0].shape);
  std::vector<BoxCopy> copies;
  int64_t position = 0;
  for (const ArrayType& part : joins ? request.inputs : request.outputs) {
    Shape shape = part.shape;
    if (adds) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dimension), 1);
    const Ints own = row_major_strides(shape);
    const int64_t offset = position * whole[dimension];
    if (joins)
      copies.emplace_back(shape, whole, own, size_of(request), offset, 0);
    else
      copies.emplace_back(shape, own, whole, size_of(request), 0, offset);
    position += shape[dimension];
  }
  return copies;
}

HostKernel joined(const KernelRequest& request, std::size_t dimension, bool adds) {
  return [copies = part_copies(request, dimension, adds, Direction::to_whole)](std::byte* const* buffers) {
    for (std::size_t i = 0; i < copies.size(); ++i) copies[i].run(buffers[i], buffers[copies.size()]);
  };
}

HostKernel parted(const KernelRequest& request, std::size_t dimension, bool drops) {
  return [copies = part_copies(request, dimension, drops, Direction::to_parts)](std::byte* const* buffers) {
    for (std::size_t i = 0; i < copies.size(); ++i) copies[i].run(buffers[0], buffers[1 + i]);
  };
}

HostKernel make_concatenate(const KernelRequest& request) {
  return joined(request, as_index(request.attrs.integer("dimension")), false);
}
HostKernel make_stack(const KernelRequest& request) {
  return joined(request, as_index(request.attrs.integer("axis")), true);
}
HostKernel make_split(const KernelRequest& request) {
  return parted(request, as_index(request.attrs.integer("axis")), false);
}
HostKernel make_unstack(const KernelRequest& request) {
  return parted(request, as_index(request.attrs.integer("axis")), true);
}

// Start of a box: one scalar per dimension, clamped so that the box is in bounds.
struct Starts {
  std::vector<DType> dtypes;
  Ints last, strides;

  Starts(const KernelRequest& request, std::size_t first, const Shape& whole, const Shape& box)
      : strides(row_major_strides(whole)) {
    for (std::size_t d = 0; d < whole.size(); ++d) {
      dtypes.push_back(request.inputs[first + d].dtype);
      last.push_back(whole[d] - box[d]);
    }
  }
  int64_t offset(std::byte* const* scalars) const {
    int64_t sum = 0;
    for (std::size_t d = 0; d < last.size(); ++d)
      sum += std::clamp<int64_t>(start(dtypes[d], scalars[d]), 0, last[d]) * strides[d];
    return sum;
  }
  static int64_t start(DType dtype, const std::byte* scalar) {
    if (!is_unsigned(dtype)) return load_as<int64_t>(dtype, scalar, 0);
    return static_cast<int64_t>(std::min<uint64_t>(load_as<uint64_t>(dtype, scalar, 0), INT64_MAX));
  }
};

HostKernel make_dynamic_slice(const KernelRequest& request) {
  const Shape &whole = request.inputs[0].shape, &box = request.outputs[0].shape;
  if (request.inputs.size() != whole.size() + 1) return {};
  const int64_t size = size_of(request);
  return [size, starts = Starts(request, 1, whole, box),
          copy = BoxCopy(box, row_major_strides(box), row_major_strides(whole), size)](std::byte* const* buffers) {
    copy.run(buffers[0] + starts.offset(buffers + 1) * size, buffers[1 + starts.last.size()]);
  };
}

HostKernel make_dynamic_update_slice(const KernelRequest& request) {
  const Shape &whole = request.inputs[0].shape, &box = request.inputs[1].shape;
  if (request.inputs.size() != whole.size() + 2) return {};
  const int64_t size = size_of(request), bytes = request.outputs[0].size() * size;
  return [=, starts = Starts(request, 2, whole, box),
          copy = BoxCopy(box, row_major_strides(whole), row_major_strides(box), size)](std::byte* const* buffers) {
    std::byte* to = buffers[2 + starts.last.size()];
    std::memcpy(to, buffers[0], as_index(bytes));
    copy.run(buffers[1], to + starts.offset(buffers + 2) * size);
  };
}

}  // namespace

KernelMakers movement_makers() {
  return {{"broadcast_in_dim", make_broadcast_in_dim},
          {"concatenate", make_concatenate},
          {"dynamic_slice", make_dynamic_slice},
          {"dynamic_update_slice", make_dynamic_update_slice},
          {"pad", make_pad},
          {"reshape", make_reshape},
          {"rev", make_rev},
          {"slice", make_slice},
          {"split", make_split},
          {"squeeze", make_squeeze},
          {"stack", make_stack},
          {"tile", make_tile},
          {"unstack", make_unstack}};
}

}  // namespace capibara::cpu
