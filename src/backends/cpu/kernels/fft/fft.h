// The family of Fourier transforms.
#pragma once

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

KernelMakers fft_makers();

}  // namespace capibara::cpu
