// Matmuls not worth packing: vectors by matrices at memory speed, and dots of long vectors.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/gemm/gemv.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/targets.h"
#include "backends/cpu/kernels/vector_lanes.h"
#include "core/runtime/processor.h"

// Floats, doubles, bfloat16 and bytes as vectors in registers, and sums of the halves of vectors.

namespace capibara::cpu::vector_loop {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// `Lanes` elements as floats.
template <int Lanes, class T>
CAPIBARA_INLINE void widen(const T* from, Vector<float, Lanes>& to) {
  if constexpr (std::is_same_v<T, float>) {
    __builtin_memcpy(&to, from, sizeof(to));
  } else if constexpr (std::is_same_v<T, Bfloat16Bits>) {
    using Wide = Vector<std::uint32_t, Lanes>;
    Vector<std::uint16_t, Lanes> bits;
    __builtin_memcpy(&bits, from, sizeof(bits));
    to = reinterpret_cast<Vector<float, Lanes>>(__builtin_convertvector(bits, Wide) << 16);
  } else {
    Vector<std::int32_t, Lanes> words;
    widen_bytes<Lanes>(from, words);
    to = __builtin_convertvector(words, Vector<float, Lanes>);
  }
}

template <int Lanes>
CAPIBARA_INLINE void widen(const double* from, Vector<double, Lanes>& to) {
  __builtin_memcpy(&to, from, sizeof(to));
}

// The type in which elements of a type are summed.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
CAPIBARA_INLINE SumOf<T> widened_one(T value) {
  if constexpr (std::is_same_v<T, Bfloat16Bits>)
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
  else
    return static_cast<SumOf<T>>(value);
}

// True if vectors of half as many lanes exist.
template <int Lanes, class R>
constexpr bool has_half = Lanes * sizeof(R) > 16;

// The lower half of a vector plus its upper half.
template <int Lanes, class R, int... I>
CAPIBARA_INLINE void add_halves(const Vector<R, Lanes>& whole, Vector<R, Lanes / 2>& sum,
                                std::integer_sequence<int, I...>) {
  sum = __builtin_shufflevector(whole, whole, I...) + __builtin_shufflevector(whole, whole, (I + Lanes / 2)...);
}

#undef CAPIBARA_INLINE

// Dots of a vector and the rows of a matrix: four rows at a time, all but the last few elements in vectors.

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// Multiplies a vector of x by one of each row, and adds to the rows' sums.
template <int Lanes, int Rows, class T, class R>
CAPIBARA_INLINE void add_products(const R* x, const T* rows, int64_t row_step, int64_t k, Vector<R, Lanes>* sum) {
  Vector<R, Lanes> own, weights;
  widen<Lanes>(x + k, own);
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    widen<Lanes>(rows + r * row_step + k, weights);
    sum[r] += own * weights;
  }
}

// Adds the remaining elements from k on, with vectors as wide as fit; folds the sums to half their lanes, and so on.
template <int Lanes, int Rows, class T, class R>
CAPIBARA_INLINE void finish_dots(const R* x, const T* rows, int64_t row_step, int64_t k, int64_t inner,
                                 Vector<R, Lanes>* sum, R* out) {
  if (k + Lanes <= inner) {
    add_products<Lanes, Rows>(x, rows, row_step, k, sum);
    k += Lanes;
  }
  if constexpr (has_half<Lanes, R>) {
    Vector<R, Lanes / 2> half[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) add_halves<Lanes, R>(sum[r], half[r], std::make_integer_sequence<int, Lanes / 2>());
    finish_dots<Lanes / 2, Rows>(x, rows, row_step, k, inner, half, out);
  } else {
    if constexpr (Rows == 4 && Lanes == 4) {
      const auto &a = sum[0], &b = sum[1], &c = sum[2], &d = sum[3];
      const auto ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const auto cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const auto all = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
      __builtin_memcpy(out, &all, sizeof(all));
    } else {
      for (int r = 0; r < Rows; ++r) {
        if constexpr (Lanes == 4)
          out[r] = (sum[r][0] + sum[r][2]) + (sum[r][1] + sum[r][3]);
        else
          out[r] = sum[r][0] + sum[r][1];
      }
    }
    for (; k < inner; ++k) {
      for (int r = 0; r < Rows; ++r) out[r] += x[k] * widened_one(rows[r * row_step + k]);
    }
  }
}

