// scatter and its combining kinds: windows of updates written into an array at positions given by an array of indices.
//
// Updates are applied to an element in the order of the index vectors, however many threads there are. Only if there
// are many more updates to add than elements are they split into parts, by the shapes alone: the sums of the parts are
// added in order.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/index/scatter_runs.h"
#include "backends/cpu/kernels/without_sign.h"
#include "core/runtime/thread_pool.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

using namespace scatters;
using Mode = jax::lax::GatherScatterMode;

// The region's operation, if it is one plain operation on its two inputs in order.
std::optional<Combine> recognise(const Attrs& attrs) {
  if (attrs["update_jaxpr"].is_none()) return Combine::replace;
  const Program& region = attrs.program("update_jaxpr");
  if (region.invars().size() != 2 || !region.constvars().empty()) return std::nullopt;
  Atom first = region.invars()[0], second = region.invars()[1], result = region.outputs()[0];
  if (region.equations().empty()) return result == second ? std::optional(Combine::replace) : std::nullopt;
  const Equation& equation = region.equations()[0];
  bool plain = region.equations().size() == 1 && equation.inputs.size() == 2 && equation.inputs[0] == first &&
               equation.inputs[1] == second && result == Atom(equation.outputs[0]) &&
               region.type(first).dtype == region.type(result).dtype;
  if (!plain) return std::nullopt;
  static const std::pair<Primitive, Combine> rows[] = {
      {prim::add(), Combine::add},    {prim::sub(), Combine::sub},     {prim::mul(), Combine::mul},
      {prim::min(), Combine::min},    {prim::max(), Combine::max},     {prim::and_(), Combine::bit_and},
      {prim::or_(), Combine::bit_or}, {prim::xor_(), Combine::bit_xor}};
  for (const auto& [primitive, combine] : rows) {
    if (equation.primitive == primitive) return combine;
  }
  return std::nullopt;
}

// Some windows inside the operand, in the order of their index vectors: their offsets in the operand and in the
// updates, and a range of elements of each run.
struct Updates {
  int64_t count = 0, first = 0, run = 1;
  int64_t operand[chunk], windows[chunk];
};

// Calls apply(updates) until all elements of all windows are covered; those for the same operand element come
// in the order of the index vectors. Threads split the index vectors, the windows' elements, or the operand.
void for_each_update(const WindowPlan& plan, const std::byte* indices, bool distinct, int64_t operand_size,
                     FunctionRef<void(const Updates&)> apply) {
  // Windows [begin, end) with offsets in [least, limit), and elements [first, first + run) of their runs.
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
    parallel_for_cost(
        pieces, one * static_cast<double>(count) / static_cast<double>(pieces), [&](int64_t begin, int64_t end) {
          windows(0, count, 0, operand_size, begin * piece, std::min(end * piece, plan.run) - begin * piece);
          return 0;
        });
    return;
  }
  const int64_t parts = plan.disjoint && window >= 8 ? thread_count() : 1;
  parallel_for_cost(parts, one * static_cast<double>(count) / static_cast<double>(parts),
                    [&](int64_t begin, int64_t end) {
                      windows(0, count, operand_size * begin / parts, operand_size * end / parts, 0, plan.run);
                      return 0;
                    });
}

// Calls row(operand position, updates position, count) for every run.
template <class Row>
void for_each_run(const WindowPlan& plan, const Updates& updates, Row&& row) {
  if (plan.rows() == 1) {
    const int64_t operand = updates.first * plan.operand_step, window = updates.first * plan.window_step;
    for (int64_t i = 0; i < updates.count; ++i)
      row(updates.operand[i] + operand, updates.windows[i] + window, updates.run);
    return;
  }
  for (int64_t i = 0; i < updates.count; ++i) {
    for (int64_t r = 0; r < plan.rows(); ++r) {
      row(updates.operand[i] + plan.rows_in_operand.at(r) + updates.first * plan.operand_step,
          updates.windows[i] + plan.rows_in_windows.at(r) + updates.first * plan.window_step, updates.run);
    }
  }
}

// operand = operand op updates, each step rounded to the array's dtype, so that repeated indices accumulate in order.
void combine_updates(const AnyLoops& loops, const WindowPlan& plan, DType dtype, bool stored, std::byte* operand,
                     const std::byte* source, const Updates& updates) {
  const int64_t size = storage_size(dtype);
  if (stored && plan.rows() == 1 && plan.run == 1) {
    loops.elements(operand, updates.operand, source, updates.windows, updates.count);
    return;
  }
  constexpr int64_t several = 64;
  alignas(16) std::byte held[16 * several], added[16 * several];
  const int64_t some = plan.operand_step == 1 && plan.window_step == 1 ? several : 1;
  for_each_run(plan, updates, [&](int64_t to, int64_t at, int64_t count) {
    if (stored) return loops.run(operand + to * size, plan.operand_step, source + at * size, plan.window_step, count);
    for (int64_t i = 0; i < count; i += some) {
      const int64_t now = std::min(some, count - i);
      std::byte* place = operand + (to + i * plan.operand_step) * size;
      loops.load(dtype, place, now, held);
      loops.load(dtype, source + (at + i * plan.window_step) * size, now, added);
      loops.run(held, 1, added, 1, now);
      loops.store(dtype, place, now, held);
    }
  });
}

