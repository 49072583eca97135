// Reference kernels of the index family: slices, gather and scatter.
#include "backends/reference/kernels.h"
#include "backends/reference/strided_copy.h"
#include "core/array/element.h"
#include "lax/shape/shape.h"
#include "program/ir/handles.h"

#include <cmath>
#include <cstring>

namespace capibara::reference {

namespace {

// Index values as int64; an unsigned one out of its range becomes the maximum.
std::vector<int64_t> read_indices(const Array& indices) {
  std::vector<int64_t> out(static_cast<std::size_t>(indices.size()));
  const std::byte* data = indices.raw_data();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = element_as_int64(indices.dtype(), data, static_cast<int64_t>(i));
    if (is_unsigned(indices.dtype()) && out[i] < 0) out[i] = INT64_MAX;
  }
  return out;
}

// ---- slices ------------------------------------------------------------------------------------------------------

Arrays slice(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  const Ints& start = args.attrs.ints("start_indices");
  const Ints* steps = args.attrs["strides"].get_if<Ints>();
  Ints strides = row_major_strides(x.shape());
  int64_t offset = 0, bytes = storage_size(x.dtype());
  for (std::size_t i = 0; i < start.size(); ++i) {
    offset += start[i] * strides[i];
    if (steps) strides[i] *= (*steps)[i];
  }
  Output out = allocate(args.output_types[0]);
  const Shape& shape = args.output_types[0].shape;
  if (element_count(shape) == 0) return {out.array};
  StridedCopy(shape, row_major_strides(shape), strides, bytes).run(out.data, x.raw_data() + offset * bytes);
  return {out.array};
}

// The offset in elements of a window of `sizes`, clamped so that it fits.
int64_t window_offset(std::span<const Array> starts, const Shape& shape, const Shape& sizes) {
  Ints strides = row_major_strides(shape);
  int64_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    int64_t start = read_indices(starts[i])[0];
    offset += std::clamp<int64_t>(start, 0, shape[i] - sizes[i]) * strides[i];
  }
  return offset;
}

Arrays dynamic_slice(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  const Shape& sizes = args.output_types[0].shape;
  int64_t bytes = storage_size(x.dtype());
  Output out = allocate(args.output_types[0]);
  int64_t offset = window_offset(args.inputs.subspan(1), x.shape(), sizes);
  StridedCopy copy(sizes, row_major_strides(sizes), row_major_strides(x.shape()), bytes);
  copy.run(out.data, x.raw_data() + offset * bytes);
  return {out.array};
}

Output copied(const Array& x, const ArrayType& type) {
  Output out = allocate(type);
  std::memcpy(out.data, x.raw_data(), static_cast<std::size_t>(x.size() * storage_size(x.dtype())));
  return out;
}

Arrays dynamic_update_slice(const KernelArgs& args) {
  const Array &x = args.inputs[0], &update = args.inputs[1];
  int64_t bytes = storage_size(x.dtype());
  Output out = copied(x, args.output_types[0]);
  int64_t offset = window_offset(args.inputs.subspan(2), x.shape(), update.shape());
  StridedCopy copy(update.shape(), row_major_strides(x.shape()), row_major_strides(update.shape()), bytes);
  copy.run(out.data + offset * bytes, update.raw_data());
  return {out.array};
}

// ---- windows -----------------------------------------------------------------------------------------------------

