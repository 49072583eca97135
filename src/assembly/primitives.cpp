// The parts linked into every program: the families of primitives in order, the evaluator of single operations, and
// the lookup of the processes that hold an array.
#include "backends/evaluator.h"
#include "core/array/readable.h"
#include "core/sharding/process_grid.h"
#include "kernels/family.h"

namespace capibara {

namespace {

constexpr FamilyMaker all_families[] = {elementwise_family, special_family,  shape_family,  index_family,
                                        reduce_family,      window_family,   sort_family,   contract_family,
                                        control_family,     random_family,   linalg_family, fft_family,
                                        collective_family,  sharding_family, effect_family, kernel_family};

}  // namespace

std::span<const FamilyMaker> primitive_families() { return all_families; }

Evaluate* const evaluate = run_now;
Evaluate* const evaluate_plainly = run_plainly;
HoldsElements* const holds_every_element = is_readable;

}  // namespace capibara
