// select_and_scatter_add over planes, the gradient of max and min pooling with channels first.
//
// Every element of the result accumulates the values of the windows that selected it, in their order: no two threads
// or lanes write to one element. Padding is compared like any element, as in the composition.
#include "backends/cpu/kernels/window/pooling_gradient.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "backends/cpu/kernels/planes/layout.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/streaming.h"
#include "core/runtime/thread_pool.h"
#include "program/ir/window_shape.h"

namespace capibara::cpu {

namespace {

template <class T>
class PoolingGradient {
 public:
  PoolingGradient(const PlaneDimension& rows, const PlaneDimension& columns, int64_t planes, bool greatest)
      : code_(plane_code<T>()),
        rows_(rows),
        columns_(columns),
        planes_(planes),
        greatest_(greatest),
        max_places_(PlaneLayout::band(rows, columns, sizeof(T))),
        layout_(rows, columns, max_places_, code_.lanes) {
    // Rows of the result that are covered by the windows of one band.
    band_ = std::max<int64_t>(1, (max_places_ - 1) * rows.stride - rows.reach() + 2);
    if (max_places_ == rows.places) band_ = rows.extent;
    // A position meets the window elements of its phase; the last element comes first, as its window is the first one.
    phases_.resize(static_cast<std::size_t>(rows.stride * columns.stride));
    for (int64_t e = rows.size * columns.size; e-- > 0;) {
      const int64_t y = e / columns.size * rows.dilation, x = e % columns.size * columns.dilation;
      Phase& phase = phases_[static_cast<std::size_t>(y % rows.stride * columns.stride + x % columns.stride)];
      phase.shifts.push_back(y / rows.stride * layout_.pitch() + x / columns.stride);
      phase.numbers.push_back(static_cast<PlaneInt<T>>(e));
    }
    margin_ = (rows.reach() / rows.stride + 1) * layout_.pitch() + columns.reach() + code_.lanes;
    windows_ = 2 * margin_ + (max_places_ + rows.reach()) * layout_.pitch() + code_.lanes;
  }

  void run(const T* updates, const T* values, T* out) const {
    const int64_t bands = (rows_.extent + band_ - 1) / band_;
    const double cost =
        static_cast<double>(band_ * columns_.extent) * (0.2 + 0.05 * static_cast<double>(layout_.taps().size()));
    const int64_t row_bytes = columns_.extent * static_cast<int64_t>(sizeof(T));
    const bool streamed = columns_.stride == 2 && covered() == columns_.extent &&
                          streams(out, planes_ * rows_.extent * row_bytes, row_bytes);
    parallel_for_cost(planes_ * bands, cost, [&](int64_t begin, int64_t end) {
      Work work(*this);
      for (int64_t task = begin; task < end; ++task) {
        const int64_t plane = task / bands, first = task % bands * band_;
        const int64_t image = plane * rows_.extent * columns_.extent;
        run_band(work, updates + plane * rows_.places * columns_.places, values + image, first,
                 std::min(first + band_, rows_.extent), out + image, streamed);
      }
      if (streamed) finish_streaming();
      return 0;
    });
  }

 private:
  // The taps of one phase: offset back to the window that meets a position with them, and element number.
  struct Phase {
    std::vector<int64_t> shifts;
    std::vector<PlaneInt<T>> numbers;
  };

  struct Work {
    explicit Work(const PoolingGradient& of)
        : planes(of.layout_.elements(), "planes of a window"),
          which(of.windows_, "selected elements of a window"),
          updates(of.windows_, "updates of a window"),
          totals(of.columns_.stride * (of.layout_.pitch() + 8 * of.code_.lanes), "totals of a window") {
      std::fill_n(planes.data(), of.layout_.elements(), T(0));
      std::fill_n(which.data(), of.windows_, PlaneInt<T>(-1));
      std::fill_n(updates.data(), of.windows_, T(0));  // gaps between and around rows contribute nothing
    }
    Scratch<T> planes;
    Scratch<PlaneInt<T>> which;
    Scratch<T> updates, totals;
    std::vector<const T*> taps;
  };