// ---- operations and types -----------------------------------------------------------------------------------------

// The loops of an operation on arrays of a dtype.
struct Loops {
  AnyLoops any;
  bool stored = false;  // the arrays' elements have the compute type
  std::optional<RunLoops> runs;
};

// For booleans, arithmetic becomes logic.
Combine logical(Combine combine) {
  switch (combine) {
    case Combine::add:
    case Combine::max:
      return Combine::bit_or;
    case Combine::mul:
    case Combine::min:
      return Combine::bit_and;
    case Combine::sub:
      return Combine::bit_xor;
    default:
      return combine;
  }
}

template <Combine O, class C>
Loops loops_for(DType dtype) {
  constexpr bool is_bitwise = O == Combine::bit_and || O == Combine::bit_or || O == Combine::bit_xor;
  constexpr bool is_extreme = O == Combine::min || O == Combine::max;
  if constexpr (std::is_same_v<C, bool> ? is_bitwise : std::is_integral_v<C> || !is_bitwise) {
    using Own = std::conditional_t<is_extreme, C, WithoutSign<C>>;
    Loops loops{any_loops<O, Own>(), stored_as<C>(dtype), std::nullopt};
    if (loops.stored) loops.runs = run_loops<O, Own>();
    if constexpr (std::is_same_v<C, float>) {
      if (dtype == DType::bfloat16) loops.runs = run_loops<O, BFloat16>();
      if (dtype == DType::float16) loops.runs = run_loops<O, Half>();
    }
    return loops;
  } else {
    throw_no_elements("scatter", dtype);
  }
}

Loops loops_for(Combine combine, DType dtype) {
  if (stored_as<bool>(dtype)) combine = logical(combine);
  return visit_compute(dtype, [&]<class C>(Type<C>) -> Loops {
    switch (combine) {
      case Combine::add:
        return loops_for<Combine::add, C>(dtype);
      case Combine::sub:
        return loops_for<Combine::sub, C>(dtype);
      case Combine::mul:
        return loops_for<Combine::mul, C>(dtype);
      case Combine::min:
        return loops_for<Combine::min, C>(dtype);
      case Combine::max:
        return loops_for<Combine::max, C>(dtype);
      case Combine::bit_and:
        return loops_for<Combine::bit_and, C>(dtype);
      case Combine::bit_or:
        return loops_for<Combine::bit_or, C>(dtype);
      default:
        return loops_for<Combine::bit_xor, C>(dtype);
    }
  });
}

RunLoops replacing_loops(int64_t size) {
  RunLoops loops{};
  visit_bytes(size, [&]<class T>(Type<T>) { loops = run_loops<Combine::replace, T>(); });
  return loops;
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
  auto plan =
      std::make_shared<WindowPlan>(inverse_of(scatter_dims), window_sizes(scatter_dims, x.rank(), updates.shape),
                                   x.shape, request.inputs[1], updates.shape, mode_of(request.attrs) == Mode::clip);
  const bool distinct = request.attrs.boolean("unique_indices") && !plan->clamp;  // clamped ones may coincide
  const DType dtype = x.dtype;
  const int64_t size = storage_size(dtype), elements = x.size(), bytes = elements * size;
  const bool nothing = updates.size() == 0, plain = has_plain_runs(*plan, elements);
  if (*combine == Combine::replace) {
    return [=, loops = replacing_loops(size)](std::byte* const* buffers) {
      copy_bytes(buffers[3], buffers[0], bytes);
      if (nothing) return;
      if (plain) return RunScatter{*plan, loops, buffers[1], buffers[3], buffers[2], elements}.run(distinct);
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
  return [=, loops = loops_for(*combine, dtype)](std::byte* const* buffers) {
    copy_bytes(buffers[3], buffers[0], bytes);
    if (nothing) return;
    if (plain && loops.runs)
      return RunScatter{*plan, *loops.runs, buffers[1], buffers[3], buffers[2], elements}.run(distinct);
    for_each_update(*plan, buffers[1], distinct, elements, [&](const Updates& updates) {
      combine_updates(loops.any, *plan, dtype, loops.stored, buffers[3], buffers[2], updates);
    });
  };
}

}  // namespace

KernelMakers scatter_makers() {
  return {{"scatter", make_scatter},     {"scatter-add", make_scatter}, {"scatter-sub", make_scatter},
          {"scatter-mul", make_scatter}, {"scatter-min", make_scatter}, {"scatter-max", make_scatter}};
}

}  // namespace capibara::cpu
