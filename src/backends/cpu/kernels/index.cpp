// gather and scatter: windows of an array read or written at places that an array of indices names.
//
// Updates meet an element in the order of the index vectors: threads divide the windows' elements, or the index vectors
// where these are known to be distinct.
#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <optional>

#include "array/element.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/reference/kernels.h"
#include "primitives/shape.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using Mode = jax::lax::GatherScatterMode;

// The windows of one gather or scatter. "Operand" is the large array, "windows" the gather's output or scatter's updates.
struct WindowPlan {
  DType index_dtype;
  int64_t vector_size = 0;
  bool clamp = false;  // windows out of bounds are moved inside
  struct Coordinate {
    int64_t greatest, stride;
  };
  std::vector<Coordinate> coordinates;
  Axis batch_in_windows, batch_in_operand;  // by index vector
  // A window: outer rows, each a run of elements with one step in the operand and one in the windows.
  Axis rows_in_operand, rows_in_windows;
  int64_t run = 1, operand_step = 1, window_step = 1;
  bool empty_windows = false;

  WindowPlan(const GatherDimensionNumbers& dims, const Ints& sizes, const Shape& operand, const ArrayType& indices, const Shape& windows, bool clamp_inside)
      : index_dtype(indices.dtype), vector_size(indices.shape.back()), clamp(clamp_inside) {
    Ints operand_strides = reference::row_major_strides(operand), window_strides = reference::row_major_strides(windows);
    for (int64_t dim : dims.start_index_map) coordinates.push_back({at(operand, dim) - at(sizes, dim), at(operand_strides, dim)});
    Shape batch(indices.shape.begin(), indices.shape.end() - 1);
    Ints in_windows, in_operand(batch.size(), 0);
    for (int64_t dim : other_dims(static_cast<int64_t>(windows.size()), dims.offset_dims)) in_windows.push_back(at(window_strides, dim));
    for (std::size_t k = 0; k < dims.operand_batching_dims.size(); ++k) {
      in_operand[static_cast<std::size_t>(dims.start_indices_batching_dims[k])] += at(operand_strides, dims.operand_batching_dims[k]);
    }
    batch_in_windows = Axis(batch, in_windows);
    batch_in_operand = Axis(batch, in_operand);
    // The window's own dimensions; those that continue each other in both arrays are merged.
    Ints shape, operand_steps, window_steps;
    std::size_t next = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(operand.size()); ++i) {
      if (contains(dims.collapsed_slice_dims, i) || contains(dims.operand_batching_dims, i)) continue;
      int64_t dim = dims.offset_dims[next++], size = at(windows, dim);
      empty_windows = empty_windows || size == 0;
      if (size == 1) continue;
      if (!shape.empty() && operand_steps.back() == at(operand_strides, i) * size && window_steps.back() == at(window_strides, dim) * size) {
        shape.back() *= size;
        operand_steps.back() = at(operand_strides, i);
        window_steps.back() = at(window_strides, dim);
      } else {
        shape.push_back(size);
        operand_steps.push_back(at(operand_strides, i));
        window_steps.push_back(at(window_strides, dim));
      }
    }
    if (!shape.empty()) {
      run = shape.back();
      operand_step = operand_steps.back();
      window_step = window_steps.back();
      for (Ints* list : {&shape, &operand_steps, &window_steps}) list->pop_back();
    }
    rows_in_operand = Axis(shape, operand_steps);
    rows_in_windows = Axis(shape, window_steps);
  }

  int64_t count() const { return empty_windows ? 0 : batch_in_windows.extent(); }
  int64_t rows() const { return rows_in_operand.extent(); }

  // Where the window of an index vector begins in the operand; nothing where it is out of bounds.
  std::optional<int64_t> place(const std::byte* indices, int64_t b) const {
    int64_t offset = batch_in_operand.at(b);
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      const Coordinate& coordinate = coordinates[k];
      int64_t start = index_at(indices, b * vector_size + static_cast<int64_t>(k));
      if ((start < 0 || start > coordinate.greatest) && !clamp) return std::nullopt;
      offset += std::max<int64_t>(0, std::min(start, coordinate.greatest)) * coordinate.stride;
    }
    return offset;
  }

 private:
  int64_t index_at(const std::byte* indices, int64_t i) const {
    if (index_dtype == DType::int32) return reinterpret_cast<const int32_t*>(indices)[i];
    if (index_dtype == DType::int64) return reinterpret_cast<const int64_t*>(indices)[i];
    int64_t value = element_as_int64(index_dtype, indices, i);
    return is_unsigned(index_dtype) && value < 0 ? INT64_MAX : value;  // beyond the range: the greatest
  }
};