  // Rows [first, last) of one plane of the result.
  void run_band(Work& work, const T* updates, const T* values, int64_t first, int64_t last, T* out,
                bool streamed) const {
    const int64_t pitch = layout_.pitch(), width = columns_.extent;
    auto up = [](int64_t x, int64_t step) { return x <= 0 ? 0 : (x + step - 1) / step; };
    const int64_t from = std::min(rows_.places, up(first + rows_.padding - (rows_.reach() - 1), rows_.stride));
    const int64_t to = std::clamp((last - 1 + rows_.padding) / rows_.stride + 1, from, rows_.places),
                  places = to - from;
    PlaneInt<T>* which = work.which.data() + margin_;
    T* own = work.updates.data() + margin_;
    if (places > 0) {
      constexpr T limit = std::numeric_limits<T>::infinity();
      layout_.lay(code_, values, width, from, places, greatest_ ? -limit : limit, work.planes.data());
      work.taps.clear();
      for (int64_t tap : layout_.taps()) work.taps.push_back(work.planes.data() + tap);
      code_.choose(greatest_, work.taps.data(), static_cast<int64_t>(work.taps.size()), which, layout_.count(places));
      for (int64_t r = 0; r < places; ++r)
        code_.put(updates + (from + r) * columns_.places, own + r * pitch, 1, columns_.places);
    }
    // Clears rows of windows left by an earlier band.
    for (int64_t r = places; r < max_places_; ++r) std::fill_n(own + r * pitch, columns_.places, T(0));
    const int64_t total_step = pitch + 8 * code_.lanes;
    int64_t row_phase = -1, row = 0;  // of a position; tracked incrementally, since divisions are slow
    for (int64_t y = first; y < last; ++y) {
      const int64_t position = y + rows_.padding - from * rows_.stride;
      T* target = out + y * width;
      // Prefetches this row of the next plane, which is one plane's size ahead.
      constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
      const T* next = values + (rows_.extent + y) * width;
      for (int64_t i = 0; i < width; i += line) __builtin_prefetch(next + i, 0, 2);
      if (places == 0 || position < 0 || position >= (places - 1) * rows_.stride + rows_.reach()) {
        std::fill_n(target, width, T(0));
        continue;
      }
      if (row_phase < 0) {
        row_phase = position % rows_.stride;
        row = position / rows_.stride * pitch;
      }
      for (int64_t phase = 0; phase < columns_.stride; ++phase) {
        const Phase& taps = phases_[static_cast<std::size_t>(row_phase * columns_.stride + phase)];
        code_.collect(
            {which + row, own + row, taps.shifts.data(), taps.numbers.data(), static_cast<int64_t>(taps.shifts.size())},
            work.totals.data() + phase * total_step, pitch);
      }
      write_row(work.totals.data(), total_step, target, streamed);
      if (++row_phase == rows_.stride) {
        row_phase = 0;
        row += pitch;
      }
    }
  }

  // The number of result columns that windows reach.
  int64_t covered() const {
    return std::clamp<int64_t>(layout_.pitch() * columns_.stride - columns_.padding, 0, columns_.extent);
  }

  // Combines the phases of a row; elements that no window covers are zero.
  void write_row(const T* totals, int64_t step, T* target, bool streamed) const {
    const int64_t stride = columns_.stride, covered = this->covered();
    auto from = [&](int64_t x) {
      const int64_t position = x + columns_.padding;
      return totals + position % stride * step + position / stride;
    };
    if (stride == 1) {
      code_.put(from(0), target, 1, covered);
    } else if (stride == 2) {
      const int64_t first = columns_.padding, second = first + 1;
      (streamed ? code_.stream_join : code_.join)(totals + (first & 1) * step + (first >> 1),
                                                  totals + (second & 1) * step + (second >> 1), target, covered);
    } else {
      for (int64_t x = 0; x < covered; ++x) target[x] = *from(x);
    }
    std::fill(target + covered, target + columns_.extent, T(0));
  }

  const PlaneCode<T>& code_;
  PlaneDimension rows_, columns_;
  int64_t planes_;
  bool greatest_;
  int64_t max_places_;
  PlaneLayout layout_;
  int64_t band_ = 1, margin_ = 0, windows_ = 0;
  std::vector<Phase> phases_;
};

template <class T>
HostKernel pooling_gradient(const PlaneDimension& rows, const PlaneDimension& columns, int64_t planes, bool greatest) {
  auto gradient = std::make_shared<const PoolingGradient<T>>(rows, columns, planes, greatest);
  return [gradient](std::byte* const* buffers) {
    gradient->run(reinterpret_cast<const T*>(buffers[0]), reinterpret_cast<const T*>(buffers[1]),
                  reinterpret_cast<T*>(buffers[2]));
  };
}

}  // namespace

// Windows over the last one or two dimensions, of float32 and float64; others are left to compositions.
HostKernel make_pooling_gradient(const KernelRequest& request) {
  const ArrayType &source = request.inputs[0], &operand = request.inputs[1];
  const Window window = Window::of(request.attrs);
  const std::size_t rank = operand.shape.size();
  if (rank == 0 || operand.size() == 0 || source.size() == 0) return {};
  PlaneDimension rows, columns;
  int64_t planes = 1, taps = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto [low, high] = window.padding[d];
    if (low < 0 || high < 0 || window.base_dilation[d] != 1 || window.window_dilation[d] != 1) return {};
    const PlaneDimension own{window.dimensions[d], source.shape[d], operand.shape[d], window.strides[d], 1, low};
    taps *= own.size;
    if (d + 1 == rank)
      columns = own;
    else if (d + 2 == rank)
      rows = own;
    else if (own.size != 1 || own.stride != 1 || low != 0 || high != 0)
      return {};
    else
      planes *= operand.shape[d];
  }
  // A single column means channels last, where vectors run along the channels instead.
  if (columns.size == 1 || taps > 127 || rows.stride * columns.stride > 64) return {};
  const bool greatest = request.attrs.text("select_prim") == "ge";
  if (operand.dtype == DType::float32) return pooling_gradient<float>(rows, columns, planes, greatest);
  if (operand.dtype == DType::float64) return pooling_gradient<double>(rows, columns, planes, greatest);
  return {};
}

}  // namespace capibara::cpu
