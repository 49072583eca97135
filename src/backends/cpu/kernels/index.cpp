// gather and scatter: windows of an array read or written at places that an array of indices names.
//
// Updates meet an element in the order of the index vectors, however many threads there are.
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

// Where [first, first + count) of an axis begin.
void positions(const Axis& axis, int64_t first, int64_t count, int64_t* out) {
  if (axis.is_regular()) {
    int64_t at = axis.at(first);
    for (int64_t i = 0, stride = axis.stride(); i < count; ++i, at += stride) out[i] = at;
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = axis.at(first + i);
  }
}

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
  bool disjoint = true;  // windows that begin at different places share no element

  WindowPlan(const GatherDimensionNumbers& dims, const Ints& sizes, const Shape& operand, const ArrayType& indices, const Shape& windows, bool clamp_inside)
      : index_dtype(indices.dtype), vector_size(indices.shape.back()), clamp(clamp_inside) {
    Ints operand_strides = reference::row_major_strides(operand), window_strides = reference::row_major_strides(windows);
    for (int64_t dim : dims.start_index_map) {
      coordinates.push_back({at(operand, dim) - at(sizes, dim), at(operand_strides, dim)});
      disjoint = disjoint && at(sizes, dim) == 1;
    }
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

  // Where the windows of index vectors [first, first + count) begin in the operand; -1 where they are out of bounds.
  void places(const std::byte* indices, int64_t first, int64_t count, int64_t* out) const {
    positions(batch_in_operand, first, count, out);
    const int64_t skipped = first * vector_size;
    if (index_dtype == DType::int32) {
      add_coordinates(count, out, [from = reinterpret_cast<const int32_t*>(indices) + skipped](int64_t i) { return int64_t{from[i]}; });
    } else if (index_dtype == DType::int64) {
      add_coordinates(count, out, [from = reinterpret_cast<const int64_t*>(indices) + skipped](int64_t i) { return from[i]; });
    } else {
      add_coordinates(count, out, [this, indices, skipped](int64_t i) {
        const int64_t value = element_as_int64(index_dtype, indices, skipped + i);
        return is_unsigned(index_dtype) && value < 0 ? INT64_MAX : value;  // beyond the range: the greatest
      });
    }
  }

 private:
  template <class Index>
  void add_coordinates(int64_t count, int64_t* out, Index&& index) const {
    for (std::size_t k = 0; k < coordinates.size(); ++k) {
      const auto [greatest, stride] = coordinates[k];
      const int64_t step = vector_size, at = static_cast<int64_t>(k);
      if (clamp) {
        for (int64_t i = 0; i < count; ++i) out[i] += std::max<int64_t>(0, std::min(index(i * step + at), greatest)) * stride;
      } else {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t start = index(i * step + at);
          const uint64_t distance = static_cast<uint64_t>(start) * static_cast<uint64_t>(stride);  // may wrap where it is not used
          out[i] = out[i] < 0 || start < 0 || start > greatest ? -1 : out[i] + static_cast<int64_t>(distance);
        }
      }
    }
  }
};

constexpr int64_t chunk = 512;  // index vectors that are read together

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