struct Sixteen {
  uint64_t parts[2];
};

// Calls f(Type<T>{}) with a type of as many bytes.
template <class F>
void visit_bytes(int64_t size, F&& f) {
  switch (size) {
    case 1: return f(Type<uint8_t>{});
    case 2: return f(Type<uint16_t>{});
    case 4: return f(Type<uint32_t>{});
    case 8: return f(Type<uint64_t>{});
    default: return f(Type<Sixteen>{});
  }
}

template <class T>
void copy_run(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t count) {
  if (to_step == 1 && from_step == 1) {
    if (count == 1) *to = *from;
    else std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  }
}

HostKernel make_gather(const KernelRequest& request) {
  const ArrayType &x = request.inputs[0], &out = request.outputs[0];
  Mode mode = mode_of(request.attrs);
  auto plan = std::make_shared<WindowPlan>(request.attrs.get<GatherDimensionNumbers>("dimension_numbers"), request.attrs.ints("slice_sizes"), x.shape,
                                           request.inputs[1], out.shape, mode != Mode::fill_or_drop);
  const int64_t size = storage_size(x.dtype), elements = out.size();
  Array fill;
  if (mode == Mode::fill_or_drop && !is_key(x.dtype)) fill = gather_fill_value(request.attrs["fill_value"], x.dtype);
  if (mode == Mode::fill_or_drop && !fill.defined()) return {};
  return [plan, size, elements, fill](std::byte* const* buffers) {
    if (elements == 0) return;
    const double cost = 4 + static_cast<double>(plan->rows()) * (2 + 0.1 * static_cast<double>(plan->run * size));
    visit_bytes(size, [&]<class T>(Type<T>) {
      const T* source = reinterpret_cast<const T*>(buffers[0]);
      T* target = reinterpret_cast<T*>(buffers[2]);
      T fill_value{};
      if (fill.defined()) std::memcpy(&fill_value, fill.raw_data(), sizeof(T));
      parallel_for_cost(plan->count(), cost, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const std::optional<int64_t> place = plan->place(buffers[1], b);
          T* window = target + plan->batch_in_windows.at(b);
          for (int64_t r = 0; r < plan->rows(); ++r) {
            T* to = window + plan->rows_in_windows.at(r);
            if (place) {
              copy_run(to, plan->window_step, source + *place + plan->rows_in_operand.at(r), plan->operand_step, plan->run);
            } else {
              for (int64_t i = 0; i < plan->run; ++i) to[i * plan->window_step] = fill_value;
            }
          }
        }
        return 0;
      });
    });
  };
}

// ---- scatter -----------------------------------------------------------------------------------------------------

enum class Combine { replace, add, sub, mul, min, max, bit_and, bit_or, bit_xor };

// What the region does, where it is one plain operation on its two inputs in order.
std::optional<Combine> recognise(const Attrs& attrs) {
  if (attrs["update_jaxpr"].is_none()) return Combine::replace;
  const Program& region = attrs.program("update_jaxpr");
  if (region.invars().size() != 2 || !region.constvars().empty()) return std::nullopt;
  Atom first = region.invars()[0], second = region.invars()[1], result = region.outputs()[0];
  if (region.equations().empty()) return result == second ? std::optional(Combine::replace) : std::nullopt;
  const Equation& equation = region.equations()[0];
  bool plain = region.equations().size() == 1 && equation.inputs.size() == 2 && equation.inputs[0] == first && equation.inputs[1] == second &&
               result == Atom(equation.outputs[0]) && region.type(first).dtype == region.type(result).dtype;
  if (!plain) return std::nullopt;
  static constexpr std::pair<std::string_view, Combine> names[] = {{"add", Combine::add}, {"sub", Combine::sub}, {"mul", Combine::mul},
                                                                   {"min", Combine::min}, {"max", Combine::max}, {"and", Combine::bit_and},
                                                                   {"or", Combine::bit_or}, {"xor", Combine::bit_xor}};
  for (const auto& [name, combine] : names) {
    if (equation.primitive.is(name)) return combine;
  }
  return std::nullopt;
}

