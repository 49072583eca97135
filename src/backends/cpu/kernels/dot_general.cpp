// dot_general: dimensions sorted into batch, rows, columns and inner, then products of matrices.
#include "primitives/contract.h"

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/product.h"
#include "backends/reference/kernels.h"
#include "runtime/interrupt.h"

namespace capibara::cpu {

ProductTypes product_types(const KernelRequest& request) {
  ProductTypes types{request.inputs[0].dtype, request.inputs[1].dtype, request.inputs[0].dtype, request.inputs[1].dtype,
                     request.outputs[0].dtype};
  if (const std::string* algorithm = request.attrs["precision"].get_if<std::string>()) {
    static constexpr std::pair<std::string_view, DType> rounding[] = {{"F16_F16_F16", DType::float16},
                                                                      {"F16_F16_F32", DType::float16},
                                                                      {"BF16_BF16_BF16", DType::bfloat16},
                                                                      {"BF16_BF16_F32", DType::bfloat16}};
    for (const auto& [name, dtype] : rounding) {
      if (*algorithm == name) {
        types.lhs_rounded = types.rhs_rounded = dtype;
        return types;
      }
    }
  }
  auto is_float8 = [](DType dtype) { return is_floating(dtype) && bits(dtype) == 8; };
  if (types.lhs != types.rhs && !(is_float8(types.lhs) && is_float8(types.rhs))) types.lhs_rounded = types.rhs_rounded = types.out;
  return types;
}

namespace {

Axis axis_of(const ArrayType& type, const Ints& dims) {
  Ints strides = reference::row_major_strides(type.shape), sizes, steps;
  for (int64_t d : dims) {
    sizes.push_back(type.shape[static_cast<std::size_t>(d)]);
    steps.push_back(strides[static_cast<std::size_t>(d)]);
  }
  return Axis(sizes, steps);
}

struct DotPlan {
  ProductTypes types;
  int64_t lhs_size, rhs_size, out_size;
  Axis lhs_batch, lhs_free, lhs_inner, rhs_batch, rhs_free, rhs_inner;
  Axis out_rows, out_columns;

  template <class T>
  void run(std::byte* const* buffers) const {
    Scratch<T> lhs_hold, rhs_hold;
    const T* lhs = product_operand<T>(types.lhs, types.lhs_rounded, buffers[0], lhs_size, lhs_hold);
    const T* rhs = product_operand<T>(types.rhs, types.rhs_rounded, buffers[1], rhs_size, rhs_hold);
    ProductResult<T> result(types.out, buffers[2], out_size);
    T* out = result.values();
    const int64_t batch = lhs_batch.extent(), step = out_rows.extent() * out_columns.extent();
    auto one = [&](int64_t b) {
      multiply<T>({lhs + lhs_batch.at(b), lhs_free, lhs_inner}, {rhs + rhs_batch.at(b), rhs_free, rhs_inner}, out + b * step, out_rows,
                  out_columns);
    };
    const double cost = 30 + multiply_cost<T>(static_cast<double>(step) * static_cast<double>(lhs_inner.extent()));
    // A few large products share out their own parts; many are shared out whole.
    if (batch == 1 || (batch < 8 && cost > 1e5)) {
      for (int64_t b = 0; b < batch; ++b) one(b);
    } else {
      parallel_for_cost(batch, cost, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) one(b);
        return 0;
      });
    }
    result.finish();
  }
};

HostKernel make_dot_general(const KernelRequest& request) {
  const auto& numbers = request.attrs.get<DotDimensionNumbers>("dimension_numbers");
  const ArrayType &lhs = request.inputs[0], &rhs = request.inputs[1], &out = request.outputs[0];
  DotPlan plan{product_types(request), lhs.size(), rhs.size(), out.size(), {}, {}, {}, {}, {}, {}, {}, {}};
  plan.lhs_batch = axis_of(lhs, numbers.lhs_batch);
  plan.rhs_batch = axis_of(rhs, numbers.rhs_batch);
  plan.lhs_inner = axis_of(lhs, numbers.lhs_contracting);
  plan.rhs_inner = axis_of(rhs, numbers.rhs_contracting);
  plan.lhs_free = axis_of(lhs, remaining_dims(lhs.rank(), numbers.lhs_contracting, numbers.lhs_batch));
  plan.rhs_free = axis_of(rhs, remaining_dims(rhs.rank(), numbers.rhs_contracting, numbers.rhs_batch));
  plan.out_rows = Axis::regular(plan.lhs_free.extent(), plan.rhs_free.extent());
  plan.out_columns = Axis::regular(plan.rhs_free.extent(), 1);
  HostKernel kernel;
  visit_product_type(plan.types, [&]<class T>(Type<T>) {
    kernel = [plan = std::move(plan)](std::byte* const* buffers) {
      if (plan.out_size != 0) plan.run<T>(buffers);
    };
  });
  return kernel;
}

}  // namespace

KernelMakers dot_makers() { return {{"dot_general", make_dot_general}}; }

}  // namespace capibara::cpu
