// Loads and stores of groups of lines, in each form that they have in memory.
#pragma once

#include <cstring>

#include "backends/cpu/kernels/fft/fft_butterflies.h"
#include "backends/cpu/kernels/fft/fft_lanes.h"

namespace capibara::cpu::fft {

template <class R, int Bytes>
struct Moves : Butterflies<R, Bytes> {
  using Own = Butterflies<R, Bytes>;
  using V = typename Own::V;
  using C = typename Own::C;
  using Own::count;
  using Own::read;
  using Own::turn;
  using Own::unzip;
  using Own::write;
  using Own::zip;

  static CAPIBARA_FFT_INLINE void load_rows(const Side<R>& from, int64_t lanes, int64_t length, C* to) {
    constexpr int pairs = count / 2;
    alignas(64) static constexpr R nothing[count] = {};
    int64_t e = 0;
    for (; e + pairs <= length; e += pairs) {
      V block[count];
      for (int lane = 0; lane < count; ++lane)
        block[lane] = read(lane < lanes ? from.data + lane * from.step + 2 * e : nothing);
      turn(block);
#pragma GCC unroll 8
      for (int k = 0; k < pairs; ++k) to[e + k] = C{block[2 * k], block[2 * k + 1]};
    }
    for (; e < length; ++e) {
      C value{};
      for (int64_t lane = 0; lane < lanes; ++lane) {
        value.re[lane] = from.data[lane * from.step + 2 * e];
        value.im[lane] = from.data[lane * from.step + 2 * e + 1];
      }
      to[e] = value;
    }
  }

  static CAPIBARA_FFT_INLINE void load(const Side<R>& from, int64_t lanes, int64_t length, C* to) {
    switch (from.form) {
      case Form::rows:
        return load_rows(from, lanes, length, to);
      case Form::columns:
        for (int64_t e = 0; e < length; ++e) {
          const R* at = from.data + e * from.step;
          R padded[2 * count] = {};
          if (lanes < count) {
            std::memcpy(padded, at, static_cast<std::size_t>(2 * lanes) * sizeof(R));
            at = padded;
          }
          const V low = read(at), high = read(at + count);
          unzip(low, high, to[e].re, to[e].im);
        }
        return;
      case Form::planes:
        for (int64_t e = 0; e < length; ++e) to[e] = {read(from.data + e * from.step), read(from.imag + e * from.step)};
        return;
      case Form::real_rows:
        for (int64_t e = 0; e < length; ++e) {
          C value{};
          for (int64_t lane = 0; lane < lanes; ++lane) value.re[lane] = from.data[lane * from.step + e];
          to[e] = value;
        }
        return;
      case Form::turned:
        return;
    }
  }

  static CAPIBARA_FFT_INLINE void store_rows(const C* from, int64_t lanes, int64_t length, const Side<R>& to) {
    constexpr int pairs = count / 2;
    int64_t e = 0;
    for (; e + pairs <= length; e += pairs) {
      V block[count];
#pragma GCC unroll 8
      for (int k = 0; k < pairs; ++k) {
        block[2 * k] = from[e + k].re;
        block[2 * k + 1] = from[e + k].im;
      }
      turn(block);
      for (int64_t lane = 0; lane < lanes; ++lane) write(to.data + lane * to.step + 2 * e, block[lane]);
    }
    for (; e < length; ++e) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        to.data[lane * to.step + 2 * e] = from[e].re[lane];
        to.data[lane * to.step + 2 * e + 1] = from[e].im[lane];
      }
    }
  }

  static CAPIBARA_FFT_INLINE void store_turned(const C* from, int64_t lanes, int64_t length, const Side<R>& to) {
    for (int64_t e = 0; e < length; e += count) {
      V re[count], im[count];
      for (int k = 0; k < count; ++k) {
        re[k] = e + k < length ? from[e + k].re : V{};
        im[k] = e + k < length ? from[e + k].im : V{};
      }
      turn(re);
      turn(im);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        write(to.data + lane * to.step + e, re[lane]);
        write(to.imag + lane * to.step + e, im[lane]);
      }
    }
  }

  static CAPIBARA_FFT_INLINE void store(const C* from, int64_t lanes, int64_t length, const Side<R>& to) {
    switch (to.form) {
      case Form::rows:
        return store_rows(from, lanes, length, to);
      case Form::turned:
        return store_turned(from, lanes, length, to);
      case Form::columns:
        for (int64_t e = 0; e < length; ++e) {
          V low, high;
          zip(from[e].re, from[e].im, low, high);
          R* at = to.data + e * to.step;
          if (lanes == count) {
            write(at, low);
            write(at + count, high);
          } else {
            R whole[2 * count];
            write(whole, low);
            write(whole + count, high);
            std::memcpy(at, whole, static_cast<std::size_t>(2 * lanes) * sizeof(R));
          }
        }
        return;
      case Form::real_rows:
        for (int64_t e = 0; e < length; ++e) {
          for (int64_t lane = 0; lane < lanes; ++lane) to.data[lane * to.step + e] = from[e].re[lane];
        }
        return;
      case Form::planes:
        return;
    }
  }
};

}  // namespace capibara::cpu::fft
