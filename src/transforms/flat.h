// The transforms on functions of flat array lists: what the typed interface in <capibara/transforms.h> is built from.
#pragma once

#include "program/derive/derive.h"
#include "program/trace/trace.h"

namespace capibara {

// A function linearised at a point.
struct Linearized {
  Arrays outputs;
  Program linear;  // (residuals, tangents of the differentiable inputs) -> tangents of the outputs marked nonzero
  Arrays residuals;
  std::vector<bool> nonzero_outputs;
};
Linearized linearize_flat(const FlatFunction& function, std::span<const Array> primals,
                          const std::vector<bool>& differentiable);

// The cotangents of the differentiable inputs of a linearised function; `cotangents` holds one per output (empty:
// zero).
Arrays pull_back(const Linearized& linearized, std::span<const Array> cotangents);

}  // namespace capibara