// The windows that gather reads and scatter writes: one per index vector. "Operand" is the large array, "windows" is
// the gather's output or the scatter's updates.
class Windows {
 public:
  Windows(const GatherDimensionNumbers& dims, const Ints& sizes, const Shape& operand, const Array& indices,
          const Shape& windows, bool clamp)
      : dims_(dims), operand_(operand), sizes_(sizes), indices_(read_indices(indices)), clamp_(clamp) {
    batch_shape_ = Shape(indices.shape().begin(), indices.shape().end() - 1);
    vector_size_ = indices.shape().back();
    operand_strides_ = row_major_strides(operand);
    Ints window_strides = row_major_strides(windows);
    for (int64_t dim : other_dims(static_cast<int64_t>(windows.size()), dims.offset_dims)) {
      batch_strides_.push_back(window_strides[static_cast<std::size_t>(dim)]);
    }
    std::size_t next = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(operand.size()); ++i) {
      if (contains(dims.collapsed_slice_dims, i) || contains(dims.operand_batching_dims, i)) continue;
      auto offset_dim = static_cast<std::size_t>(dims.offset_dims[next++]);
      inner_shape_.push_back(windows[offset_dim]);
      inner_operand_strides_.push_back(operand_strides_[static_cast<std::size_t>(i)]);
      inner_window_strides_.push_back(window_strides[offset_dim]);
    }
  }

  // Calls visit(operand offset, windows offset, inside) in row-major order of the index vectors; offsets in elements.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (element_count(batch_shape_) == 0) return;
    Ints batch(batch_shape_.size(), 0);
    std::size_t position = 0;
    do {
      int64_t operand_offset = 0, window_offset = 0;
      bool inside = true;
      for (std::size_t k = 0; k < dims_.start_index_map.size(); ++k) {
        auto dim = static_cast<std::size_t>(dims_.start_index_map[k]);
        int64_t start = indices_[position + k], greatest = operand_[dim] - sizes_[dim];
        if (start < 0 || start > greatest) inside = false;
        operand_offset += std::max<int64_t>(0, std::min(start, greatest)) * operand_strides_[dim];
      }
      position += static_cast<std::size_t>(vector_size_);
      for (std::size_t k = 0; k < dims_.operand_batching_dims.size(); ++k) {
        operand_offset += batch[static_cast<std::size_t>(dims_.start_indices_batching_dims[k])] *
                          operand_strides_[static_cast<std::size_t>(dims_.operand_batching_dims[k])];
      }
      for (std::size_t k = 0; k < batch.size(); ++k) window_offset += batch[k] * batch_strides_[k];
      visit(operand_offset, window_offset, inside || clamp_);
    } while (next_index(batch, batch_shape_));
  }

  const Shape& inner_shape() const { return inner_shape_; }
  const Ints& inner_operand_strides() const { return inner_operand_strides_; }
  const Ints& inner_window_strides() const { return inner_window_strides_; }

 private:
  const GatherDimensionNumbers& dims_;
  Shape operand_;
  Ints sizes_;
  std::vector<int64_t> indices_;
  bool clamp_;  // windows out of bounds are clamped and count as inside
  Shape batch_shape_, inner_shape_;
  int64_t vector_size_ = 0;
  Ints operand_strides_, batch_strides_, inner_operand_strides_, inner_window_strides_;
};

Arrays gather(const KernelArgs& args) {
  const Array& x = args.inputs[0];
  const ArrayType& type = args.output_types[0];
  Output out = allocate(type);
  if (type.size() == 0) return {out.array};
  int64_t bytes = storage_size(x.dtype());
  auto mode = mode_of(args.attrs);
  Windows windows(args.attrs.get<GatherDimensionNumbers>("dimension_numbers"), args.attrs.ints("slice_sizes"),
                  x.shape(), args.inputs[1], type.shape, mode != jax::lax::GatherScatterMode::fill_or_drop);
  StridedCopy copy(windows.inner_shape(), windows.inner_window_strides(), windows.inner_operand_strides(), bytes);
  StridedCopy fill(windows.inner_shape(), windows.inner_window_strides(), Ints(windows.inner_shape().size(), 0), bytes);
  Array fill_value;
  if (mode == jax::lax::GatherScatterMode::fill_or_drop) {
    fill_value = gather_fill_value(args.attrs["fill_value"], x.dtype());
  }
  const std::byte* source = x.raw_data();
  windows.for_each([&](int64_t operand_offset, int64_t window_offset, bool inside) {
    std::byte* target = out.data + window_offset * bytes;
    if (inside)
      copy.run(target, source + operand_offset * bytes);
    else
      fill.run(target, fill_value.raw_data());
  });
  return {out.array};
}