template <int Lanes, int Rows, class T, class R>
CAPIBARA_INLINE void dots_of(const R* x, const T* rows, int64_t row_step, int64_t inner, R* out) {
  using V = Vector<R, Lanes>;
  V sum[Rows] = {}, other[Rows] = {};
  int64_t k = 0;
  for (; k + 2 * Lanes <= inner; k += 2 * Lanes) {
    add_products<Lanes, Rows>(x, rows, row_step, k, sum);
    add_products<Lanes, Rows>(x, rows, row_step, k + Lanes, other);
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) sum[r] += other[r];
  finish_dots<Lanes, Rows>(x, rows, row_step, k, inner, sum, out);
}

template <int Lanes, class T, class R>
CAPIBARA_INLINE void dots_in(const R* x, const T* rows, int64_t row_step, int64_t inner, R* out, int64_t count) {
  int64_t r = 0;
  for (; r + 4 <= count; r += 4) dots_of<Lanes, 4>(x, rows + r * row_step, row_step, inner, out + r);
  for (; r < count; ++r) dots_of<Lanes, 1>(x, rows + r * row_step, row_step, inner, out + r);
}

#undef CAPIBARA_INLINE

}  // namespace capibara::cpu::vector_loop

// Loops of a vector of floats by a matrix of floats, bfloat16 or bytes, widened in registers, and of doubles by a
// matrix of doubles: weights are read once, at their size.
//
// Used by gemv.cpp alone, which splits the work into pieces for threads.

namespace capibara::cpu {

// Loops for one matrix type, for the current processor.
template <class T>
struct VectorLoops {
  using Sum = vector_loop::SumOf<T>;
  // out[n] = sum over k of x[k] * matrix[k * row_step + n].
  void (*add_rows)(const Sum* x, const T* matrix, int64_t row_step, int64_t inner, Sum* out, int64_t count);
  // out[r] = sum over k of x[k] * rows[r * row_step + k].
  void (*dots)(const Sum* x, const T* rows, int64_t row_step, int64_t inner, Sum* out, int64_t count);
};

namespace vector_loop {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// Eight rows by their factors, for `Vectors` x `Lanes` columns, added to out. Each column adds its rows in order, so
// that its bits do not depend on its neighbours.
template <int Lanes, int Vectors, class T, class R>
CAPIBARA_INLINE void add_columns(const R* factor, const T* row, int64_t row_step, R* out) {
  using V = Vector<R, Lanes>;
  V sum[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) __builtin_memcpy(&sum[v], out + v * Lanes, sizeof(V));
#pragma GCC unroll 8
  for (int t = 0; t < 8; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      V weights;
      widen<Lanes>(row + t * row_step + v * Lanes, weights);
      sum[v] += factor[t] * weights;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) __builtin_memcpy(out + v * Lanes, &sum[v], sizeof(V));
}

// Columns from n on, with vectors as wide as still fit. Returns the number of columns done.
template <int Lanes, class T, class R>
CAPIBARA_INLINE int64_t add_last_columns(const R* factor, const T* row, int64_t row_step, R* out, int64_t n,
                                         int64_t count) {
  for (; n + Lanes <= count; n += Lanes) add_columns<Lanes, 1>(factor, row + n, row_step, out + n);
  if constexpr (has_half<Lanes, R>) n = add_last_columns<Lanes / 2>(factor, row, row_step, out, n, count);
  return n;
}

template <int Lanes, class T, class R>
CAPIBARA_INLINE void add_rows_in(const R* x, const T* matrix, int64_t row_step, int64_t inner, R* __restrict out,
                                 int64_t count) {
  for (int64_t n = 0; n < count; ++n) out[n] = 0;
  int64_t k = 0;
  for (; k + 8 <= inner; k += 8) {
    const T* row = matrix + k * row_step;
    int64_t n = 0;
    for (; n + 4 * Lanes <= count; n += 4 * Lanes) add_columns<Lanes, 4>(x + k, row + n, row_step, out + n);
    n = add_last_columns<Lanes>(x + k, row, row_step, out, n, count);
    for (; n < count; ++n) {
      for (int t = 0; t < 8; ++t) out[n] += x[k + t] * widened_one(row[t * row_step + n]);
    }
  }
  for (; k < inner; ++k) {
    for (int64_t n = 0; n < count; ++n) out[n] += x[k] * widened_one(matrix[k * row_step + n]);
  }
}

#define CAPIBARA_LOOPS(NAME, TARGET, BYTES)                                                                          \
  template <class T, class R>                                                                                        \
  TARGET void add_rows_##NAME(const R* x, const T* matrix, int64_t row_step, int64_t inner, R* out, int64_t count) { \
    add_rows_in<BYTES / static_cast<int>(sizeof(R))>(x, matrix, row_step, inner, out, count);                        \
  }                                                                                                                  \
  template <class T, class R>                                                                                        \
  TARGET void dots_##NAME(const R* x, const T* rows, int64_t row_step, int64_t inner, R* out, int64_t count) {       \
    dots_in<BYTES / static_cast<int>(sizeof(R))>(x, rows, row_step, inner, out, count);                              \
  }
