// Convolutions straight from padded planes: no input panel is packed.
//
// Vectorised over output positions, which are contiguous in a plane for every window element; tile rows are output
// features. A task lays out some rows of one image as planes, which stay in the L2 cache, and multiplies them with the
// whole packed kernel. Every sum accumulates k in increasing order, in blocks that the shape alone decides.
#include "backends/cpu/kernels/convolution/convolution_direct.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/tile_heights.h"
#include "backends/cpu/kernels/planes/code.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/interrupt.h"

namespace capibara::cpu {

namespace {

template <class K>
class DirectConvolution {
 public:
  using T = typename K::Packed;

  DirectConvolution(const ConvolutionPlan& plan, const T* lhs, const T* rhs, T* out)
      : plan_(plan),
        code_(plane_code<T>()),
        lhs_(lhs),
        rhs_(rhs),
        out_(out),
        layout_(*plan.layout),
        panels_(plan.group_features, code_.tiles.heights) {
    auto add = [&](const ConvolutionPlan& part, int64_t kernel_offset) {
      parts_.push_back({&part, kernel_offset, packed_size_, results_size_});
      packed_size_ += plan.groups * panels_.rows() * part.inner();
      results_size_ += plan.group_features * plan.band * part.dims.back().places;
    };
    if (plan.phases.empty()) add(plan, 0);
    for (const ConvolutionPlan::Phase& phase : plan.phases) add(phase.plan, phase.kernel_offset);
    if (plan.phases.empty()) results_size_ = 0;
  }

  void run() const {
    Scratch<T> kernel(packed_size_, "kernel of a convolution");
    pack_kernel(kernel.data());
    int64_t height = 0;
    double products = 0;
    for (const Part& part : parts_) {
      height = std::max(height, rows_of(*part.plan));
      products += static_cast<double>(plan_.group_features * plan_.band * part.plan->dims.back().places) *
                  static_cast<double>(part.plan->inner());
    }
    const int64_t bands = (height + plan_.band - 1) / plan_.band, planes = plan_.in_features * layout_.elements();
    parallel_for_cost(plan_.groups * plan_.batch * bands, multiply_cost<K>(products), [&](int64_t begin, int64_t end) {
      Scratch<T> laid(planes + 4 * code_.lanes, "planes of a convolution");
      Scratch<T> results;
      if (results_size_ != 0) results = Scratch<T>(results_size_, "phases of a convolution");
      for (int64_t task = begin; task < end; ++task) {
        const int64_t image = task / bands;
        run_band(image / plan_.batch, image % plan_.batch, task % bands * plan_.band, kernel.data(), laid.data(),
                 results.data());
        poll_stop();
      }
      return 0;
    });
  }

 private:
  // One phase, or the whole plan: where its packed kernel and its results of a band are.
  struct Part {
    const ConvolutionPlan* plan;
    int64_t kernel_offset, packed_offset, results_offset;
  };
  static constexpr int64_t row_block = 128;  // features whose packed kernel stays in the L2 cache

  static int64_t rows_of(const ConvolutionPlan& part) { return part.rows() ? part.rows()->places : 1; }
  // Kernel elements in one block of k: a panel of features and the output positions it meets fit the L1 cache.
  static int64_t inner_block(const ConvolutionPlan& part) {
    const int64_t window = part.window_size(), limit = 640 / static_cast<int64_t>(sizeof(T));
    const int64_t most = std::max<int64_t>(1, limit / window), blocks = (part.in_features + most - 1) / most;
    return (part.in_features + blocks - 1) / blocks * window;
  }

