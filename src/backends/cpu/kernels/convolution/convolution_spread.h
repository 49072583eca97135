// Convolutions with few features out: the input is multiplied once with the whole kernel, and what every element of the
// window gives is added to the places that meet it.
//
// A matmul with a row for each feature out would pack more than it multiplies; here rows are (feature out, element of
// the window), and columns are the input as it is. Zeros of a dilated input, as in the gradient of a stride, are never
// met.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/planes/code.h"
#include "backends/cpu/kernels/convolution/convolution_plan.h"
#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/scratch.h"

namespace capibara::cpu {

template <class K>
class SpreadConvolution {
 public:
  using T = typename K::Packed;

  SpreadConvolution(const ConvolutionPlan& plan, const T* lhs, const T* rhs, T* out)
      : plan_(plan),
        lhs_(lhs),
        rhs_(rhs),
        out_(out),
        row_(plan.rows() ? *plan.rows() : single),
        column_(plan.dims.back()),
        kernel_rows_(kernel_sizes(), kernel_steps()),
        kernel_inner_(Axis::regular(plan.in_features, plan.kernel_in_stride)) {
    for (int64_t e = 0; e < column_.size; ++e) {
      const int64_t first = column_.padding - e * column_.dilation, step = column_.lhs_dilation;
      const int64_t phase = ((first % step) + step) % step;
      shifts_.push_back({phase, (first - phase) / step});
      margin_ = std::max(margin_, -shifts_.back().by);
    }
    const int64_t length = (column_.places + column_.lhs_dilation - 1) / column_.lhs_dilation;
    pitch_ = margin_ + std::max(length, column_.extent + shifts_[0].by) + 1;
  }

  void run() const {
    const int64_t bands = (row_.places + band - 1) / band, spread = kernel_rows_.extent();
    Scratch<T> kernel;
    multiply(lhs_, nullptr, nullptr, chunk_columns(), &kernel);
    const double cost =
        multiply_cost<K>(static_cast<double>(spread * plan_.in_features) * static_cast<double>(band * column_.places) /
                         static_cast<double>(row_.lhs_dilation * column_.lhs_dilation));
    parallel_for_cost(plan_.batch * bands, cost, [&](int64_t begin, int64_t end) {
      Scratch<T> sums(plan_.group_features * band * column_.lhs_dilation * pitch_, "sums of a convolution");
      Scratch<T> parts(spread * chunk_columns(), "parts of a convolution");
      for (int64_t task = begin; task < end; ++task)
        run_band(task / bands, task % bands * band, kernel.data(), sums.data(), parts.data());
      return 0;
    });
  }

 private:
  static constexpr int64_t band = 64, chunk = 4;  // rows of places, rows of the input that are multiplied at once
  static constexpr ConvolutionDimension single{1, 1, 1, 0, 1, 1, 0, 1, 0, 0};

  // Where an element of the window puts the first column of the input: a phase of the columns of places, and its index
  // there.
  struct Shift {
    int64_t phase, by;
  };

  Ints kernel_sizes() const { return {plan_.group_features, row_.size, column_.size}; }
  Ints kernel_steps() const { return {plan_.kernel_feature_stride, row_.kernel_step, column_.kernel_step}; }
  int64_t chunk_columns() const { return std::min(chunk, row_.extent) * column_.extent; }

  void run_band(int64_t image, int64_t first, const T* kernel, T* sums, T* parts) const {
    const int64_t count = std::min(band, row_.places - first), step = row_.lhs_dilation;
    const int64_t row_size = column_.lhs_dilation * pitch_;
    std::fill_n(sums, plan_.group_features * count * row_size, T(0));
    // Place p meets the row (p - padding + e * dilation) / step.
    auto down = [step](int64_t x) { return x >= 0 ? x / step : -((-x + step - 1) / step); };
    const int64_t from = std::max<int64_t>(0, down(first - row_.padding + step - 1));
    const int64_t to =
        std::min(row_.extent, down(first + count - 1 - row_.padding + (row_.size - 1) * row_.dilation) + 1);
    for (int64_t y = from; y < to; y += chunk) {
      const int64_t rows = std::min(chunk, to - y), columns = rows * column_.extent;
      const T* input = lhs_ + image * plan_.lhs_batch_stride + y * column_.extent;
      multiply(input, kernel, parts, columns);
      const T* part = parts;
      for (int64_t f = 0; f < plan_.group_features; ++f) {
        for (int64_t e = 0; e < row_.size; ++e) {
          for (const Shift& shift : shifts_) {
            for (int64_t r = 0; r < rows; ++r, part += column_.extent) {
              const int64_t place = (y + r) * step + row_.padding - e * row_.dilation - first;
              if (place < 0 || place >= count) continue;
              T* __restrict sum = sums + (f * count + place) * row_size + shift.phase * pitch_ + margin_ + shift.by;
              for (int64_t x = 0; x < column_.extent; ++x) sum[x] += part[x];
            }
          }
        }
      }
    }
    write(image, first, count, sums);
  }

  // to[element of the kernel][column of the input]; or packs the kernel for it.
  void multiply(const T* input, const T* kernel, T* to, int64_t count, Scratch<T>* packed = nullptr) const {
    const Axis rows = Axis::regular(kernel_rows_.extent(), count), columns = Axis::regular(count, 1);
    const Axis features = Axis::regular(plan_.in_features, plan_.lhs_feature_stride);
    auto pack_kernel = [&](int64_t first, int64_t some, int64_t k0, int64_t k, int64_t width, T* block) {
      pack_matrix<K, T>(rhs_, kernel_rows_, kernel_inner_, first, some, k0, k, width, block);
    };
    auto pack_input = [&](int64_t first, int64_t some, int64_t k0, int64_t k, int64_t width, T* block) {
      pack_matrix<K, T>(input, columns, features, first, some, k0, k, width, block);
    };
    Product<K> product{plan_.in_features, pack_kernel, pack_input, to, rows, columns};
    if (packed) {
      *packed = Scratch<T>(product.packed_left_size(), "kernel of a convolution");
      product.pack_left(packed->data());
    } else {
      product.packed_left = kernel;
      product.run();
    }
  }

  void write(int64_t image, int64_t first, int64_t count, const T* sums) const {
    const PlaneCode<T>& code = plane_code<T>();
    const int64_t phases = column_.lhs_dilation;
    for (int64_t i = 0; i < plan_.group_features * count; ++i) {
      const T* sum = sums + i * phases * pitch_ + margin_;
      T* to = out_ + image * plan_.out_batch_stride + i / count * plan_.out_feature_stride +
              (first + i % count) * row_.out_step;
      if (phases == 2) {
        code.join(sum, sum + pitch_, to, column_.places);
        continue;
      }
      for (int64_t p = 0; p < phases; ++p)
        code.put(sum + p * pitch_, to + p, phases, (column_.places - p + phases - 1) / phases);
    }
  }

  const ConvolutionPlan& plan_;
  const T *lhs_, *rhs_;
  T* out_;
  const ConvolutionDimension row_, column_;
  const Axis kernel_rows_, kernel_inner_;
  std::vector<Shift> shifts_;
  int64_t margin_ = 0, pitch_ = 0;
};

}  // namespace capibara::cpu