template <class C>
inline constexpr bool is_complex_number = std::is_same_v<C, std::complex<float>> || std::is_same_v<C, std::complex<double>>;

template <class C>
bool less(const C& a, const C& b) {
  if constexpr (is_complex_number<C>) return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  else return a < b;
}

template <Combine O, class C>
C combined(C a, C b) {
  if constexpr (O == Combine::min) return a != a || (b == b && !less(b, a)) ? a : b;
  else if constexpr (O == Combine::max) return a != a || (b == b && !less(a, b)) ? a : b;
  else if constexpr (std::is_same_v<C, bool>) {
    if constexpr (O == Combine::bit_and || O == Combine::mul) return a && b;
    else if constexpr (O == Combine::bit_xor || O == Combine::sub) return a != b;
    else return a || b;
  } else if constexpr (std::is_integral_v<C>) {
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);  // integers wrap
    if constexpr (O == Combine::sub) return static_cast<C>(x - y);
    else if constexpr (O == Combine::mul) return static_cast<C>(x * y);
    else if constexpr (O == Combine::bit_and) return static_cast<C>(x & y);
    else if constexpr (O == Combine::bit_or) return static_cast<C>(x | y);
    else if constexpr (O == Combine::bit_xor) return static_cast<C>(x ^ y);
    else return static_cast<C>(x + y);
  } else {
    if constexpr (O == Combine::sub) return a - b;
    else if constexpr (O == Combine::mul) return a * b;
    else return a + b;
  }
}

template <Combine O>
struct CombineTag {};
template <class F>
void visit_combine(Combine combine, F&& f) {
  switch (combine) {
    case Combine::add: return f(CombineTag<Combine::add>{});
    case Combine::sub: return f(CombineTag<Combine::sub>{});
    case Combine::mul: return f(CombineTag<Combine::mul>{});
    case Combine::min: return f(CombineTag<Combine::min>{});
    case Combine::max: return f(CombineTag<Combine::max>{});
    case Combine::bit_and: return f(CombineTag<Combine::bit_and>{});
    case Combine::bit_or: return f(CombineTag<Combine::bit_or>{});
    case Combine::bit_xor: return f(CombineTag<Combine::bit_xor>{});
    default: return;
  }
}

// Calls row(operand position, windows position, count) for every piece of every window; pieces of one element of the operand
// come in the order of the index vectors.
template <class Row>
void for_each_update(const WindowPlan& plan, const std::byte* indices, bool distinct, Row&& row) {
  auto windows = [&](int64_t begin, int64_t end, int64_t first, int64_t count) {
    for (int64_t b = begin; b < end; ++b) {
      const std::optional<int64_t> place = plan.place(indices, b);
      if (!place) continue;
      const int64_t window = plan.batch_in_windows.at(b);
      for (int64_t r = 0; r < plan.rows(); ++r) {
        row(*place + plan.rows_in_operand.at(r) + first * plan.operand_step, window + plan.rows_in_windows.at(r) + first * plan.window_step, count);
      }
    }
  };
  const double one = 4 + static_cast<double>(plan.rows()) * (2 + static_cast<double>(plan.run));
  if (distinct) {
    parallel_for_cost(plan.count(), one, [&](int64_t begin, int64_t end) {
      windows(begin, end, 0, plan.run);
      return 0;
    });
    return;
  }
  constexpr int64_t piece = 64;  // elements of a run
  const int64_t pieces = (plan.run + piece - 1) / piece;
  if (pieces < 2) return windows(0, plan.count(), 0, plan.run);
  parallel_for_cost(pieces, one * static_cast<double>(plan.count()) / static_cast<double>(pieces), [&](int64_t begin, int64_t end) {
    windows(0, plan.count(), begin * piece, std::min(end * piece, plan.run) - begin * piece);
    return 0;
  });
}

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (to == from || bytes == 0) return;
  constexpr int64_t chunk = 1 << 18;
  parallel_for_cost((bytes + chunk - 1) / chunk, static_cast<double>(chunk) / 20, [&](int64_t begin, int64_t end) {
    int64_t first = begin * chunk;
    std::memcpy(to + first, from + first, static_cast<std::size_t>(std::min(end * chunk, bytes) - first));
    return 0;
  });
}

