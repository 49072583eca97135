// Convolutions whose window is an image and whose output positions are few: the gradient of a kernel.
//
// Each output position is a matmul of the input's images by the kernel's features over all positions of the image.
// Both operands are packed once with the features of one image position contiguous, so that an output position is only
// a different offset: the input is not repacked for each. Fixed parts of the image positions are summed separately and
// combined in order, whatever the number of threads.
#include "backends/cpu/kernels/convolution/convolution_pairs.h"

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
class PairConvolution {
 public:
  using T = typename K::Packed;

  PairConvolution(const ConvolutionPlan& plan, const T* lhs, const T* rhs, T* out)
      : plan_(plan),
        code_(plane_code<T>()),
        lhs_(lhs),
        rhs_(rhs),
        out_(out),
        row_(plan.rows() ? *plan.rows() : single),
        column_(plan.dims.back()),
        lefts_(plan.batch, code_.tiles.heights),
        panel_width_(2 * code_.lanes),
        rights_((plan.group_features + panel_width_ - 1) / panel_width_),
        taps_(row_.places * column_.places),
        slot_(code_.tiles.heights[0] * panel_width_),
        left_columns_(reach(column_, column_.size)) {
    constexpr int64_t band_bytes = 128 * 1024, max_parts_bytes = 16 << 20, parts = 16, min_panels = 4;
    const int64_t row_bytes = rights_ * panel_width_ * column_.size * static_cast<int64_t>(sizeof(T));
    band_ = even(row_.size, std::max<int64_t>(1, band_bytes / row_bytes));
    bands_ = (row_.size + band_ - 1) / band_;
    // Rows of both operands that stay in the L1 cache for all output positions.
    const int64_t positions = (taps_ == 1 ? 1280 : 640) / static_cast<int64_t>(sizeof(T));
    chunk_ = even(band_, std::max<int64_t>(1, positions / column_.size));
    part_size_ = lefts_.count() * rights_ * taps_ * slot_;
    parts_ = std::clamp<int64_t>(max_parts_bytes / (part_size_ * static_cast<int64_t>(sizeof(T))), 1,
                                 std::min(parts, plan.in_features * bands_));
    groups_ = std::clamp<int64_t>((parts + parts_ - 1) / parts_, 1, std::max<int64_t>(1, lefts_.count() / min_panels));
  }

