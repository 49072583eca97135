// Shared by the records of reductions over windows and of their derivatives.
#pragma once

#include "lax/reduce/monoid.h"
#include "lax/shape/shape.h"
#include "program/ir/window_shape.h"

namespace capibara {

Family selection_records();   // select_and_scatter, select_and_scatter_add, select_and_gather_add
Family cumulative_records();  // cumsum, cumprod, cummax, cummin, cumlogsumexp

Array bind_window(const char* name, Arrays inputs, const Attrs& attrs);
std::vector<Sample> window_samples(DType dtype, bool dilation);

}  // namespace capibara