HostKernel make_scatter(const KernelRequest& request) {
  if (request.inputs.size() != 3) return {};
  std::optional<Combine> combine = recognise(request.attrs);
  if (!combine) return {};
  const ArrayType &x = request.inputs[0], &updates = request.inputs[2];
  const auto& scatter_dims = request.attrs.get<ScatterDimensionNumbers>("dimension_numbers");
  auto plan = std::make_shared<WindowPlan>(inverse_of(scatter_dims), window_sizes(scatter_dims, x.rank(), updates.shape), x.shape, request.inputs[1],
                                           updates.shape, mode_of(request.attrs) == Mode::clip);
  const bool distinct = request.attrs.boolean("unique_indices") && !plan->clamp;  // clamped ones may meet
  const DType dtype = x.dtype;
  const int64_t size = storage_size(dtype), bytes = x.size() * size;
  const bool nothing = updates.size() == 0;
  if (*combine == Combine::replace) {
    return [=](std::byte* const* buffers) {
      copy_bytes(buffers[3], buffers[0], bytes);
      if (nothing) return;
      visit_bytes(size, [&]<class T>(Type<T>) {
        T* target = reinterpret_cast<T*>(buffers[3]);
        const T* source = reinterpret_cast<const T*>(buffers[2]);
        for_each_update(*plan, buffers[1], distinct, [&](int64_t to, int64_t from, int64_t count) {
          copy_run(target + to, plan->operand_step, source + from, plan->window_step, count);
        });
      });
    };
  }
  if (is_key(dtype)) return {};
  HostKernel kernel;
  visit_combine(*combine, [&]<Combine O>(CombineTag<O>) {
    visit_compute(dtype, [&]<class C>(Type<C>) {
      kernel = [=](std::byte* const* buffers) {
        copy_bytes(buffers[3], buffers[0], bytes);
        if (nothing) return;
        for_each_update(*plan, buffers[1], distinct, [&](int64_t to, int64_t from, int64_t count) {
          if (stored_as<C>(dtype)) {
            C* target = reinterpret_cast<C*>(buffers[3]) + to;
            const C* source = reinterpret_cast<const C*>(buffers[2]) + from;
            if (plan->operand_step == 1 && plan->window_step == 1) {
              for (int64_t i = 0; i < count; ++i) target[i] = combined<O>(target[i], source[i]);
            } else {
              for (int64_t i = 0; i < count; ++i) {
                C& place = target[i * plan->operand_step];
                place = combined<O>(place, source[i * plan->window_step]);
              }
            }
            return;
          }
          // Each step is rounded to the array's dtype, so that repeated indices add up as in a loop.
          for (int64_t i = 0; i < count; ++i) {
            const int64_t place = to + i * plan->operand_step;
            store_as<C>(dtype, buffers[3], place, combined<O>(load_as<C>(dtype, buffers[3], place), load_as<C>(dtype, buffers[2], from + i * plan->window_step)));
          }
        });
      };
    });
  });
  return kernel;
}

}  // namespace

KernelMakers index_makers() {
  return {{"gather", make_gather},          {"scatter", make_scatter},        {"scatter-add", make_scatter}, {"scatter-sub", make_scatter},
          {"scatter-mul", make_scatter},    {"scatter-min", make_scatter},    {"scatter-max", make_scatter}};
}

}  // namespace capibara::cpu
