// scatter and its combining kinds: windows of updates written into an array at places that an array of indices names.
//
// Updates meet an element in the order of the index vectors, however many threads there are. Only where there are many more
// updates to add than elements are they divided in parts, by the shapes alone: the sums of the parts are added in their order.
#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/index_windows.h"
#include "backends/cpu/kernels/scratch.h"
#include "program/handles.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using Mode = jax::lax::GatherScatterMode;

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
  static const std::pair<Primitive, Combine> rows[] = {
      {prim::add(), Combine::add}, {prim::sub(), Combine::sub}, {prim::mul(), Combine::mul}, {prim::min(), Combine::min},
      {prim::max(), Combine::max}, {prim::and_(), Combine::bit_and}, {prim::or_(), Combine::bit_or}, {prim::xor_(), Combine::bit_xor}};
  for (const auto& [primitive, combine] : rows) {
    if (equation.primitive == primitive) return combine;
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

// ---- one run of neighbours in each window ------------------------------------------------------------------------

// How an array's elements are stored, and what arithmetic on them is done in.
template <class E>
using ComputeOf = std::conditional_t<std::is_same_v<E, BFloat16> || std::is_same_v<E, Half>, float, E>;

template <Combine O, class E>
E combined_stored(const E& a, const E& b) {
  if constexpr (O == Combine::replace) return b;
  else return static_cast<E>(combined<O>(static_cast<ComputeOf<E>>(a), static_cast<ComputeOf<E>>(b)));
}

// Windows that are one run of neighbours, or one element, and lie evenly in the updates.
bool has_plain_runs(const WindowPlan& plan, int64_t operand_size) {
  return operand_size < WindowPlan::nowhere && plan.rows() == 1 && plan.batch_in_windows.is_regular() &&
         (plan.run == 1 || (plan.operand_step == 1 && plan.window_step == 1));
}

// One call of such a scatter on elements stored as E.
template <Combine O, class E>
struct RunScatter {
  const WindowPlan& plan;
  const std::byte* indices;
  E* target;
  const E* updates;
  int64_t operand_size;

  static constexpr bool is_number = std::is_same_v<E, float> || std::is_same_v<E, double> || (std::is_integral_v<E> && !std::is_same_v<E, bool>);
  static constexpr bool adds_vectors = O == Combine::add && is_number;
  static constexpr bool has_parts = (O == Combine::add || O == Combine::min || O == Combine::max) && is_number;

  void run(bool distinct) const {
    const int64_t count = plan.count();
    const double one = 1.5 + (plan.run == 1 ? 0.0 : 1.0) + 0.3 * static_cast<double>(plan.run);
    if (distinct) {
      parallel_for_cost(count, one, [&](int64_t begin, int64_t end) {
        if (plan.run == 1) elements(begin, end, target);
        else rows(begin, end, 0, operand_size, 0, plan.run, target);
        return 0;
      });
      return;
    }
    if constexpr (has_parts) {
      if (const int64_t parts = parts_of(count); parts > 1) return combine_parts(count, parts, one);
    }
    if (plan.run == 1) all_elements(count);
    else all_rows(count, one);
  }

 private:
  const E* update(int64_t i) const { return updates + plan.batch_in_windows.stride() * i; }

  // ---- parts of the updates

  // How many parts the updates are divided in: by shape alone.
  int64_t parts_of(int64_t count) const {
    if (count < (1 << 16)) return 1;
    int64_t parts = 1;
    while (parts < 8 && 4 * parts * operand_size <= count * plan.run) parts *= 2;
    return parts;
  }

  // What changes nothing when it is combined.
  static E neutral() {
    if constexpr (O == Combine::add) return std::is_floating_point_v<E> ? static_cast<E>(-0.0) : E{};
    using Limits = std::numeric_limits<E>;
    if constexpr (O == Combine::min) return Limits::has_infinity ? Limits::infinity() : Limits::max();
    else return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }

  void combine_parts(int64_t count, int64_t parts, double one) const {
    Scratch<E> results((parts - 1) * operand_size, "parts of a scatter");
    parallel_for_cost(parts, one * static_cast<double>(count) / static_cast<double>(parts), [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        E* into = part == 0 ? target : results.data() + (part - 1) * operand_size;
        if (part > 0) std::fill_n(into, operand_size, neutral());
        const int64_t from = count * part / parts, to = count * (part + 1) / parts;
        if (plan.run == 1) elements(from, to, into);
        else rows(from, to, 0, operand_size, 0, plan.run, into);
      }
      return 0;
    });
    parallel_for_cost(operand_size, 0.3 * static_cast<double>(parts), [&](int64_t begin, int64_t end) {
      for (int64_t part = 1; part < parts; ++part) {
        const E* __restrict from = results.data() + (part - 1) * operand_size;
        for (int64_t i = begin; i < end; ++i) target[i] = combined_stored<O>(target[i], from[i]);
      }
      return 0;
    });
  }

  // ---- windows of one element

  // Threads divide the operand.
  void all_elements(int64_t count) const {
    constexpr int64_t cached = 1 << 20;  // bytes; others cost more than finding out which thread they belong to
    const int64_t parts = in_parallel_region() || operand_size * static_cast<int64_t>(sizeof(E)) < cached ? 1 : thread_count();
    if (parts == 1) return elements(0, count, target);
    parallel_for_cost(parts, 4 * static_cast<double>(count) / static_cast<double>(parts), [&](int64_t begin, int64_t end) {
      if (end - begin == parts) elements(0, count, target);
      else elements_within(count, operand_size * begin / parts, operand_size * end / parts);
      return 0;
    });
  }

  void elements(int64_t begin, int64_t end, E* into) const {
    uint32_t places[chunk];
    const int64_t step = plan.batch_in_windows.stride();
    for (; begin < end; begin += chunk) {
      const int64_t count = std::min(chunk, end - begin);
      plan.short_places(indices, begin, count, places);
      combine_elements(into, places, update(begin), step, count);
    }
  }

  static void combine_elements(E* into, const uint32_t* places, const E* from, int64_t step, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (places[i] != WindowPlan::nowhere) into[places[i]] = combined_stored<O>(into[places[i]], from[i * step]);
    }
  }

  // Those that go to [least, limit) of the operand.
  void elements_within(int64_t count, int64_t least, int64_t limit) const {
    uint32_t places[chunk], kept[chunk], which[chunk];
    E values[chunk];
    const int64_t step = plan.batch_in_windows.stride();
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t some = std::min(chunk, count - begin);
      plan.short_places(indices, begin, some, places);
      const int64_t held = within(places, some, least, limit, kept, which);
      const E* from = update(begin);
      for (int64_t i = 0; i < held; ++i) values[i] = from[which[i] * step];
      combine_elements(target, kept, values, 1, held);
    }
  }

  static int64_t within(const uint32_t* places, int64_t count, int64_t least, int64_t limit, uint32_t* kept, uint32_t* which) {
    const auto low = static_cast<uint32_t>(least), width = static_cast<uint32_t>(limit - least);
    int64_t held = 0, inside = 0;
    for (int64_t i = 0; i < count; ++i) inside += places[i] - low < width;
    if (inside == 0) return 0;
    if (inside == count) {
      for (int64_t i = 0; i < count; ++i) kept[i] = places[i], which[i] = static_cast<uint32_t>(i);
      return count;
    }
    for (int64_t i = 0; i < count; ++i) {
      kept[held] = places[i];
      which[held] = static_cast<uint32_t>(i);
      held += places[i] - low < width;
    }
    return held;
  }

  // ---- windows of several elements

  // Threads divide the elements of long runs, else the operand.
  void all_rows(int64_t count, double one) const {
    constexpr int64_t piece = 256 / sizeof(E);
    const int64_t pieces = (plan.run + piece - 1) / piece;
    const double all = one * static_cast<double>(count);
    if (pieces >= 2) {
      parallel_for_cost(pieces, all / static_cast<double>(pieces), [&](int64_t begin, int64_t end) {
        rows(0, count, 0, operand_size, begin * piece, std::min(end * piece, plan.run) - begin * piece, target);
        return 0;
      });
      return;
    }
    const int64_t parts = plan.disjoint ? thread_count() : 1;
    parallel_for_cost(parts, all / static_cast<double>(parts), [&](int64_t begin, int64_t end) {
      rows(0, count, operand_size * begin / parts, operand_size * end / parts, 0, plan.run, target);
      return 0;
    });
  }

  // Elements [first, first + run) of windows [begin, end) that begin in [least, limit) of the operand.
  void rows(int64_t begin, int64_t end, int64_t least, int64_t limit, int64_t first, int64_t run, E* into) const {
    constexpr int64_t ahead = 12;
    uint32_t places[chunk], kept[chunk], which[chunk];
    const int64_t step = plan.batch_in_windows.stride();
    for (; begin < end; begin += chunk) {
      const int64_t count = std::min(chunk, end - begin);
      plan.short_places(indices, begin, count, places);
      const int64_t held = within(places, count, least, limit, kept, which);
      const E* from = update(begin) + first;
      for (int64_t i = 0; i < held;) {
        int64_t next = i + 1;  // windows of one place one after the other: each element stays at hand until the last of them
        while (next < held && kept[next] == kept[i]) ++next;
        if (next + ahead < held) {
          __builtin_prefetch(into + kept[next + ahead] + first, 1);
          if (held < count) __builtin_prefetch(from + which[next + ahead] * step);  // some are left out
        }
        combine_group(into + kept[i] + first, from, step, which + i, next - i, run);
        i = next;
      }
    }
  }

  static void combine_group(E* __restrict to, const E* __restrict from, int64_t step, const uint32_t* which, int64_t count, int64_t run) {
    if constexpr (O == Combine::replace) {
      copy_run(to, 1, from + which[count - 1] * step, 1, run);
      return;
    }
    int64_t k = 0;
    if constexpr (adds_vectors) {
      using Lane = typename std::conditional_t<std::is_integral_v<E>, std::make_unsigned<E>, Type<E>>::type;  // integers wrap
      typedef Lane Vector __attribute__((vector_size(16)));
      constexpr int64_t width = 16 / sizeof(E);
      auto read = [](const E* at) {
        Vector value;
        std::memcpy(&value, at, sizeof value);
        return value;
      };
      for (; k + 4 * width <= run; k += 4 * width) {
        Vector a = read(to + k), b = read(to + k + width), c = read(to + k + 2 * width), d = read(to + k + 3 * width);
        for (int64_t i = 0; i < count; ++i) {
          const E* at = from + which[i] * step + k;
          a += read(at), b += read(at + width), c += read(at + 2 * width), d += read(at + 3 * width);
        }
        std::memcpy(to + k, &a, 16), std::memcpy(to + k + width, &b, 16);
        std::memcpy(to + k + 2 * width, &c, 16), std::memcpy(to + k + 3 * width, &d, 16);
      }
      for (; k + width <= run; k += width) {
        Vector a = read(to + k);
        for (int64_t i = 0; i < count; ++i) a += read(from + which[i] * step + k);
        std::memcpy(to + k, &a, 16);
      }
    }
    if (k == run) return;
    for (int64_t i = 0; i < count; ++i) {
      const E* __restrict at = from + which[i] * step;
      for (int64_t j = k; j < run; ++j) to[j] = combined_stored<O>(to[j], at[j]);
    }
  }
};

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
  const bool nothing = updates.size() == 0, plain = has_plain_runs(*plan, elements);
  if (*combine == Combine::replace) {
    return [=](std::byte* const* buffers) {
      copy_bytes(buffers[3], buffers[0], bytes);
      if (nothing) return;
      visit_bytes(size, [&]<class T>(Type<T>) {
        T* target = reinterpret_cast<T*>(buffers[3]);
        const T* source = reinterpret_cast<const T*>(buffers[2]);
        if (plain) return RunScatter<Combine::replace, T>{*plan, buffers[1], target, source, elements}.run(distinct);
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
        auto run = [&]<class E>(Type<E>) {
          RunScatter<O, E>{*plan, buffers[1], reinterpret_cast<E*>(buffers[3]), reinterpret_cast<const E*>(buffers[2]), elements}.run(distinct);
        };
        if (plain && stored_as<C>(dtype)) return run(Type<C>{});
        if constexpr (std::is_same_v<C, float>) {
          if (plain && dtype == DType::bfloat16) return run(Type<BFloat16>{});
          if (plain && dtype == DType::float16) return run(Type<Half>{});
        }
        for_each_update(*plan, buffers[1], distinct, elements, [&](const Updates& updates) {
          combine_updates<O, C>(*plan, dtype, buffers[3], buffers[2], updates);
        });
      };
    });
  });
  return kernel;
}

}  // namespace

KernelMakers scatter_makers() {
  return {{"scatter", make_scatter},     {"scatter-add", make_scatter}, {"scatter-sub", make_scatter},
          {"scatter-mul", make_scatter}, {"scatter-min", make_scatter}, {"scatter-max", make_scatter}};
}

}  // namespace capibara::cpu
