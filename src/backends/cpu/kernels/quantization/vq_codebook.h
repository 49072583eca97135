// A codebook made ready for scores: around its mean, with offsets, packed for the products of this processor.
#pragma once

#include <cmath>
#include <optional>

#include "backends/cpu/kernels/quantization/vq_bytes.h"
#include "backends/cpu/kernels/quantization/vq_panels.h"
#include "backends/cpu/kernels/quantization/vq_repeated.h"
#include "backends/cpu/kernels/quantization/vq_sums.h"
#include "core/runtime/once.h"

namespace capibara::cpu::vq {

// What codes are first compared as.
enum class Coarse { none, brains, bytes };

template <class T>
class Codebook {
 public:
  using K = typename KindOf<T>::type;

  Codebook(const T* codes, const Sizes& sizes, Coarse coarse)
      : codes_(codes), sizes_(sizes), mean_(sizes.dim, "mean code") {
    const int64_t count = sizes.codes, dim = sizes.dim;
    lengths_ = Scratch<double>(count, "lengths of codes");
    for (int64_t k = 0; k < count; ++k) lengths_[k] = std::sqrt(dot(codes + k * dim, codes + k * dim, dim));
    for (int64_t k = 0; k < count; ++k) max_length_ = std::max(max_length_, lengths_[k]);  // false of NaN
    for (int64_t k = 0; k < count; ++k) finite_ = finite_ && std::isfinite(lengths_[k]);
    if (!finite_ || max_length_ > length_limit()) {
      finite_ = false;
      return;
    }
    take_mean();
    shifted_ = Scratch<T>(count * dim, "codes around their mean");
    offsets_ = Scratch<T>(count, "offsets of codes");
    for (int64_t k = 0; k < count; ++k) {
      T* to = shifted_.data() + k * dim;
      const double factor = factor_of(k);
      for (int64_t i = 0; i < dim; ++i)
        to[i] = static_cast<T>(static_cast<double>(codes[k * dim + i]) * factor) - mean_[i];
      const double square = dot(to, to, dim);
      max_shifted_ = std::max(max_shifted_, std::sqrt(square));
      offsets_[k] = sizes.metric == Metric::euclidean ? static_cast<T>(-0.5 * square) : T(0);
    }
    if (sizes.rows >= 64) {
      visit_repeated(codes, count, dim, [&](int64_t k) { offsets_[k] = -std::numeric_limits<T>::infinity(); });
    }
    if constexpr (std::is_same_v<T, float>) {
      if (coarse == Coarse::brains) make_brains();
      if (coarse == Coarse::bytes) make_bytes();
      if (coarse != Coarse::none) return;
    }
    fine_.emplace(shifted_.data(), offsets_.data(), count, dim);
  }

  bool finite() const { return finite_; }
  const T* mean() const { return mean_.data(); }
  double max_shifted() const { return max_shifted_; }
  double max_rounding() const { return max_rounding_; }
  const std::optional<Panels<Brains>>& brains() const { return brains_; }
  const std::optional<BytePanels>& bytes() const { return bytes_; }
  const Panels<K>& fine() const {
    made_fine_.run([this] {
      if (!fine_) fine_.emplace(shifted_.data(), offsets_.data(), sizes_.codes, sizes_.dim);
    });
    return *fine_;
  }

  static double length_limit() { return std::is_same_v<T, float> ? 1e15 : 1e150; }

  // The score that decides between finite ones.
  double exact(const T* vector, int64_t k) const {
    const T* code = codes_ + k * sizes_.dim;
    switch (sizes_.metric) {
      case Metric::euclidean:
        return -squared_difference(vector, code, sizes_.dim);
      case Metric::cosine:
        return dot(vector, code, sizes_.dim) * factor_of(k);
      case Metric::dot_product:
        return dot(vector, code, sizes_.dim);
    }
    return 0;
  }

  // The score as the operation defines it, infinite or NaN where that is.
  double defined(const T* vector, int64_t k) const {
    const double product = dot(vector, codes_ + k * sizes_.dim, sizes_.dim);
    return sizes_.metric == Metric::euclidean ? product - lengths_[k] * lengths_[k] / 2 : product * factor_of(k);
  }

 private:
  double factor_of(int64_t k) const {
    return sizes_.metric != Metric::cosine ? 1 : lengths_[k] == 0 ? 0 : 1 / lengths_[k];
  }

  void take_mean() {
    Scratch<double> sums(sizes_.dim, "mean code");
    std::fill_n(sums.data(), sizes_.dim, 0.0);
    for (int64_t k = 0; k < sizes_.codes; ++k) {
      const double factor = factor_of(k) / static_cast<double>(sizes_.codes);
      for (int64_t i = 0; i < sizes_.dim; ++i) sums[i] += static_cast<double>(codes_[k * sizes_.dim + i]) * factor;
    }
    for (int64_t i = 0; i < sizes_.dim; ++i) mean_[i] = static_cast<T>(sums[i]);
  }

  void make_brains() {
    const int64_t count = sizes_.codes, dim = sizes_.dim;
    Scratch<BrainBits> brains(count * dim, "codes as bfloat16");
    for (int64_t k = 0; k < count; ++k) {
      const T* from = shifted_.data() + k * dim;
      BrainBits* to = brains.data() + k * dim;
      for (int64_t i = 0; i < dim; ++i) to[i] = to_brain(from[i]);
      max_rounding_ = std::max(max_rounding_, rounding_length(from, to, dim));
    }
    brains_.emplace(brains.data(), offsets_.data(), count, dim);
  }

  void make_bytes() {
    const int64_t count = sizes_.codes, dim = sizes_.dim;
    Scratch<int8_t> bytes(count * dim, "codes as bytes");
    const float scale =
        round_to_bytes(shifted_.data(), count * dim, largest_size(shifted_.data(), count * dim), bytes.data());
    for (int64_t k = 0; k < count; ++k) {
      const double lost = byte_rounding_length(shifted_.data() + k * dim, bytes.data() + k * dim, scale, dim);
      max_rounding_ = std::max(max_rounding_, lost);
    }
    bytes_.emplace(bytes.data(), scale, offsets_.data(), count, dim);
  }

  const T* codes_;
  Sizes sizes_;
  Scratch<double> lengths_;
  bool finite_ = true;  // and so far from overflow that no score is infinite or NaN
  double max_length_ = 0, max_shifted_ = 0, max_rounding_ = 0;
  Scratch<T> mean_, shifted_, offsets_;
  std::optional<Panels<Brains>> brains_;
  std::optional<BytePanels> bytes_;
  mutable Once made_fine_;
  mutable std::optional<Panels<K>> fine_;
};

}  // namespace capibara::cpu::vq
