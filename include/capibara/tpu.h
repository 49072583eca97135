// The TPU toolbox: chips, slices and flags, the memory and time of a training step, and kernels and loads measured on
// this machine. Nothing runs on a TPU.
#pragma once

#include <capibara/tpu/chips.h>
#include <capibara/tpu/compiled.h>
#include <capibara/tpu/config.h>
#include <capibara/tpu/costs.h>
#include <capibara/tpu/diagnosis.h>
#include <capibara/tpu/error.h>
#include <capibara/tpu/flags.h>
#include <capibara/tpu/loads.h>
#include <capibara/tpu/maxtext.h>
#include <capibara/tpu/measure.h>
#include <capibara/tpu/memory.h>
#include <capibara/tpu/models.h>
#include <capibara/tpu/performance.h>
#include <capibara/tpu/plan.h>
#include <capibara/tpu/quantize.h>
#include <capibara/tpu/request.h>
#include <capibara/tpu/serving.h>
#include <capibara/tpu/sharding.h>
