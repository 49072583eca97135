// Nearest codes of vectors: scores are computed by GEMM tiles, and only the best candidates are kept.
//
// float32 codes are first compared as bfloat16, or as bytes, on processors that multiply those four times faster:
// on Neoverse N1, which has bytes only, 1024 codes of 64 elements take half the time. Codes whose scores are too close
// to decide, by a bound that holds for every vector, are compared again in double precision, as are float32 ties: the
// result is that of exact scores. Subtracting the mean of all codes changes scores only by a constant per vector and
// keeps the bound small; for the euclidean metric it is subtracted from vectors, too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "backends/cpu/kernels/gemm/product.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/quantization/vq_bytes.h"
#include "backends/cpu/kernels/quantization/vq_panels.h"
#include "backends/cpu/kernels/quantization/vq_sums.h"
#include "backends/cpu/kernels/targets.h"
#include "core/runtime/once.h"
#include "core/runtime/processor.h"
#include "core/runtime/thread_pool.h"

// Duplicate codes. The first of equal codes is the nearest: the others are left out, so that they do not become
// candidates again and again.

namespace capibara::cpu::vq {

// Calls visit(k) for each of `count` codes of `dim` elements that is equal, bit by bit, to one before it.
template <class T, class Visit>
void visit_repeated(const T* codes, int64_t count, int64_t dim, Visit&& visit) {
  const auto bytes = static_cast<std::size_t>(dim) * sizeof(T);
  std::unordered_multimap<std::uint64_t, int64_t> seen;
  seen.reserve(static_cast<std::size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    const T* code = codes + k * dim;
    std::uint64_t hash = 0;
    for (int64_t i = 0; i < dim; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, code + i, sizeof(T));
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    }
    const auto [begin, end] = seen.equal_range(hash);
    const bool repeated = std::any_of(
        begin, end, [&](const auto& other) { return std::memcmp(codes + other.second * dim, code, bytes) == 0; });
    if (repeated)
      visit(k);
    else
      seen.emplace(hash, k);
  }
}

// A codebook prepared for scoring: centred on its mean, with offsets, packed for this processor's matmuls.

// The format in which codes are first compared.
enum class Coarse { none, bfloat16s, bytes };

template <class T>
class Codebook {
 public:
  using K = typename KindOf<T>::type;

  Codebook(const T* codes, const Sizes& sizes, Coarse coarse)
      : codes_(codes), sizes_(sizes), mean_(sizes.dim, "mean code") {
    const int64_t count = sizes.codes, dim = sizes.dim;
    lengths_ = Scratch<double>(count, "lengths of codes");
    for (int64_t k = 0; k < count; ++k) lengths_[k] = std::sqrt(dot(codes + k * dim, codes + k * dim, dim));
    for (int64_t k = 0; k < count; ++k) max_length_ = std::max(max_length_, lengths_[k]);  // false for NaN
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
      if (coarse == Coarse::bfloat16s) make_bfloat16s();
      if (coarse == Coarse::bytes) make_bytes();
      if (coarse != Coarse::none) return;
    }
    fine_.emplace(shifted_.data(), offsets_.data(), count, dim);
  }

  bool finite() const { return finite_; }
  const T* mean() const { return mean_.data(); }
  double max_shifted() const { return max_shifted_; }
  double max_rounding() const { return max_rounding_; }
  const std::optional<Panels<Bfloat16>>& bfloat16s() const { return bfloat16s_; }
  const std::optional<BytePanels>& bytes() const { return bytes_; }
  const Panels<K>& fine() const {
    made_fine_.run([this] {
      if (!fine_) fine_.emplace(shifted_.data(), offsets_.data(), sizes_.codes, sizes_.dim);
    });
    return *fine_;
  }

  static double length_limit() { return std::is_same_v<T, float> ? 1e15 : 1e150; }

  // The score that decides among finite ones.
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

  // The score as the operation defines it, possibly infinite or NaN.
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

  void make_bfloat16s() {
    const int64_t count = sizes_.codes, dim = sizes_.dim;
    Scratch<Bfloat16Bits> bfloat16s(count * dim, "codes as bfloat16");
    for (int64_t k = 0; k < count; ++k) {
      const T* from = shifted_.data() + k * dim;
      Bfloat16Bits* to = bfloat16s.data() + k * dim;
      for (int64_t i = 0; i < dim; ++i) to[i] = to_bfloat16(from[i]);
      max_rounding_ = std::max(max_rounding_, rounding_length(from, to, dim));
    }
    bfloat16s_.emplace(bfloat16s.data(), offsets_.data(), count, dim);
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
  bool finite_ = true;  // and small enough that no score is infinite or NaN
  double max_length_ = 0, max_shifted_ = 0, max_rounding_ = 0;
  Scratch<T> mean_, shifted_, offsets_;
  std::optional<Panels<Bfloat16>> bfloat16s_;
  std::optional<BytePanels> bytes_;
  mutable Once made_fine_;
  mutable std::optional<Panels<K>> fine_;
};

}  // namespace capibara::cpu::vq