CAPIBARA_LOOPS(plain, , 16)
#if defined(__x86_64__)
CAPIBARA_LOOPS(avx2, CAPIBARA_AVX2, 32)
CAPIBARA_LOOPS(avx512, CAPIBARA_AVX512, 64)
#endif
#undef CAPIBARA_LOOPS

template <class T>
inline VectorLoops<T> choose_loops() {
#if defined(__x86_64__)
  if (has_avx512()) {
    return {add_rows_avx512<T, SumOf<T>>, dots_avx512<T, SumOf<T>>};
  }
  if (has_avx2()) return {add_rows_avx2<T, SumOf<T>>, dots_avx2<T, SumOf<T>>};
#endif
  return {add_rows_plain<T, SumOf<T>>, dots_plain<T, SumOf<T>>};
}

}  // namespace vector_loop

template <class T>
const VectorLoops<T>& vector_loops() {
  static const VectorLoops<T> loops = vector_loop::choose_loops<T>();
  return loops;
}

#undef CAPIBARA_INLINE

namespace {

#define CAPIBARA_INLINE inline __attribute__((always_inline))

// The textbook product: std::complex also checks for infinities that became NaN, which jax does not.
template <class T>
CAPIBARA_INLINE void add_product(T& sum, const T& x, const T& y) {
  if constexpr (Parts<T>::count == 2) {
    sum = T((sum.real() + x.real() * y.real()) - x.imag() * y.imag(),
            (sum.imag() + x.real() * y.imag()) + x.imag() * y.real());
  } else {
    sum += x * y;
  }
}

template <class V, class T>
CAPIBARA_INLINE V load_vector(const T* from) {
  using Sum = std::remove_cvref_t<decltype(V{}[0])>;
  V v;
  if constexpr (std::is_same_v<T, Sum>) {
    __builtin_memcpy(&v, from, 16);
  } else {
#pragma GCC unroll 4
    for (int l = 0; l < static_cast<int>(16 / sizeof(Sum)); ++l) v[l] = packed_element<Sum>(from[l]);
  }
  return v;
}

// Dots of x with a few rows at once: sixteen sums (or four vectors) side by side, then folded in halves. The order of
// summation is the same for every number of rows.
template <int Rows, class T, class Sum>
CAPIBARA_INLINE void dots(const T* x, int64_t x_step, const T* const* rows, int64_t step, int64_t count, Sum* out) {
  constexpr int64_t side = 16;
  Sum sums[Rows][side] = {};
  int64_t i = 0;
  if (x_step == 1 && step == 1) {
    if constexpr (std::is_floating_point_v<Sum>) {
      typedef Sum V __attribute__((vector_size(16)));
      constexpr int lanes = 16 / static_cast<int>(sizeof(Sum)), vectors = static_cast<int>(side) / lanes;
      V vector_sums[Rows][vectors] = {};
      for (; i + side <= count; i += side) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          const V own = load_vector<V>(x + i + v * lanes);
#pragma GCC unroll 4
          for (int r = 0; r < Rows; ++r) vector_sums[r][v] += own * load_vector<V>(rows[r] + i + v * lanes);
        }
      }
      for (int r = 0; r < Rows; ++r) __builtin_memcpy(sums[r], vector_sums[r], sizeof(sums[r]));
    } else {
      for (; i + side <= count; i += side) {
        for (int r = 0; r < Rows; ++r) {
          for (int64_t s = 0; s < side; ++s)
            add_product(sums[r][s], packed_element<Sum>(x[i + s]), packed_element<Sum>(rows[r][i + s]));
        }
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int64_t p = i; p < count; ++p) {
      add_product(sums[r][(p - i) % side], packed_element<Sum>(x[p * x_step]), packed_element<Sum>(rows[r][p * step]));
    }
    for (int64_t half = side / 2; half > 0; half /= 2) {
      for (int64_t s = 0; s < half; ++s) sums[r][s] += sums[r][s + half];
    }
    out[r] = sums[r][0];
  }
}

