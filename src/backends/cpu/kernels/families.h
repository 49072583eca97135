// The families of kernels that the list of kernels.cpp is made of; one file each.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers convolution_makers();
KernelMakers cumulative_makers();
KernelMakers dot_makers();
KernelMakers extreme_makers();
KernelMakers function_makers();
KernelMakers non_demo_makers();  // those that the demo does without
KernelMakers fused_makers();  // of src/kernels, as far as the program was linked with them
KernelMakers index_makers();
KernelMakers order_makers();
KernelMakers random_makers();
KernelMakers scatter_makers();
KernelMakers select_and_scatter_makers();
KernelMakers top_k_makers();
KernelMakers transpose_makers();
KernelMakers window_makers();

}  // namespace capibara::cpu
