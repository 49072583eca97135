// Fused attention on the CPU: the choice of the kernel by types, forwards and backwards.
#include "backends/cpu/kernels/attention/backward.h"
#include "backends/cpu/kernels/attention/forward.h"
#include "backends/cpu/kernels/attention/kernel.h"
#include "lax/math/denormals.h"

namespace capibara::cpu {

namespace attention {

namespace {

// Calls make(kind of product, type of the elements in memory); no kernel for other types and sizes.
template <class Make>
HostKernel make_for(const Plan& plan, Make&& make) {
  const kernels::AttentionSizes& sizes = plan.sizes;
  if (sizes.batch * sizes.heads * sizes.queries * sizes.keys == 0) return {};
  if (sizes.size > 256 || sizes.value_size > 256 || plan.pattern > 1024) return {};
  switch (plan.dtype) {
    case DType::float32:
      return make(Singles{}, Type<float>{});
    case DType::float64:
      return make(Doubles{}, Type<double>{});
    case DType::bfloat16:
      return has_tile<Brains>() ? make(Brains{}, Type<BrainBits>{}) : make(Singles{}, Type<BrainBits>{});
    case DType::float16:
      return make(Singles{}, Type<HalfBits>{});
    default:
      return {};
  }
}

}  // namespace

HostKernel make_forward(const KernelRequest& request) {
  const Plan plan(request, kernels::forward_operands);
  return make_for(plan, [&]<class K, class S>(K, Type<S>) -> HostKernel {
    return [plan](std::byte* const* buffers) {
      const math::FlushDenormals flush;
      Forward<K, S>(plan, buffers).run();
    };
  });
}

HostKernel make_backward(const KernelRequest& request) {
  const Plan plan(request, kernels::backward_operands);
  return make_for(plan, [&]<class K, class S>(K, Type<S>) -> HostKernel {
    return [plan](std::byte* const* buffers) {
      const math::FlushDenormals flush;
      Backward<K, S>(plan, buffers).run();
    };
  });
}

}  // namespace attention

KernelMakers flash_attention_makers() {
  return {{"flash_attention", attention::make_forward}, {"flash_attention_grad", attention::make_backward}};
}

}  // namespace capibara::cpu
