// gather: windows of an array, read at positions given by an array of indices.
#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/index/index_windows.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

using Mode = jax::lax::GatherScatterMode;

// Reads the windows of index vectors [first, first + count), which start at `places`.
template <class T>
void gather_windows(const WindowPlan& plan, int64_t first, int64_t count, const int64_t* places, const T* source,
                    T* target, const T& fill_value) {
  const Axis& batch = plan.batch_in_windows;
  constexpr int64_t ahead = 2;
  const int64_t bytes = plan.run * static_cast<int64_t>(sizeof(T));
  for (int64_t b = 0; b < count; ++b) {
    T* window = target + batch.at(first + b);
    // Windows can be anywhere: the hardware does not prefetch them.
    if (b + ahead < count && places[b + ahead] >= 0 && plan.operand_step == 1) {
      const auto* next = reinterpret_cast<const std::byte*>(source + places[b + ahead]);
      for (int64_t byte = 0; byte < std::min<int64_t>(bytes, 1024); byte += 64) __builtin_prefetch(next + byte);
    }
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

// The same for windows of one element.
template <class T>
void gather_elements(const WindowPlan& plan, int64_t first, int64_t count, const uint32_t* places, const T* source,
                     T* target, const T& fill_value) {
  const Axis& batch = plan.batch_in_windows;
  if (batch.is_regular() && batch.stride() == 1) {
    T* to = target + batch.at(first);
    constexpr int64_t ahead = 32;
    int64_t i = 0;
    for (; i + ahead < count; ++i) {
      __builtin_prefetch(source + (places[i + ahead] == WindowPlan::nowhere ? 0 : places[i + ahead]));
      to[i] = places[i] == WindowPlan::nowhere ? fill_value : source[places[i]];
    }
    for (; i < count; ++i) to[i] = places[i] == WindowPlan::nowhere ? fill_value : source[places[i]];
  } else {
    for (int64_t i = 0; i < count; ++i)
      target[batch.at(first + i)] = places[i] == WindowPlan::nowhere ? fill_value : source[places[i]];
  }
}

HostKernel make_gather(const KernelRequest& request) {
  const ArrayType &x = request.inputs[0], &out = request.outputs[0];
  Mode mode = mode_of(request.attrs);
  auto plan = std::make_shared<WindowPlan>(request.attrs.get<GatherDimensionNumbers>("dimension_numbers"),
                                           request.attrs.ints("slice_sizes"), x.shape, request.inputs[1], out.shape,
                                           mode != Mode::fill_or_drop);
  const int64_t size = storage_size(x.dtype), elements = out.size();
  Array fill;
  if (mode == Mode::fill_or_drop && !is_key(x.dtype)) fill = gather_fill_value(request.attrs["fill_value"], x.dtype);
  if (mode == Mode::fill_or_drop && !fill.defined()) return {};
  const bool single = plan->rows() == 1 && plan->run == 1 && x.size() < WindowPlan::nowhere;
  return [plan, size, elements, fill, single](std::byte* const* buffers) {
    if (elements == 0) return;
    const double cost = 1.5 + static_cast<double>(plan->rows()) * (0.5 + 0.1 * static_cast<double>(plan->run * size));
    visit_bytes(size, [&]<class T>(Type<T>) {
      const T* source = reinterpret_cast<const T*>(buffers[0]);
      T* target = reinterpret_cast<T*>(buffers[2]);
      T fill_value{};
      if (fill.defined()) std::memcpy(&fill_value, fill.raw_data(), sizeof(T));
      auto in_chunks = [&]<class Place>(Type<Place>, auto gather_chunk) {
        parallel_for_cost(plan->count(), cost, [&](int64_t begin, int64_t end) {
          Place places[chunk];
          for (int64_t first = begin; first < end; first += chunk)
            gather_chunk(first, std::min(chunk, end - first), places);
          return 0;
        });
      };
      if (single) {
        in_chunks(Type<uint32_t>{}, [&](int64_t first, int64_t count, uint32_t* places) {
          plan->short_places(buffers[1], first, count, places);
          gather_elements(*plan, first, count, places, source, target, fill_value);
        });
      } else {
        in_chunks(Type<int64_t>{}, [&](int64_t first, int64_t count, int64_t* places) {
          plan->places(buffers[1], first, count, places);
          gather_windows(*plan, first, count, places, source, target, fill_value);
        });
      }
    });
  };
}

}  // namespace

KernelMakers index_makers() { return {{"gather", make_gather}}; }

}  // namespace capibara::cpu
