// The families of kernels that the list of kernels.cpp is made of; one file each.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers convolution_makers();
KernelMakers cumulative_makers();
KernelMakers dot_makers();
KernelMakers order_makers();

}  // namespace capibara::cpu
