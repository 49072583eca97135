// argmax and argmin: the first position of the extreme along one axis; NaN precedes everything.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/reference/regions.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace {

template <bool Highest, class C>
bool is_better(C candidate, C held) {
  bool better = Highest ? candidate > held : candidate < held;
  if constexpr (std::is_floating_point_v<C>) better = (better || candidate != candidate) && held == held;
  return better;
}

template <bool Highest>
HostKernel make_position(const KernelRequest& request) {
  const ArrayType &x = request.inputs[0], &out = request.outputs[0];
  const int64_t axis = request.attrs.ints("axes")[0];
  int64_t length = x.shape[static_cast<std::size_t>(axis)], inner = 1;
  for (int64_t d = axis + 1; d < x.rank(); ++d) inner *= x.shape[static_cast<std::size_t>(d)];
  if (is_complex(x.dtype) || out.size() == 0 || length == 0) return {};
  const int64_t outer = x.size() / (length * inner);
  const DType dtype = x.dtype, out_dtype = out.dtype;
  return visit_compute(dtype, [&]<class C>(Type<C>) -> HostKernel {
    if constexpr (is_complex_number<C>) {
      return {};
    } else {
      return [=](std::byte* const* buffers) {
        const math::FlushDenormals flush;  // comparisons treat denormals as zero
        constexpr int64_t piece = 64;      // adjacent results computed at once
        const int64_t pieces = (inner + piece - 1) / piece, size = storage_size(dtype),
                      out_size = storage_size(out_dtype);
        const double cost = 1.5 * static_cast<double>(length * std::min(inner, piece));
        parallel_for_cost(outer * pieces, cost, [&](int64_t begin, int64_t end) {
          C held[piece], converted[piece];
          int64_t position[piece];
          for (int64_t task = begin; task < end; ++task) {
            const int64_t o = task / pieces, first = task % pieces * piece, count = std::min(piece, inner - first);
            for (int64_t i = 0; i < length; ++i) {
              const int64_t at = (o * length + i) * inner + first;
              const C* row = converted;
              if (stored_as<C>(dtype))
                row = reinterpret_cast<const C*>(buffers[0]) + at;
              else
                load_range<C>(dtype, buffers[0] + at * size, count, converted);
              for (int64_t k = 0; k < count; ++k) {
                if (i == 0 || is_better<Highest>(row[k], held[k])) {
                  held[k] = row[k];
                  position[k] = i;
                }
              }
            }
            store_range<int64_t>(out_dtype, buffers[1] + (o * inner + first) * out_size, count, position);
          }
          return 0;
        });
      };
    }
  });
}

}  // namespace

KernelMakers extreme_makers() { return {{"argmax", make_position<true>}, {"argmin", make_position<false>}}; }

}  // namespace capibara::cpu