  // [group][block of k][panel of features][k][feature].
  void pack_kernel(T* to) const {
    const int64_t panels = panels_.count();
    double cost = 0;
    for (const Part& part : parts_) cost += static_cast<double>(panels_.rows() * part.plan->inner()) * 0.5;
    parallel_for_cost(plan_.groups * panels, cost / static_cast<double>(panels), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t g = task / panels, panel = task % panels, first = panels_.start(panel);
        for (const Part& part : parts_) {
          const int64_t inner = part.plan->inner();
          if (inner == 0) continue;
          const int64_t block = inner_block(*part.plan);
          const T* from = rhs_ + part.kernel_offset + g * plan_.group_features * plan_.kernel_feature_stride;
          T* target = to + part.packed_offset + g * panels_.rows() * inner;
          for (int64_t k0 = 0; k0 < inner; k0 += block) {
            const int64_t k = std::min(block, inner - k0);
            pack_matrix<K, T>(from, plan_.kernel_features, part.plan->direct_inner, first,
                              std::min(panels_.height(panel), plan_.group_features - first), k0, k,
                              panels_.height(panel), target + k0 * panels_.rows() + k * first);
          }
        }
      }
      return 0;
    });
  }

  // Output rows [first, first + band) of one image.
  void run_band(int64_t g, int64_t n, int64_t first, const T* kernel, T* laid, T* results) const {
    const int64_t image = plan_.batch_groups ? g * plan_.batch + n : n,
                  feature = plan_.batch_groups ? 0 : g * plan_.in_features;
    lay(lhs_ + image * plan_.lhs_batch_stride + feature * plan_.lhs_feature_stride, first, laid);
    T* out = out_ + n * plan_.out_batch_stride + g * plan_.group_features * plan_.out_feature_stride;
    for (const Part& part : parts_) {
      const int64_t count = std::min(plan_.band, rows_of(*part.plan) - first), columns = part.plan->dims.back().places;
      if (count <= 0) continue;
      const int64_t inner = part.plan->inner();
      const T* own = kernel + part.packed_offset + g * panels_.rows() * inner;
      if (plan_.phases.empty())
        multiply(*part.plan, count * columns, own, laid, out + first * columns, plan_.out_feature_stride);
      else if (inner != 0)
        multiply(*part.plan, count * columns, own, laid, results + part.results_offset, plan_.band * columns);
      else
        std::fill_n(results + part.results_offset, plan_.group_features * plan_.band * columns, T(0));
    }
    if (!plan_.phases.empty()) weave(first, results, out);
  }