// ---- scatter -----------------------------------------------------------------------------------------------------

enum class Combine { replace, keep, add, sub, mul, min, max, bit_and, bit_or, bit_xor, region };

// Recognises a region that is one plain operation on its two inputs in order.
Combine recognise(const Attrs& attrs) {
  if (attrs["update_jaxpr"].is_none()) return Combine::replace;
  const Program& region = attrs.program("update_jaxpr");
  if (region.invars().size() != 2 || !region.constvars().empty()) return Combine::region;
  Atom first = region.invars()[0], second = region.invars()[1], result = region.outputs()[0];
  if (region.equations().empty()) {
    if (result == second) return Combine::replace;
    return result == first ? Combine::keep : Combine::region;
  }
  const Equation& equation = region.equations()[0];
  bool plain = region.equations().size() == 1 && equation.inputs.size() == 2 && equation.inputs[0] == first &&
               equation.inputs[1] == second && result == Atom(equation.outputs[0]) &&
               region.type(first).dtype == region.type(result).dtype;
  if (!plain) return Combine::region;
  static const std::pair<Primitive, Combine> rows[] = {
      {prim::add(), Combine::add},    {prim::sub(), Combine::sub},     {prim::mul(), Combine::mul},
      {prim::min(), Combine::min},    {prim::max(), Combine::max},     {prim::and_(), Combine::bit_and},
      {prim::or_(), Combine::bit_or}, {prim::xor_(), Combine::bit_xor}};
  for (const auto& [primitive, combine] : rows) {
    if (equation.primitive == primitive) return combine;
  }
  return Combine::region;
}

template <class C>
bool less(const C& a, const C& b) {
  if constexpr (is_complex_number<C>)
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else
    return a < b;
}
template <class C>
bool is_nan(const C& a) {
  return a != a;
}

template <class C>
C combined(Combine combine, C a, C b) {
  if (combine == Combine::min) return is_nan(a) || (!is_nan(b) && !less(b, a)) ? a : b;
  if (combine == Combine::max) return is_nan(a) || (!is_nan(b) && !less(a, b)) ? a : b;
  if constexpr (std::is_same_v<C, bool>) {
    switch (combine) {
      case Combine::bit_and:
      case Combine::mul:
        return a && b;
      case Combine::bit_xor:
      case Combine::sub:
        return a != b;
      default:
        return a || b;
    }
  } else if constexpr (std::is_integral_v<C>) {
    // In unsigned 64 bits: integers wrap.
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (combine) {
      case Combine::sub:
        return static_cast<C>(x - y);
      case Combine::mul:
        return static_cast<C>(x * y);
      case Combine::bit_and:
        return static_cast<C>(x & y);
      case Combine::bit_or:
        return static_cast<C>(x | y);
      case Combine::bit_xor:
        return static_cast<C>(x ^ y);
      default:
        return static_cast<C>(x + y);
    }
  } else {
    switch (combine) {
      case Combine::sub:
        return a - b;
      case Combine::mul:
        return a * b;
      default:
        return a + b;
    }
  }
}

// The offsets of all elements of a window in the operand and in the updates.
struct ElementOffsets {
  std::vector<int64_t> operand, updates;

  explicit ElementOffsets(const Windows& windows) {
    const Shape& shape = windows.inner_shape();
    if (element_count(shape) == 0) return;
    Ints index(shape.size(), 0);
    do {
      int64_t in_operand = 0, in_updates = 0;
      for (std::size_t i = 0; i < index.size(); ++i) {
        in_operand += index[i] * windows.inner_operand_strides()[i];
        in_updates += index[i] * windows.inner_window_strides()[i];
      }
      operand.push_back(in_operand);
      updates.push_back(in_updates);
    } while (next_index(index, shape));
  }
};