namespace capibara::cpu {

namespace {

using vq::BytePanels;
using vq::Candidates;
using vq::Coarse;
using vq::Codebook;
using vq::Metric;
using vq::Panels;
using vq::Sizes;

// ---- blocks of vectors -------------------------------------------------------------------------------------------

// Adds candidates from the scores of `rows` vectors against a chunk of codes. False if one has no room for more.
template <class S, int Bytes>
CAPIBARA_INLINE bool enter_chunk(const S* scores, int64_t step, const S* offsets, int64_t columns, int64_t first,
                                 int rows, Candidates<S>* candidates) {
  using L = vq::Scores<S, Bytes>;
  bool room = true;
  for (int r = 0; r < rows; r += 4) {
    typename L::V groups[4][vq::max_groups], most[4];
    vq::group_maxima<S, Bytes>(scores + r * step, step, offsets, columns, groups, most);
    for (int i = 0; i < 4 && r + i < rows; ++i) {
      Candidates<S>& own = candidates[r + i];
      const S greatest = L::greatest(most[i]);
      own.best = std::max(own.best, greatest);
      const S limit = own.best - own.slack;
      if (own.closed || greatest < limit || greatest == -std::numeric_limits<S>::infinity()) continue;
      vq::visit_high<S, Bytes>(scores + (r + i) * step, offsets, columns, groups[i], limit,
                               [&](int64_t column, S score) {
                                 if (!own.add(static_cast<int32_t>(first + column), score)) room = false;
                               });
    }
  }
  return room;
}

template <class S>
using EnterChunk = bool (*)(const S* scores, int64_t step, const S* offsets, int64_t columns, int64_t first, int rows,
                            Candidates<S>* candidates);

#define CAPIBARA_ENTER(NAME, TARGET, BYTES)                                                                           \
  template <class S>                                                                                                  \
  TARGET bool enter_##NAME(const S* scores, int64_t step, const S* offsets, int64_t columns, int64_t first, int rows, \
                           Candidates<S>* candidates) {                                                               \
    return enter_chunk<S, BYTES>(scores, step, offsets, columns, first, rows, candidates);                            \
  }
CAPIBARA_ENTER(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_ENTER(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_ENTER(avx512, CAPIBARA_AVX512, 64)
#endif

template <class S>
EnterChunk<S> chunk_function() {
#if defined(__x86_64__)
  if (has_avx512()) return enter_avx512<S>;
  if (has_avx2()) return enter_avx2<S>;
#endif
  return enter_plain<S>;
}

// Scores a block of vectors against all codes, in one kind of matmul.
template <class Rows>
class Pass {
 public:
  using P = typename Rows::P;
  using S = typename Rows::S;

  explicit Pass(const Rows& panels)
      : panels_(panels),
        packed_(panels.left_size(), "packed vectors"),
        scores_(vq::max_rows * panels.chunk(), "scores of codes") {
    std::fill_n(scores_.data(), vq::max_rows * panels.chunk(), S(0));
  }

  // `scales` of the vectors, if they are bytes.
  bool run(const P* vectors, int64_t count, Candidates<S>* candidates, const float* scales = nullptr) {
    static const EnterChunk<S> enter = chunk_function<S>();
    panels_.pack_vectors(vectors, count, packed_.data());
    const int64_t chunk = panels_.chunk();
    bool room = true;
    for (int64_t begin = 0; begin < panels_.count(); begin += chunk) {
      const int64_t end = std::min(begin + chunk, panels_.count());
      if constexpr (std::is_same_v<P, int8_t>)
        panels_.score(packed_.data(), scales, count, begin, end, scores_.data());
      else
        panels_.score(packed_.data(), count, begin, end, scores_.data());
      room = enter(scores_.data(), chunk, panels_.offsets() + begin, end - begin, begin, static_cast<int>(count),
                   candidates) &&
             room;
    }
    return room;
  }

 private:
  const Rows& panels_;
  Scratch<P> packed_;
  Scratch<S> scores_;
};

// Working memory of one thread for its blocks.
template <class T>
class Blocks {
 public:
  using K = typename KindOf<T>::type;

  Blocks(const Codebook<T>& codebook, const Sizes& sizes)
      : codebook_(codebook),
        sizes_(sizes),
        candidates_(vq::max_rows, "candidates"),
        shifted_(vq::max_rows * sizes.dim, "vectors around the mean code") {}

  static int64_t rows(Coarse coarse) {
    const int fine = Panels<K>::rows();
    if (coarse == Coarse::none) return fine;
    return std::min(fine, coarse == Coarse::bfloat16s ? Panels<Bfloat16>::rows() : BytePanels::rows());
  }

  // Finds the codes of up to rows() vectors.
  void encode(const T* vectors, int64_t count, int32_t* out) {
    for (int64_t r = 0; r < count; ++r) shift(vectors + r * sizes_.dim, r);
    bool done = false;
    if constexpr (std::is_same_v<T, float>) {
      if (codebook_.bfloat16s()) done = by_bfloat16s(count);
      if (codebook_.bytes() && misses_ < 4) done = by_bytes(count);
    }
    if (!done) by_fine(count);
    for (int64_t r = 0; r < count; ++r) out[r] = decide(vectors + r * sizes_.dim, r);
  }

  // The first of the nearest codes, or the first whose score is NaN.
  int32_t by_one(const T* vector) const {
    int64_t best = 0;
    double score = codebook_.defined(vector, 0);
    for (int64_t k = 1; k < sizes_.codes && !std::isnan(score); ++k) {
      const double other = codebook_.defined(vector, k);
      if (other <= score) continue;  // false for NaN
      best = k;
      score = other;
    }
    return static_cast<int32_t>(best);
  }

 private:
  enum class Answer { candidates, first_code, by_one };

  void shift(const T* from, int64_t row) {
    T* to = shifted_.data() + row * sizes_.dim;
    const T* mean = codebook_.mean();
    const bool euclidean = sizes_.metric == Metric::euclidean;
    for (int64_t i = 0; i < sizes_.dim; ++i) to[i] = euclidean ? from[i] - mean[i] : from[i];
    const double length = vq::rough_length(to, sizes_.dim);
    lengths_[row] = length;
    if (length <= Codebook<T>::length_limit()) {
      answers_[row] = !euclidean && length == 0 ? Answer::first_code : Answer::candidates;
      return;
    }
    answers_[row] = Answer::by_one;
    std::fill_n(to, sizes_.dim, T(0));
    lengths_[row] = 0;
  }

  // Sets how far below the best score the true best may be: twice the rounding error of both, in a matmul of T plus
  // `coarse`.
  void start(int64_t row, double coarse) {
    constexpr double unit = std::is_same_v<T, float> ? 0x1p-23 : 0x1p-52;
    const double most = codebook_.max_shifted();
    const double fine = unit * static_cast<double>(sizes_.dim + 16) * most * (lengths_[row] + most);
    candidates_[row].start(static_cast<T>(2 * (fine + coarse) * 1.001), answers_[row] != Answer::candidates);
  }

  bool by_bfloat16s(int64_t count) {
    if (!bfloat16_pass_) {
      bfloat16_pass_.emplace(*codebook_.bfloat16s());
      bfloat16s_ = Scratch<Bfloat16Bits>(vq::max_rows * sizes_.dim, "vectors as bfloat16");
    }
    for (int64_t r = 0; r < count; ++r) {
      const T* from = shifted_.data() + r * sizes_.dim;
      Bfloat16Bits* to = bfloat16s_.data() + r * sizes_.dim;
      for (int64_t i = 0; i < sizes_.dim; ++i) to[i] = vq::to_bfloat16(static_cast<float>(from[i]));
      const double lost = vq::rounding_length(from, to, sizes_.dim);
      start(r, lost * codebook_.max_shifted() + (lengths_[r] + lost) * codebook_.max_rounding());
    }
    return bfloat16_pass_->run(bfloat16s_.data(), count, candidates_.data());
  }

  // If byte rounding loses too much and candidates run out of room, later blocks skip this step.
  bool by_bytes(int64_t count) {
    if (!byte_pass_) {
      byte_pass_.emplace(*codebook_.bytes());
      bytes_ = Scratch<int8_t>(vq::max_rows * sizes_.dim, "vectors as bytes");
    }
    float scales[vq::max_rows];
    for (int64_t r = 0; r < count; ++r) {
      const T* from = shifted_.data() + r * sizes_.dim;
      int8_t* to = bytes_.data() + r * sizes_.dim;
      scales[r] = vq::round_to_bytes(from, sizes_.dim, vq::largest_size(from, sizes_.dim), to);
      const double lost = vq::byte_rounding_length(from, to, scales[r], sizes_.dim);
      start(r, lost * codebook_.max_shifted() + (lengths_[r] + lost) * codebook_.max_rounding());
    }
    const bool room = byte_pass_->run(bytes_.data(), count, candidates_.data(), scales);
    misses_ += room ? 0 : 1;
    return room;
  }

  void by_fine(int64_t count) {
    if (!fine_) fine_.emplace(codebook_.fine());
    for (int64_t r = 0; r < count; ++r) start(r, 0);
    if (fine_->run(shifted_.data(), count, candidates_.data())) return;
    for (int64_t r = 0; r < count; ++r) {
      if (candidates_[r].count == vq::max_candidates) answers_[r] = Answer::by_one;
    }
  }

  int32_t decide(const T* vector, int64_t row) {
    if (answers_[row] == Answer::first_code) return 0;
    if (answers_[row] == Answer::by_one) return by_one(vector);
    Candidates<T>& own = candidates_[row];
    own.drop_low();
    int best = 0;
    if (own.count > 1) {
      double score = codebook_.exact(vector, own.index[0]);
      for (int i = 1; i < own.count; ++i) {
        const double other = codebook_.exact(vector, own.index[i]);
        if (!(other > score)) continue;
        best = i;
        score = other;
      }
    }
    return own.index[best];
  }

  const Codebook<T>& codebook_;
  Sizes sizes_;
  Scratch<Candidates<T>> candidates_;
  Scratch<T> shifted_;
  Scratch<Bfloat16Bits> bfloat16s_;
  Scratch<int8_t> bytes_;
  std::optional<Pass<Panels<Bfloat16>>> bfloat16_pass_;
  std::optional<Pass<BytePanels>> byte_pass_;
  std::optional<Pass<Panels<K>>> fine_;
  int misses_ = 0;  // blocks that needed a second pass
  double lengths_[vq::max_rows] = {};
  Answer answers_[vq::max_rows] = {};
};

// ---- the kernel --------------------------------------------------------------------------------------------------

template <class T>
void encode_all(const T* vectors, const T* codes, const Sizes& sizes, int32_t* out) {
  const bool many = std::is_same_v<T, float> && sizes.rows >= 64 && sizes.codes >= 32;
  const Coarse coarse = !many                  ? Coarse::none
                        : has_tile<Bfloat16>() ? Coarse::bfloat16s
                        : vq::has_byte_tile()  ? Coarse::bytes
                                               : Coarse::none;
  const Codebook<T> codebook(codes, sizes, coarse);
  const double products = static_cast<double>(sizes.codes) * static_cast<double>(sizes.dim);
  if (!codebook.finite()) {
    parallel_for_cost(sizes.rows, products, [&](int64_t begin, int64_t end) {
      const Blocks<T> blocks(codebook, sizes);
      for (int64_t r = begin; r < end; ++r) out[r] = blocks.by_one(vectors + r * sizes.dim);
      return 0;
    });
    return;
  }
  const int64_t rows = Blocks<T>::rows(coarse), count = (sizes.rows + rows - 1) / rows;
  const double cost =
      coarse != Coarse::none ? multiply_cost<Bfloat16>(products) : multiply_cost<typename KindOf<T>::type>(products);
  parallel_for_cost(count, cost * static_cast<double>(rows), [&](int64_t begin, int64_t end) {
    Blocks<T> blocks(codebook, sizes);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * rows;
      blocks.encode(vectors + first * sizes.dim, std::min(rows, sizes.rows - first), out + first);
    }
    return 0;
  });
}

// All elements of an operand as T.
template <class T>
const T* widened(DType dtype, const std::byte* data, int64_t count, Scratch<T>& hold) {
  return product_operand<T>(dtype, dtype, data, count, hold);
}

template <class T>
HostKernel encode_kernel(DType dtype, const Sizes& sizes) {
  return [=](std::byte* const* buffers) {
    Scratch<T> vector_hold, code_hold;
    const T* vectors = widened<T>(dtype, buffers[0], sizes.batch * sizes.rows * sizes.dim, vector_hold);
    const T* codes = widened<T>(dtype, buffers[1], sizes.batch * sizes.codes * sizes.dim, code_hold);
    auto* out = reinterpret_cast<int32_t*>(buffers[2]);
    const double products =
        static_cast<double>(sizes.rows) * static_cast<double>(sizes.codes) * static_cast<double>(sizes.dim);
    auto run = [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        encode_all(vectors + b * sizes.rows * sizes.dim, codes + b * sizes.codes * sizes.dim, sizes,
                   out + b * sizes.rows);
      }
      return 0;
    };
    if (sizes.batch > 1 && products < 1e6) {
      parallel_for_cost(sizes.batch, products * 0.05 + 2000, run);
    } else {
      run(0, sizes.batch);
    }
  };
}

HostKernel make_encode(const KernelRequest& request) {
  const ArrayType &vectors = request.inputs[0], &codes = request.inputs[1];
  if (vectors.size() == 0 || codes.size() == 0) return {};
  const std::string& metric = request.attrs.text("distance_metric");
  Sizes sizes;
  sizes.dim = vectors.shape.back();
  sizes.rows = vectors.shape[vectors.shape.size() - 2];
  sizes.codes = codes.shape[codes.shape.size() - 2];
  sizes.batch = vectors.size() / (sizes.rows * sizes.dim);
  sizes.metric = metric == "euclidean" ? Metric::euclidean : metric == "cosine" ? Metric::cosine : Metric::dot_product;
  switch (vectors.dtype) {
    case DType::float32:
    case DType::bfloat16:
    case DType::float16:
      return encode_kernel<float>(vectors.dtype, sizes);
    case DType::float64:
      return encode_kernel<double>(vectors.dtype, sizes);
    default:
      return {};
  }
}

}  // namespace

KernelMakers vq_encode_makers() { return {{"vq_encode", make_encode}}; }

}  // namespace capibara::cpu
