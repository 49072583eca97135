// The families of kernels; one file each.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers convolution_makers();
KernelMakers cumulative_makers();
KernelMakers dot_makers();
KernelMakers extreme_makers();
KernelMakers function_makers();
KernelMakers fused_makers();  // of src/kernels; only those the program is linked with
KernelMakers index_makers();
KernelMakers order_makers();
KernelMakers random_makers();
KernelMakers scatter_makers();
KernelMakers select_and_scatter_makers();
KernelMakers top_k_makers();
KernelMakers transpose_makers();
KernelMakers window_makers();

using KernelFamily = KernelMakers (*)();
std::span<const KernelFamily> kernel_families();  // those the program is linked with: src/assembly

}  // namespace capibara::cpu
