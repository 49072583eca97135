// Copies rows of images into planes, planes into rows of results and into the panels of matmuls.
#pragma once

#include "backends/cpu/kernels/fft/fft_vectors.h"
#include "backends/cpu/kernels/planes/vectors.h"
#include "backends/cpu/kernels/streaming.h"

namespace capibara::cpu {

template <class T, int Bytes>
struct PlaneMoves : PlaneVectors<T, Bytes> {
  using Own = PlaneVectors<T, Bytes>;
  using Index = typename Own::Index;
  using V = typename Own::V;
  using M = typename Own::M;
  using Lanes = typename Own::Lanes;
  using Between = fft::Vectors<T, Bytes>;  // moves between lanes
  using Own::from_on;
  using Own::lanes;
  using Own::load;
  using Own::store;

  // The last vector ends at the last element: nothing is read or written past it.
  CAPIBARA_PLANE_INLINE void copy(const T* from, T* to, Index count) {
    if (count < lanes) {
      for (Index i = 0; i < count; ++i) to[i] = from[i];
      return;
    }
    for (Index i = 0; i + lanes < count; i += lanes) store(to + i, load(from + i));
    store(to + count - lanes, load(from + count - lanes));
  }

  CAPIBARA_PLANE_INLINE void copy_half(const T* from, T* to, Index count) {
    Index i = 0;
    V even, odd;
    for (; i + lanes < count; i += lanes) {
      Between::unzip(load(from + 2 * i), load(from + 2 * i + lanes), even, odd);
      store(to + i, even);
    }
    if (count > lanes) {  // reads before the first element rather than past the last
      const T* last = from + 2 * (count - lanes) - 1;
      Between::unzip(load(last), load(last + lanes), even, odd);
      store(to + count - lanes, odd);
      return;
    }
    for (; i < count; ++i) to[i] = from[2 * i];
  }

  static void lay(const PlaneRow<T>& row) {
    T* to = row.to;
    for (Index i = 0; i < row.low; ++i) to[i] = row.blank;
    const Index count = row.high - row.low;
    const T* from = row.from + row.low * row.step;
    if (row.step == 1)
      copy(from, to + row.low, count);
    else if (row.step == 2)
      copy_half(from, to + row.low, count);
    else
      for (Index i = 0; i < count; ++i) to[row.low + i] = from[i * row.step];
    for (Index i = row.high; i < row.pitch; ++i) to[i] = row.blank;
  }

  static void put(const T* from, T* to, Index step, Index count) {
    if (step == 1) return copy(from, to, count);
    for (Index i = 0; i < count; ++i) to[i * step] = from[i];
  }

  // The same bypassing the caches, where `to` and `count` allow whole vectors.
  static void stream_join(const T* a, const T* b, T* to, Index count) {
    for (Index i = 0; 2 * i < count; i += lanes) {
      V low, high;
      Between::zip(load(a + i), load(b + i), low, high);
      stream(to + 2 * i, low);
      if (2 * i + lanes < count) stream(to + 2 * i + lanes, high);
    }
  }

  static void join(const T* a, const T* b, T* to, Index count) {
    const Index pairs = count / 2;
    Index i = 0;
    auto pair = [&](Index at) {
      V low, high;
      Between::zip(load(a + at), load(b + at), low, high);
      store(to + 2 * at, low);
      store(to + 2 * at + lanes, high);
    };
    for (; i + lanes <= pairs; i += lanes) pair(i);
    if (i < pairs && pairs >= lanes) {
      pair(pairs - lanes);
      i = pairs;
    }
    for (; i < pairs; ++i) {
      to[2 * i] = a[i];
      to[2 * i + 1] = b[i];
    }
    if (count % 2 != 0) to[count - 1] = a[pairs];
  }

  // Two vectors; the first run ends in one of them or in neither: every row is two or three loads and two stores.
  CAPIBARA_PLANE_INLINE void panel_of_two(const PlanePanel<T>& panel, T* out) {
    const Index inner = panel.inner, *offsets = panel.offsets;
    const Index edge = panel.run_count == 1 ? 2 * lanes : panel.runs[1].lane;
    const T *first = panel.runs[0].from, *second = panel.run_count == 1 ? first : panel.runs[1].from - edge;
    if (edge == 2 * lanes) {
      for (Index p = 0; p < inner; ++p, out += 2 * lanes) {
        store(out, load(first + offsets[p]));
        store(out + lanes, load(first + offsets[p] + lanes));
      }
    } else if (edge >= lanes) {
      const M behind = from_on(edge - lanes, Lanes());
      for (Index p = 0; p < inner; ++p, out += 2 * lanes) {
        const Index at = offsets[p];
        store(out, load(first + at));
        store(out + lanes, behind ? load(second + at + lanes) : load(first + at + lanes));
      }
    } else {
      const M behind = from_on(edge, Lanes());
      for (Index p = 0; p < inner; ++p, out += 2 * lanes) {
        const Index at = offsets[p];
        store(out, behind ? load(second + at) : load(first + at));
        store(out + lanes, load(second + at + lanes));
      }
    }
  }

  // Runs are written in whole vectors, whose excess the next run or the panel's next row overwrites; the last row is
  // exact.
  static void panel(const PlanePanel<T>& panel, T* out) {
    const Index width = panel.width, whole = width >= lanes ? panel.inner - 1 : 0;
    if (panel.run_count <= 2 && panel.used == width && width == 2 * lanes) return panel_of_two(panel, out);
    for (Index p = 0; p < panel.inner; ++p, out += width) {
      for (Index r = 0; r < panel.run_count; ++r) {
        const PlaneRun<T>& run = panel.runs[r];
        const T* from = run.from + panel.offsets[p];
        T* to = out + run.lane;
        if (p < whole)
          for (Index i = 0; i < run.count; i += lanes) store(to + i, load(from + i));
        else
          for (Index i = 0; i < run.count; ++i) to[i] = from[i];
      }
      for (Index i = panel.used; i < width; ++i) out[i] = T(0);
    }
  }
};

}  // namespace capibara::cpu