  // Lays out the rows of all features that a band meets, and prefetches those of the feature after the next.
  void lay(const T* input, int64_t first, T* laid) const {
    constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T)), ahead = 2;
    const ConvolutionDimension &column = plan_.dims.back(), *row = plan_.rows();
    const bool whole = plan_.phases.empty() && row && row->size == 1 && row->padding == 0 && row->stride == 1 &&
                       column.size == 1 && column.padding == 0 && column.stride == 1 && row->step == column.extent &&
                       column.places == column.extent && row->places == row->extent;
    const auto [begin, end] = layout_.rows_met(first, plan_.band);
    const int64_t step = plan_.row_step(), from = begin * step;
    const int64_t count = std::max<int64_t>(0, end - begin - 1) * step + (end > begin ? column.extent : 0);
    for (int64_t c = 0; c < plan_.in_features; ++c, input += plan_.lhs_feature_stride, laid += layout_.elements()) {
      if (c + ahead < plan_.in_features) {
        const T* next = input + ahead * plan_.lhs_feature_stride + from;
        for (int64_t i = 0; i < count; i += line) __builtin_prefetch(next + i);
      }
      if (whole)
        code_.put(input + from, laid, 1, count);
      else
        layout_.lay(code_, input, step, first, plan_.band, T(0), laid);
    }
  }

  void multiply(const ConvolutionPlan& part, int64_t places, const T* kernel, const T* laid, T* out,
                int64_t out_step) const {
    const int64_t inner = part.inner(), block = inner_block(part), lanes = code_.lanes;
    const int64_t columns = part.dims.back().places, gap = layout_.pitch() - columns;
    PlaneTile<T> tile;
    tile.out_step = out_step;
    for (int64_t k0 = 0; k0 < inner; k0 += block) {
      tile.inner = std::min(block, inner - k0);
      tile.offsets = part.direct_offsets.data() + k0;
      tile.accumulate = k0 != 0;
      for (int64_t p0 = 0; p0 < panels_.count(); p0 += row_block / panels_.height(0)) {
        const int64_t p1 = std::min(panels_.count(), p0 + row_block / panels_.height(0));
        for (int64_t place = 0; place < places; place += 2 * lanes) {
          tile.width = std::min(2 * lanes, places - place);
          const int vectors = tile.width > lanes ? 2 : 1;
          for (int v = 0; v < vectors; ++v) {
            const int64_t at = place + v * lanes, row = at / columns, column = at % columns;
            tile.first[v] = laid + at + row * gap;
            tile.second[v] = tile.first[v] + gap;
            tile.edge[v] = gap == 0 || at - column + columns >= places ? lanes : std::min(lanes, columns - column);
          }
          const T* weights = kernel + k0 * panels_.rows() + panels_.start(p0) * tile.inner;
          for (int64_t p = p0; p < p1; ++p) run_tile(tile, p, vectors, weights, out + place);
        }
      }
    }
  }

  void run_tile(PlaneTile<T>& tile, int64_t panel, int vectors, const T*& weights, T* out) const {
    const int64_t height = panels_.height(panel), first = panels_.start(panel), used = plan_.group_features - first;
    tile.weights = weights;
    weights += height * tile.inner;
    const auto run = code_.tiles.tile[panels_.kind(panel)][vectors - 1];
    T* target = out + first * tile.out_step;
    if (used >= height) {
      tile.out = target;
      return run(tile);
    }
    // Fewer features than tile rows: copy only those that exist.
    T rows[16 * 2 * 16];
    PlaneTile<T> own = tile;
    own.out = rows;
    own.out_step = vectors * code_.lanes;
    own.accumulate = false;
    run(own);
    for (int64_t r = 0; r < used; ++r) {
      const T* from = rows + r * own.out_step;
      T* to = target + r * tile.out_step;
      for (int64_t i = 0; i < tile.width; ++i) to[i] = tile.accumulate ? to[i] + from[i] : from[i];
    }
  }

  // Interleaves the results of all phases into rows of the output.
  void weave(int64_t first, const T* results, T* out) const {
    const ConvolutionDimension &columns = plan_.dims.back(), *rows = plan_.rows();
    const int64_t row_phases = rows ? rows->lhs_dilation : 1, phases = columns.lhs_dilation;
    const int64_t begin = first * row_phases, end = std::min(begin + plan_.band * row_phases, rows ? rows->places : 1);
    for (int64_t f = 0; f < plan_.group_features; ++f) {
      for (int64_t y = begin; y < end; ++y) {
        T* target = out + f * plan_.out_feature_stride + (rows ? y * rows->out_step : 0);
        auto row = [&](int64_t x) {
          const Part& part = parts_[static_cast<std::size_t>(y % row_phases * phases + x)];
          const int64_t width = part.plan->dims.back().places;
          return results + part.results_offset + (f * plan_.band + y / row_phases - first) * width;
        };
        if (phases == 2) {
          code_.join(row(0), row(1), target, columns.places);
          continue;
        }
        for (int64_t x = 0; x < phases; ++x)
          code_.put(row(x), target + x, phases, (columns.places - x + phases - 1) / phases);
      }
    }
  }

  const ConvolutionPlan& plan_;
  const PlaneCode<T>& code_;
  const T *lhs_, *rhs_;
  T* out_;
  const PlaneLayout& layout_;
  const TileHeights panels_;
  std::vector<Part> parts_;
  int64_t packed_size_ = 0, results_size_ = 0;
};

}  // namespace

template <class K>
void convolve_from_planes(const ConvolutionPlan& plan, const typename K::Packed* lhs, const typename K::Packed* rhs,
                          typename K::Packed* out) {
  DirectConvolution<K>(plan, lhs, rhs, out).run();
}
template void convolve_from_planes<Singles>(const ConvolutionPlan&, const float*, const float*, float*);
template void convolve_from_planes<Doubles>(const ConvolutionPlan&, const double*, const double*, double*);

}  // namespace capibara::cpu
