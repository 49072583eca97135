// The TPU toolbox in the extension.
#pragma once

#include <capibara/tpu.h>

#include "bindings.h"

namespace capibara::python {

// Sizes by name, in the form that planners take and print.
tpu::Architecture architecture_of(const nb::dict& sizes);
nb::dict model_dict(const tpu::Architecture& model);
// The planner's input as a dictionary, as taken by plan_step and plan_memory.
nb::dict training_dict(const tpu::Training& training);
nb::dict memory_dict(const tpu::MemoryPlan& memory);
nb::dict step_dict(const tpu::StepPlan& step);

void bind_tpu(nb::module_& m);
void bind_tpu_toolbox(nb::module_& m);  // these are parts of bind_tpu
void bind_tpu_measure(nb::module_& m);

}  // namespace capibara::python