constexpr int64_t dot_block = 8192;  // long dots are sums of blocks, whichever thread computes them

// One long dot: blocks in parallel, combined in order.
template <class T, class Sum>
Sum long_dot(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t count) {
  const int64_t blocks = std::max<int64_t>(1, (count + dot_block - 1) / dot_block);
  Scratch<Sum> partial(blocks, "a dot product");
  parallel_for_cost(blocks, static_cast<double>(dot_block) * 0.2 * Parts<Sum>::count, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * dot_block;
      const T* row = y + first * y_step;
      dots<1>(x + first * x_step, x_step, &row, y_step, std::min(dot_block, count - first), &partial[b]);
    }
    return 0;
  });
  Sum total = partial[0];
  for (int64_t b = 1; b < blocks; ++b) total += partial[b];
  return total;
}

// Four vectors at a time, eight rows by their factors added to sums.
template <class Sum>
CAPIBARA_INLINE int64_t add_eight_rows(const Sum* factor, const Sum* row, int64_t row_step, Sum* out, int64_t count) {
  typedef Sum V __attribute__((vector_size(16)));
  constexpr int lanes = 16 / static_cast<int>(sizeof(Sum));
  int64_t n = 0;
  for (; n + 4 * lanes <= count; n += 4 * lanes) {
    V sum[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) __builtin_memcpy(&sum[v], out + n + v * lanes, 16);
#pragma GCC unroll 8
    for (int t = 0; t < 8; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) sum[v] += factor[t] * load_vector<V>(row + t * row_step + n + v * lanes);
    }
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) __builtin_memcpy(out + n + v * lanes, &sum[v], 16);
  }
  return n;
}

// out[n] = sum of x[k] * matrix[k][n] where the matrix's rows are contiguous: adds eight rows at a time to a strip of
// out.
template <class T, class Sum>
void add_rows(const T* x, int64_t x_step, const T* matrix, int64_t row_step, int64_t inner, Sum* __restrict out,
              int64_t count) {
  std::fill_n(out, count, Sum(0));
  int64_t k = 0;
  if constexpr (Parts<Sum>::count == 1) {
    for (; k + 8 <= inner; k += 8) {
      Sum factor[8];
      for (int64_t t = 0; t < 8; ++t) factor[t] = packed_element<Sum>(x[(k + t) * x_step]);
      const T* row = matrix + k * row_step;
      int64_t n = 0;
      if constexpr (std::is_same_v<T, Sum> && std::is_floating_point_v<Sum>)
        n = add_eight_rows<Sum>(factor, row, row_step, out, count);
      for (; n < count; ++n) {
        Sum sum = out[n];
#pragma GCC unroll 8
        for (int64_t t = 0; t < 8; ++t) sum += factor[t] * packed_element<Sum>(row[n + t * row_step]);
        out[n] = sum;
      }
    }
  }
  for (; k < inner; ++k) {
    const Sum factor = packed_element<Sum>(x[k * x_step]);
    const T* row = matrix + k * row_step;
    for (int64_t n = 0; n < count; ++n) add_product(out[n], factor, packed_element<Sum>(row[n]));
  }
}

// How a matrix of contiguous rows is partitioned: in long pieces of rows, since memory reaches full speed only in long
// sequential reads. Where that leaves too few pieces, fixed parts of the inner dimension are summed separately.
struct Strips {
  static constexpr int64_t width = 4096, shared_out = 16;  // columns of a piece; enough pieces to parallelise
  int64_t inner, count, pieces, parts, part;

  Strips(int64_t inner, int64_t count) : inner(inner), count(count), pieces((count + width - 1) / width) {
    const bool whole = inner * count < 128 * 1024 || pieces >= shared_out;
    parts = whole ? 1 : std::clamp<int64_t>(shared_out / pieces, 1, std::max<int64_t>(1, inner / 32));
    part = (inner + parts * 8 - 1) / (parts * 8) * 8;
  }

