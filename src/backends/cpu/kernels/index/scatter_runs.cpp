// Splits the updates of windows that are one run, or one element, between threads, or into parts that are combined at
// end.
#include "backends/cpu/kernels/index/scatter_runs.h"

#include <algorithm>

#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu::scatters {

bool has_plain_runs(const WindowPlan& plan, int64_t operand_size) {
  return operand_size < WindowPlan::nowhere && plan.rows() == 1 && plan.batch_in_windows.is_regular() &&
         (plan.run == 1 || (plan.operand_step == 1 && plan.window_step == 1));
}

void RunScatter::run(bool distinct) const {
  const int64_t count = plan.count();
  const double one = 1.5 + (plan.run == 1 ? 0.0 : 1.0) + 0.3 * static_cast<double>(plan.run);
  if (distinct) {
    parallel_for_cost(count, one, [&](int64_t begin, int64_t end) {
      if (plan.run == 1)
        elements(begin, end, target);
      else
        rows(begin, end, 0, operand_size, 0, plan.run, target);
      return 0;
    });
    return;
  }
  if (loops.join) {
    if (const int64_t parts = parts_of(count); parts > 1) return combine_parts(count, parts, one);
  }
  if (plan.run == 1)
    all_elements(count);
  else
    all_rows(count, one);
}

// ---- parts of the updates

// The number of parts the updates are split into: by shape alone.
int64_t RunScatter::parts_of(int64_t count) const {
  if (count < (1 << 16)) return 1;
  int64_t parts = 1;
  while (parts < 8 && 4 * parts * operand_size <= count * plan.run) parts *= 2;
  return parts;
}

void RunScatter::combine_parts(int64_t count, int64_t parts, double one) const {
  const int64_t bytes = operand_size * loops.size;
  Scratch<std::byte> results((parts - 1) * bytes, "parts of a scatter");
  parallel_for_cost(parts, one * static_cast<double>(count) / static_cast<double>(parts),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t part = begin; part < end; ++part) {
                        std::byte* into = part == 0 ? target : results.data() + (part - 1) * bytes;
                        if (part > 0) loops.clear(into, operand_size);
                        const int64_t from = count * part / parts, to = count * (part + 1) / parts;
                        if (plan.run == 1)
                          elements(from, to, into);
                        else
                          rows(from, to, 0, operand_size, 0, plan.run, into);
                      }
                      return 0;
                    });
  parallel_for_cost(operand_size, 0.3 * static_cast<double>(parts), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * loops.size;
    for (int64_t part = 1; part < parts; ++part) {
      loops.join(target + first, results.data() + (part - 1) * bytes + first, end - begin);
    }
    return 0;
  });
}

// ---- windows of one element

// Threads split the operand.
void RunScatter::all_elements(int64_t count) const {
  constexpr int64_t cached = 1 << 20;  // bytes; below, scattering costs less than finding each update's thread
  const int64_t parts = in_parallel_region() || operand_size * loops.size < cached ? 1 : thread_count();
  if (parts == 1) return elements(0, count, target);
  parallel_for_cost(parts, 4 * static_cast<double>(count) / static_cast<double>(parts),
                    [&](int64_t begin, int64_t end) {
                      if (end - begin == parts)
                        elements(0, count, target);
                      else
                        elements_within(count, operand_size * begin / parts, operand_size * end / parts);
                      return 0;
                    });
}

void RunScatter::elements(int64_t begin, int64_t end, std::byte* into) const {
  uint32_t places[chunk];
  const int64_t step = plan.batch_in_windows.stride();
  for (; begin < end; begin += chunk) {
    const int64_t count = std::min(chunk, end - begin);
    plan.short_places(indices, begin, count, places);
    loops.elements(into, places, update(begin), step, count);
  }
}

namespace {

// Keeps those of `places` that are in [least, limit), and their indices; returns the number.
int64_t within(const uint32_t* places, int64_t count, int64_t least, int64_t limit, uint32_t* kept, uint32_t* which) {
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

}  // namespace

// Applies the updates whose target is in [least, limit) of the operand.
void RunScatter::elements_within(int64_t count, int64_t least, int64_t limit) const {
  uint32_t places[chunk], kept[chunk], which[chunk];
  const int64_t step = plan.batch_in_windows.stride();
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t some = std::min(chunk, count - begin);
    plan.short_places(indices, begin, some, places);
    const int64_t held = within(places, some, least, limit, kept, which);
    loops.chosen(target, kept, which, update(begin), step, held);
  }
}

// ---- windows of several elements

// Threads split the elements of long runs, else the operand.
void RunScatter::all_rows(int64_t count, double one) const {
  const int64_t piece = 256 / loops.size;
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

// Elements [first, first + run) of windows [begin, end) whose offsets are in [least, limit) of the operand.
void RunScatter::rows(int64_t begin, int64_t end, int64_t least, int64_t limit, int64_t first, int64_t run,
                      std::byte* into) const {
  uint32_t places[chunk], kept[chunk], which[chunk];
  const int64_t step = plan.batch_in_windows.stride(), skipped = first * loops.size;
  for (; begin < end; begin += chunk) {
    const int64_t count = std::min(chunk, end - begin);
    plan.short_places(indices, begin, count, places);
    const int64_t held = within(places, count, least, limit, kept, which);
    loops.rows(into + skipped, kept, which, update(begin) + skipped, step, held, held < count, run);
  }
}

}  // namespace capibara::cpu::scatters