  void run() const {
    Scratch<T> sums(parts_ * part_size_, "parts of a convolution");
    const double products = static_cast<double>(plan_.batch * plan_.group_features * taps_) *
                            static_cast<double>(plan_.inner()) / static_cast<double>(parts_ * groups_);
    parallel_for_cost(parts_ * groups_, multiply_cost<K>(products), [&](int64_t begin, int64_t end) {
      Scratch<T> left(reach(row_, band_) * left_columns_ * code_.tiles.heights[0], "input of a convolution");
      Scratch<T> right(band_ * column_.size * rights_ * panel_width_, "kernel of a convolution");
      for (int64_t task = begin; task < end; ++task)
        run_part(task / groups_, task % groups_, left.data(), right.data(), sums.data() + task / groups_ * part_size_);
      return 0;
    });
    const int64_t blocks = lefts_.count() * rights_;
    parallel_for_cost(blocks, static_cast<double>(taps_ * slot_) * (1.0 + 0.1 * static_cast<double>(parts_)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t block = begin; block < end; ++block) add_parts(block, sums.data());
                        return 0;
                      });
  }

 private:
  static constexpr ConvolutionDimension single{1, 1, 1, 0, 1, 1, 0, 1, 0, 0};

  // Input positions that all output positions meet with this many window elements.
  static int64_t reach(const ConvolutionDimension& d, int64_t elements) {
    return (elements - 1) * d.dilation + (d.places - 1) * d.stride + 1;
  }
  static int64_t even(int64_t whole, int64_t limit) {
    const int64_t parts = (whole + limit - 1) / limit;
    return (whole + parts - 1) / parts;
  }
  int vectors(int64_t right) const { return plan_.group_features - right * panel_width_ > code_.lanes ? 2 : 1; }

  // Some bands of some images, for one group of input panels.
  void run_part(int64_t part, int64_t group, T* left, T* right, T* sums) const {
    const int64_t units = plan_.in_features * bands_, first = units * part / parts_, last = units * (part + 1) / parts_;
    const int64_t from = lefts_.count() * group / groups_, to = lefts_.count() * (group + 1) / groups_;
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t image = unit / bands_, y = unit % bands_ * band_, rows = std::min(band_, row_.size - y);
      pack_right(image, y, rows, right);
      for (int64_t panel = from; panel < to; ++panel) {
        pack_left(image, y, rows, panel, left);
        multiply(panel, rows, left, right, sums + panel * rights_ * taps_ * slot_, unit != first);
        poll_stop();
      }
    }
  }

  void multiply(int64_t panel, int64_t rows, const T* left, const T* right, T* sums, bool accumulate) const {
    const int64_t height = lefts_.height(panel), pitch = left_columns_ * height;
    for (int64_t y = 0; y < rows; y += chunk_) {
      for (int64_t r = 0; r < rights_; ++r) {
        const int width = vectors(r);
        const int64_t right_pitch = column_.size * width * code_.lanes;
        const auto run = code_.tiles.outer[lefts_.kind(panel)][width - 1];
        for (int64_t tap = 0; tap < taps_; ++tap) {
          const int64_t tap_row = y * row_.dilation + tap / column_.places * row_.stride;
          const int64_t tap_column = tap % column_.places * column_.stride;
          run({left + tap_row * pitch + tap_column * height,
               right + r * rows * column_.size * panel_width_ + y * right_pitch, column_.dilation * height,
               row_.dilation * pitch, right_pitch, std::min(chunk_, rows - y), column_.size,
               sums + (r * taps_ + tap) * slot_, accumulate || y != 0});
        }
      }
    }
  }

  // Packs `count` groups of `width` rows, starting at `from` and `step` apart; rows from `used` on are zeros.
  static void pack(const T* from, int64_t step, int64_t used, int64_t count, int64_t width, T* to) {
    constexpr int64_t run = max_inner_bytes / static_cast<int64_t>(sizeof(T));
    const T* rows[max_panel_width];
    for (int64_t x = 0; x < count; x += run) {
      for (int64_t i = 0; i < width; ++i) rows[i] = i < used ? from + i * step + x : absent_row<T>();
      pack_transposed<K, T>(rows, std::min(run, count - x), width, to + x * width);
    }
  }
  void pack_right(int64_t image, int64_t y, int64_t rows, T* to) const {
    const T* start = rhs_ + image * plan_.kernel_in_stride + y * row_.kernel_step;
    for (int64_t r = 0; r < rights_; ++r) {
      const int64_t width = vectors(r) * code_.lanes, first = r * panel_width_;
      const bool joined = row_.kernel_step == column_.size;  // rows are contiguous
      const int64_t runs = joined ? 1 : rows, run = column_.size * (joined ? rows : 1);
      T* panel = to + r * rows * column_.size * panel_width_;
      for (int64_t i = 0; i < runs; ++i, panel += run * width)
        pack(start + first * plan_.kernel_feature_stride + i * row_.kernel_step, plan_.kernel_feature_stride,
             std::min(width, plan_.group_features - first), run, width, panel);
    }
  }
  void pack_left(int64_t image, int64_t y, int64_t rows, int64_t panel, T* to) const {
    const int64_t height = lefts_.height(panel), first = lefts_.start(panel);
    const T* start = lhs_ + image * plan_.lhs_feature_stride + first * plan_.lhs_batch_stride;
    const int64_t low = std::clamp<int64_t>(column_.padding, 0, left_columns_);
    const int64_t high = std::clamp(column_.extent + column_.padding, low, left_columns_), count = reach(row_, rows);
    const int64_t above = y * row_.dilation - row_.padding, used = std::min(height, plan_.batch - first);
    if (low == 0 && high == left_columns_ && row_.step == left_columns_ && column_.padding == 0 && above >= 0 &&
        above + count <= row_.extent)
      return pack(start + above * row_.step, plan_.lhs_batch_stride, used, count * left_columns_, height, to);
    for (int64_t i = 0; i < count; ++i, to += left_columns_ * height) {
      const int64_t row = above + i;
      if (row < 0 || row >= row_.extent) {
        std::fill_n(to, left_columns_ * height, T(0));
        continue;
      }
      std::fill_n(to, low * height, T(0));
      pack(start + row * row_.step + low - column_.padding, plan_.lhs_batch_stride, used, high - low, height,
           to + low * height);
      std::fill_n(to + high * height, (left_columns_ - high) * height, T(0));
    }
  }

  // Adds the product of one panel and one panel to the result.
  void add_parts(int64_t block, T* sums) const {
    const int64_t panel = block / rights_, right = block % rights_;
    const int64_t width = vectors(right) * code_.lanes, height = lefts_.height(panel);
    T* total = sums + block * taps_ * slot_;
    for (int64_t part = 1; part < parts_; ++part) {
      const T* more = total + part * part_size_;
      for (int64_t i = 0; i < taps_ * slot_; ++i) total[i] += more[i];
    }
    const int64_t first_left = lefts_.start(panel), first_right = right * panel_width_;
    for (int64_t l = 0; l < std::min(height, plan_.batch - first_left); ++l) {
      for (int64_t f = 0; f < std::min(width, plan_.group_features - first_right); ++f) {
        T* target = out_ + (first_left + l) * plan_.out_batch_stride + (first_right + f) * plan_.out_feature_stride;
        for (int64_t tap = 0; tap < taps_; ++tap)
          target[tap / column_.places * row_.out_step + tap % column_.places * column_.out_step] =
              total[tap * slot_ + l * width + f];
      }
    }
  }

  const ConvolutionPlan& plan_;
  const PlaneCode<T>& code_;
  const T *lhs_, *rhs_;
  T* out_;
  const ConvolutionDimension row_, column_;
  const TileHeights lefts_;
  int64_t panel_width_, rights_, taps_, slot_, left_columns_;
  int64_t band_ = 1, bands_ = 1, chunk_ = 1, part_size_ = 0, parts_ = 1, groups_ = 1;
};

}  // namespace

template <class K>
void convolve_pairs(const ConvolutionPlan& plan, const typename K::Packed* lhs, const typename K::Packed* rhs,
                    typename K::Packed* out) {
  PairConvolution<K>(plan, lhs, rhs, out).run();
}
template void convolve_pairs<Singles>(const ConvolutionPlan&, const float*, const float*, float*);
template void convolve_pairs<Doubles>(const ConvolutionPlan&, const double*, const double*, double*);

}  // namespace capibara::cpu