  // Calls add(first k, number of k, first column, number of columns, sums), then adds the parts in order.
  template <class Sum, class Add>
  void run(double cost, Sum* out, Add&& add) const {
    Scratch<Sum> partial;
    if (parts > 1) partial = Scratch<Sum>((parts - 1) * count, "parts of a product");
    const double task_cost = cost * static_cast<double>(std::min(width, count)) / static_cast<double>(parts);
    parallel_for_cost(pieces * parts, task_cost, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t p = task / pieces, first = task % pieces * width, k0 = std::min(p * part, inner);
        Sum* sums = p == 0 ? out : partial.data() + (p - 1) * count;
        add(k0, std::min(part, inner - k0), first, std::min(width, count - first), sums + first);
      }
      return 0;
    });
    for (int64_t p = 1; p < parts; ++p) {
      const Sum* more = partial.data() + (p - 1) * count;
      for (int64_t n = 0; n < count; ++n) out[n] += more[n];
    }
  }
};

// Nanoseconds for one output element's `inner` elements: memory-bound, about 20 GB/s.
template <class T>
double row_cost(int64_t inner) {
  return static_cast<double>(inner) * static_cast<double>(sizeof(T)) / 20;
}

// A vector of floats by a matrix of floats, bfloat16 or bytes, or one of doubles by a matrix of doubles.
template <class T, class Sum = vector_loop::SumOf<T>>
bool floats_by_matrix(const Sum* x, const Matrix<T>& matrix, Sum* out, const Axis& places) {
  const int64_t inner = matrix.inner.extent(), count = matrix.free.extent();
  const bool regular = matrix.inner.is_regular() && matrix.free.is_regular() && places.is_regular();
  if (!regular || (count > 1 && places.stride() != 1)) return false;
  const VectorLoops<T>& loops = vector_loops<T>();
  const T* data = matrix.data + matrix.free.at(0);
  out += places.at(0);
  if (matrix.inner.stride() == 1 || inner == 1) {
    const int64_t step = matrix.free.stride();
    constexpr int64_t rows = 16;  // a chunk is a multiple of the number of rows summed at once
    parallel_for_cost((count + rows - 1) / rows, rows * row_cost<T>(inner), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * rows;
      loops.dots(x, data + first * step, step, inner, out + first, std::min(end * rows, count) - first);
      return 0;
    });
    return true;
  }
  if (matrix.free.stride() != 1 && count > 1) return false;
  const int64_t step = matrix.inner.stride();
  auto add = [&](int64_t k, int64_t some, int64_t column, int64_t columns, Sum* sums) {
    loops.add_rows(x + k, data + k * step + column, step, some, sums, columns);
  };
  Strips(inner, count).run(row_cost<T>(inner), out, add);
  return true;
}

// The vector as contiguous numbers of its accumulator type.
template <class T, class Sum = vector_loop::SumOf<T>>
const Sum* as_floats(const Matrix<T>& vector, int64_t row, Scratch<Sum>& hold) {
  const T* x = vector.data + vector.free.at(row);
  const int64_t inner = vector.inner.extent();
  if constexpr (std::is_same_v<T, Sum>) {
    if (vector.inner.contiguous(0, inner)) return x + vector.inner.at(0);
  }
  hold = Scratch<Sum>(inner, "a vector");
  for (int64_t k = 0; k < inner; ++k) hold[k] = packed_element<Sum>(x[vector.inner.at(k)]);
  return hold.data();
}

// A vector by a matrix whose axes are regular; `places`: offsets of the results. False: not for these strides.
template <class T, class Sum>
bool vector_by_matrix(const Matrix<T>& vector, const Matrix<T>& matrix, Sum* out, const Axis& places) {
  const int64_t inner = matrix.inner.extent(), count = matrix.free.extent();
  if (!vector.inner.is_regular() || !matrix.inner.is_regular() || !places.is_regular()) return false;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Bfloat16Bits>) {
    Scratch<Sum> hold;
    if (count > 1 && floats_by_matrix<T>(as_floats(vector, 0, hold), matrix, out, places)) return true;
  }
  const T* x = vector.data + vector.free.at(0);
  const int64_t x_step = vector.inner.stride();
  out += places.at(0);
  if (count == 1) {
    *out = long_dot<T, Sum>(x, x_step, matrix.data + matrix.free.at(0), matrix.inner.stride(), inner);
    return true;
  }
  if (matrix.inner.stride() == 1) {
    Scratch<T> close;  // a strided vector is copied once
    if (x_step != 1 && inner > 1) {
      close = Scratch<T>(inner, "a vector");
      for (int64_t k = 0; k < inner; ++k) close[k] = x[k * x_step];
      x = close.data();
    }
    parallel_for_cost(count, row_cost<T>(inner), [&](int64_t begin, int64_t end) {
      int64_t n = begin;
      for (; n + 4 <= end; n += 4) {
        const T* rows[4];
        Sum results[4];
        for (int64_t r = 0; r < 4; ++r) rows[r] = matrix.data + matrix.free.at(n + r);
        dots<4>(x, 1, rows, 1, inner, results);
        for (int64_t r = 0; r < 4; ++r) out[(n + r) * places.stride()] = results[r];
      }
      for (; n < end; ++n) {
        const T* row = matrix.data + matrix.free.at(n);
        Sum result;
        dots<1>(x, 1, &row, 1, inner, &result);
        out[n * places.stride()] = result;
      }
      return 0;
    });
    return true;
  }
  if (!matrix.free.is_regular() || matrix.free.stride() != 1 || places.stride() != 1) return false;
  const int64_t step = matrix.inner.stride();
  auto add = [&](int64_t k, int64_t some, int64_t column, int64_t columns, Sum* sums) {
    add_rows(x + k * x_step, x_step, matrix.data + matrix.free.at(0) + k * step + column, step, some, sums, columns);
  };
  Strips(inner, count).run(row_cost<T>(inner), out, add);
  return true;
}

}  // namespace

