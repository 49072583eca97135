// Barriers and foreign calls on the reference backend.
#include "backends/foreign.h"
#include "backends/reference/kernels.h"
#include "backends/reference/linalg_batch.h"
#include "lax/linalg/lapack_calls.h"

namespace capibara::reference {

namespace {

Arrays run_barrier(const KernelArgs& args) { return Arrays(args.inputs.begin(), args.inputs.end()); }

Arrays run_custom_call(const KernelArgs& args) {
  if (Kernel kernel = find_lapack_call(args.attrs.text("call_target_name"), args.inputs.size())) return kernel(args);
  Types types;
  for (const Array& input : args.inputs) types.push_back(input.type());
  if (make_foreign_call) {
    if (const ForeignCall call = make_foreign_call(args.attrs, types, args.output_types)) return call(args.inputs);
  }
  refuse_native_call(args.attrs.text("call_target_name"));
}

}  // namespace

KernelList effect_kernels() {
  return {
      {"optimization_barrier", run_barrier}, {"sharding_constraint", run_barrier}, {"custom_call", run_custom_call}};
}

}  // namespace capibara::reference