// Any region, one element of every operand at a time.
void apply_region(const KernelArgs& args, const Windows& windows, std::vector<Output>& outputs) {
  const Program& region = args.attrs.program("update_jaxpr");
  std::size_t count = outputs.size();
  ElementOffsets offsets(windows);
  auto scalar = [](const ArrayType& type, const std::byte* data) {
    ArrayType element = type.with_shape({});
    element.weak_type = false;
    Output out = allocate(element);
    std::memcpy(out.data, data, static_cast<std::size_t>(storage_size(type.dtype)));
    return out.array;
  };
  windows.for_each([&](int64_t operand_offset, int64_t window_offset, bool inside) {
    if (!inside) return;
    for (std::size_t e = 0; e < offsets.operand.size(); ++e) {
      Arrays operands(2 * count);
      for (std::size_t k = 0; k < count; ++k) {
        const ArrayType& type = args.output_types[k];
        int64_t bytes = storage_size(type.dtype);
        operands[k] = scalar(type, outputs[k].data + (operand_offset + offsets.operand[e]) * bytes);
        operands[count + k] =
            scalar(type, args.inputs[count + 1 + k].raw_data() + (window_offset + offsets.updates[e]) * bytes);
      }
      Arrays results = interpret(region, operands);
      for (std::size_t k = 0; k < count; ++k) {
        int64_t bytes = storage_size(args.output_types[k].dtype);
        std::memcpy(outputs[k].data + (operand_offset + offsets.operand[e]) * bytes, results[k].raw_data(),
                    static_cast<std::size_t>(bytes));
      }
    }
  });
}

Arrays scatter(const KernelArgs& args) {
  std::size_t count = args.inputs.size() / 2;
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(copied(args.inputs[i], args.output_types[i]));
  Arrays results;
  for (const Output& output : outputs) results.push_back(output.array);

  const Array &x = args.inputs[0], &updates = args.inputs[count + 1];
  const auto& scatter_dims = args.attrs.get<ScatterDimensionNumbers>("dimension_numbers");
  GatherDimensionNumbers dims = inverse_of(scatter_dims);
  Ints sizes = window_sizes(scatter_dims, x.ndim(), updates.shape());
  Windows windows(dims, sizes, x.shape(), args.inputs[count], updates.shape(),
                  mode_of(args.attrs) == jax::lax::GatherScatterMode::clip);
  if (updates.size() == 0) return results;

  DType dtype = x.dtype();
  int64_t bytes = storage_size(dtype);
  const std::byte* source = updates.raw_data();
  std::byte* target = outputs[0].data;
  Combine combine = recognise(args.attrs);
  if (combine == Combine::region) {
    apply_region(args, windows, outputs);
  } else if (combine == Combine::replace) {
    StridedCopy copy(windows.inner_shape(), windows.inner_operand_strides(), windows.inner_window_strides(), bytes);
    windows.for_each([&](int64_t operand_offset, int64_t window_offset, bool inside) {
      if (inside) copy.run(target + operand_offset * bytes, source + window_offset * bytes);
    });
  } else if (combine != Combine::keep) {
    ElementOffsets offsets(windows);
    visit_compute(dtype, [&](auto type) {
      using C = typename decltype(type)::type;
      windows.for_each([&](int64_t operand_offset, int64_t window_offset, bool inside) {
        if (!inside) return;
        // Each step is rounded to the array's dtype, so repeated indices accumulate as in a loop.
        for (std::size_t e = 0; e < offsets.operand.size(); ++e) {
          int64_t to = operand_offset + offsets.operand[e];
          C update = load_as<C>(dtype, source, window_offset + offsets.updates[e]);
          store_as<C>(dtype, target, to, combined(combine, load_as<C>(dtype, target, to), update));
        }
      });
    });
  }
  return results;
}

}  // namespace

KernelList index_kernels() {
  return {{"slice", slice},
          {"dynamic_slice", dynamic_slice},
          {"dynamic_update_slice", dynamic_update_slice},
          {"gather", gather},
          {"scatter", scatter},
          {"scatter-add", scatter},
          {"scatter-sub", scatter},
          {"scatter-mul", scatter},
          {"scatter-min", scatter},
          {"scatter-max", scatter}};
}

}  // namespace capibara::reference