template <class T, class Sum>
bool multiply_vector(const Matrix<T>& left, const Matrix<T>& right, Sum* out, const Axis& rows, const Axis& columns) {
  if (rows.extent() == 1 && vector_by_matrix<T, Sum>(left, right, out + rows.at(0), columns)) return true;
  return columns.extent() == 1 && vector_by_matrix<T, Sum>(right, left, out + columns.at(0), rows);
}

bool multiply_by_bytes(const Matrix<float>& left, const Matrix<std::int8_t>& right, float* out, const Axis& rows,
                       const Axis& columns) {
  constexpr int64_t max_rows = 4;  // with more, a converted copy that all rows read is cheaper
  if (rows.extent() > max_rows) return false;
  for (int64_t row = 0; row < rows.extent(); ++row) {
    Scratch<float> hold;
    if (!floats_by_matrix(as_floats(left, row, hold), right, out + rows.at(row), columns)) return false;
  }
  return true;
}

template <class T>
void multiply_small(const Matrix<T>& left, const Matrix<T>& right, T* out, const Axis& rows, const Axis& columns) {
  const int64_t inner = left.inner.extent(), n = columns.extent();
  const bool by_rows = n > 1 && right.free.contiguous(0, n) && columns.contiguous(0, n);
  for (int64_t i = 0; i < rows.extent(); ++i) {
    const T* x = left.data + left.free.at(i);
    T* target = out + rows.at(i);
    if (by_rows) {
      target += columns.at(0);
      for (int64_t j = 0; j < n; ++j) target[j] = T(0);
      for (int64_t k = 0; k < inner; ++k) {
        const T factor = x[left.inner.at(k)];
        const T* row = right.data + right.inner.at(k) + right.free.at(0);
        for (int64_t j = 0; j < n; ++j) add_product(target[j], factor, row[j]);
      }
    } else {
      for (int64_t j = 0; j < n; ++j) {
        const T* y = right.data + right.free.at(j);
        T sum(0);
        for (int64_t k = 0; k < inner; ++k) add_product(sum, x[left.inner.at(k)], y[right.inner.at(k)]);
        target[columns.at(j)] = sum;
      }
    }
  }
}

#define CAPIBARA_INSTANTIATE(T)                                                                          \
  template bool multiply_vector<T, T>(const Matrix<T>&, const Matrix<T>&, T*, const Axis&, const Axis&); \
  template void multiply_small<T>(const Matrix<T>&, const Matrix<T>&, T*, const Axis&, const Axis&);
CAPIBARA_INSTANTIATE(float)
CAPIBARA_INSTANTIATE(double)
CAPIBARA_INSTANTIATE(std::uint32_t)
CAPIBARA_INSTANTIATE(std::uint64_t)
CAPIBARA_INSTANTIATE(std::complex<float>)
CAPIBARA_INSTANTIATE(std::complex<double>)
#undef CAPIBARA_INSTANTIATE
template bool multiply_vector<Bfloat16Bits, float>(const Matrix<Bfloat16Bits>&, const Matrix<Bfloat16Bits>&, float*,
                                                   const Axis&, const Axis&);
template bool multiply_vector<HalfBits, float>(const Matrix<HalfBits>&, const Matrix<HalfBits>&, float*, const Axis&,
                                               const Axis&);

}  // namespace capibara::cpu
