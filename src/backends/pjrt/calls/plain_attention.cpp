// Finds attention written out in a program, after the passes that canonicalise it, and hands it to cuDNN.
#include "backends/pjrt/calls/plain_attention.h"

#include <algorithm>

#include "backends/pjrt/calls/cudnn.h"
#include "compiler/optimise/pipeline.h"
#include "kernels/fuse.h"
#include "program/ir/nested.h"

namespace capibara::pjrt {

namespace {

bool is_narrow(const Program& program, const Equation& equation) {
  const DType dtype = program.type(equation.inputs[0]).dtype;
  return dtype == DType::bfloat16 || dtype == DType::float16;
}

}  // namespace

Program call_cudnn_for_plain(const Program& program, const std::function<int64_t()>& capability) {
  if (!kernels::may_attend(program)) return program;
  OptimiseOptions options;
  bool found = false;
  options.fuse = [&](const Program& own) {
    const Program fused = kernels::fuse_attention(own, is_narrow, kernels::Special::as_fused);
    found |= fused.identity() != own.identity();
    return fused;
  };
  const Program fused = optimise(program, options);
  if (!found || capability() == 0) return program;
  const Program called = call_cudnn(fused, capability);
  return kernels::holds_fused_attention(called) ? program : called;
}

}  // namespace capibara::pjrt