// Reads the windows of index vectors [first, first + count), which begin at `places`.
template <class T>
void gather_windows(const WindowPlan& plan, int64_t first, int64_t count, const int64_t* places, const T* source, T* target, const T& fill_value) {
  const Axis& batch = plan.batch_in_windows;
  if (plan.rows() == 1 && plan.run == 1) {
    if (batch.is_regular()) {
      T* to = target + batch.at(first);
      for (int64_t i = 0, step = batch.stride(); i < count; ++i) to[i * step] = places[i] < 0 ? fill_value : source[places[i]];
    } else {
      for (int64_t i = 0; i < count; ++i) target[batch.at(first + i)] = places[i] < 0 ? fill_value : source[places[i]];
    }
    return;
  }
  for (int64_t b = 0; b < count; ++b) {
    T* window = target + batch.at(first + b);
    for (int64_t r = 0; r < plan.rows(); ++r) {
      T* to = window + plan.rows_in_windows.at(r);
      if (places[b] >= 0) {
        copy_run(to, plan.window_step, source + places[b] + plan.rows_in_operand.at(r), plan.operand_step, plan.run);
      } else {
        for (int64_t i = 0; i < plan.run; ++i) to[i * plan.window_step] = fill_value;
      }
    }
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
    const double cost = 1.5 + static_cast<double>(plan->rows()) * (0.5 + 0.1 * static_cast<double>(plan->run * size));
    visit_bytes(size, [&]<class T>(Type<T>) {
      const T* source = reinterpret_cast<const T*>(buffers[0]);
      T* target = reinterpret_cast<T*>(buffers[2]);
      T fill_value{};
      if (fill.defined()) std::memcpy(&fill_value, fill.raw_data(), sizeof(T));
      parallel_for_cost(plan->count(), cost, [&](int64_t begin, int64_t end) {
        int64_t places[chunk];
        for (int64_t first = begin; first < end; first += chunk) {
          const int64_t count = std::min(chunk, end - first);
          plan->places(buffers[1], first, count, places);
          gather_windows(*plan, first, count, places, source, target, fill_value);
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
  if constexpr ((O == Combine::min || O == Combine::max) && std::is_floating_point_v<C>) {
    const bool second = (a == a) & !(O == Combine::min ? a <= b : a >= b);  // NaN wins
    return second ? b : a;
  } else if constexpr (O == Combine::min) return a != a || (b == b && !less(b, a)) ? a : b;
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

// Some windows that are inside the operand, in the order of their index vectors: where each begins there and in the updates,
// and which elements of its runs are meant.
struct Updates {
  int64_t count = 0, first = 0, run = 1;
  int64_t operand[chunk], windows[chunk];
};

// Calls apply(updates) until it has seen every element of every window; those that meet one element of the operand come in
// the order of the index vectors. Threads divide the index vectors, the windows' elements, or the operand.
void for_each_update(const WindowPlan& plan, const std::byte* indices, bool distinct, int64_t operand_size, FunctionRef<void(const Updates&)> apply) {
  // Windows [begin, end) that begin in [least, limit), and elements [first, first + run) of their runs.
  auto windows = [&](int64_t begin, int64_t end, int64_t least, int64_t limit, int64_t first, int64_t run) {
    int64_t places[chunk], in_windows[chunk];
    Updates updates;
    updates.first = first;
    updates.run = run;
    for (; begin < end; begin += chunk) {
      const int64_t count = std::min(chunk, end - begin);
      plan.places(indices, begin, count, places);
      positions(plan.batch_in_windows, begin, count, in_windows);
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) {
        updates.operand[kept] = places[i];
        updates.windows[kept] = in_windows[i];
        kept += places[i] >= least && places[i] < limit;
      }
      updates.count = kept;
      if (kept > 0) apply(updates);
    }
  };
  const int64_t count = plan.count(), window = plan.rows() * plan.run;
  const double one = 2 + static_cast<double>(window);
  if (distinct) {
    parallel_for_cost(count, one, [&](int64_t begin, int64_t end) {
      windows(begin, end, 0, operand_size, 0, plan.run);
      return 0;
    });
    return;
  }
  constexpr int64_t piece = 64;  // elements of a run
  const int64_t pieces = (plan.run + piece - 1) / piece;
  if (pieces >= 2) {
    parallel_for_cost(pieces, one * static_cast<double>(count) / static_cast<double>(pieces), [&](int64_t begin, int64_t end) {
      windows(0, count, 0, operand_size, begin * piece, std::min(end * piece, plan.run) - begin * piece);
      return 0;
    });
    return;
  }
  const int64_t parts = plan.disjoint && window >= 8 ? thread_count() : 1;
  parallel_for_cost(parts, one * static_cast<double>(count) / static_cast<double>(parts), [&](int64_t begin, int64_t end) {
    windows(0, count, operand_size * begin / parts, operand_size * end / parts, 0, plan.run);
    return 0;
  });
}

// Calls row(operand position, updates position, count) for every run.
template <class Row>
void for_each_run(const WindowPlan& plan, const Updates& updates, Row&& row) {
  if (plan.rows() == 1) {
    const int64_t operand = updates.first * plan.operand_step, window = updates.first * plan.window_step;
    for (int64_t i = 0; i < updates.count; ++i) row(updates.operand[i] + operand, updates.windows[i] + window, updates.run);
    return;
  }
  for (int64_t i = 0; i < updates.count; ++i) {
    for (int64_t r = 0; r < plan.rows(); ++r) {
      row(updates.operand[i] + plan.rows_in_operand.at(r) + updates.first * plan.operand_step,
          updates.windows[i] + plan.rows_in_windows.at(r) + updates.first * plan.window_step, updates.run);
    }
  }
}

// operand = operand op updates, each step rounded to the array's dtype, so that repeated indices add up as in a loop.
template <Combine O, class C>
void combine_updates(const WindowPlan& plan, DType dtype, std::byte* operand, const std::byte* source, const Updates& updates) {
  const bool single = plan.rows() == 1 && plan.run == 1, neighbours = plan.operand_step == 1 && plan.window_step == 1;
  if (stored_as<C>(dtype)) {
    C* target = reinterpret_cast<C*>(operand);
    const C* __restrict from = reinterpret_cast<const C*>(source);
    if (single) {
      for (int64_t i = 0; i < updates.count; ++i) target[updates.operand[i]] = combined<O>(target[updates.operand[i]], from[updates.windows[i]]);
    } else if (neighbours) {
      for_each_run(plan, updates, [&](int64_t to, int64_t at, int64_t count) {
        C* __restrict place = target + to;
        for (int64_t i = 0; i < count; ++i) place[i] = combined<O>(place[i], from[at + i]);
      });
    } else {
      for_each_run(plan, updates, [&](int64_t to, int64_t at, int64_t count) {
        for (int64_t i = 0; i < count; ++i) target[to + i * plan.operand_step] = combined<O>(target[to + i * plan.operand_step], from[at + i * plan.window_step]);
      });
    }
    return;
  }
  const int64_t size = storage_size(dtype);
  constexpr int64_t some = 64;
  for_each_run(plan, updates, [&](int64_t to, int64_t at, int64_t count) {
    if (neighbours && count > 1) {
      C held[some], added[some];
      for (int64_t i = 0; i < count; i += some) {
        const int64_t now = std::min(some, count - i);
        load_range<C>(dtype, operand + (to + i) * size, now, held);
        load_range<C>(dtype, source + (at + i) * size, now, added);
        for (int64_t k = 0; k < now; ++k) held[k] = combined<O>(held[k], added[k]);
        store_range<C>(dtype, operand + (to + i) * size, now, held);
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = to + i * plan.operand_step;
      store_as<C>(dtype, operand, place, combined<O>(load_as<C>(dtype, operand, place), load_as<C>(dtype, source, at + i * plan.window_step)));
    }
  });
}

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (to == from || bytes == 0) return;
  constexpr int64_t part = 1 << 18;
  parallel_for_cost((bytes + part - 1) / part, static_cast<double>(part) / 20, [&](int64_t begin, int64_t end) {
    int64_t first = begin * part;
    std::memcpy(to + first, from + first, static_cast<std::size_t>(std::min(end * part, bytes) - first));
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
  const int64_t size = storage_size(dtype), elements = x.size(), bytes = elements * size;
  const bool nothing = updates.size() == 0;
  if (*combine == Combine::replace) {
    return [=](std::byte* const* buffers) {
      copy_bytes(buffers[3], buffers[0], bytes);
      if (nothing) return;
      visit_bytes(size, [&]<class T>(Type<T>) {
        T* target = reinterpret_cast<T*>(buffers[3]);
        const T* source = reinterpret_cast<const T*>(buffers[2]);
        for_each_update(*plan, buffers[1], distinct, elements, [&](const Updates& updates) {
          for_each_run(*plan, updates, [&](int64_t to, int64_t from, int64_t count) {
            copy_run(target + to, plan->operand_step, source + from, plan->window_step, count);
          });
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
        for_each_update(*plan, buffers[1], distinct, elements, [&](const Updates& updates) {
          combine_updates<O, C>(*plan, dtype, buffers[3], buffers[2], updates);
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
