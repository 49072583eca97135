// Fused operations: each is defined as a composition that runs everywhere; a backend may have its own kernel for
// it.
#pragma once

#include <capibara/kernels/attention.h>
#include <capibara/kernels/dense.h>
#include <capibara/kernels/experts.h>
#include <capibara/kernels/norms.h>
#include <capibara/kernels/quantization.h>
#include <capibara/kernels/quantized.h>
#include <capibara/kernels/recurrence.h>
#include <capibara/kernels/spiking.h>
