// The loops over planes in vectors of one size.
#pragma once

#include "backends/cpu/kernels/planes/moves.h"
#include "backends/cpu/kernels/planes/tiles.h"
#include "backends/cpu/kernels/planes/windows.h"

namespace capibara::cpu {

template <class T, int Bytes>
PlaneCode<T> planes_of() {
  using Moves = PlaneMoves<T, Bytes>;
  using Sums = PlaneSums<T, Bytes>;
  using Choices = PlaneChoices<T, Bytes>;
  return {Moves::lanes,       Moves::lay,      Moves::put,       Moves::join,
          Moves::stream_join, Moves::panel,    Sums::sum,        Sums::sum_each,
          Sums::dots,         Choices::choose, Choices::collect, PlaneTiles<T, Bytes>::tables()};
}

#undef CAPIBARA_PLANE_INLINE

}  // namespace capibara::cpu
