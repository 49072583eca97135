// The TPU toolbox: chips and slices, flags, what a training step needs and costs there. Nothing here runs on a TPU.
#pragma once

#include <capibara/tpu/chips.h>
#include <capibara/tpu/compiled.h>
#include <capibara/tpu/config.h>
#include <capibara/tpu/costs.h>
#include <capibara/tpu/diagnosis.h>
#include <capibara/tpu/error.h>
#include <capibara/tpu/flags.h>
#include <capibara/tpu/memory.h>
#include <capibara/tpu/models.h>
#include <capibara/tpu/performance.h>
#include <capibara/tpu/plan.h>
#include <capibara/tpu/request.h>
#include <capibara/tpu/sharding.h>
