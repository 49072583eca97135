// Training: optimizers and schedules, layers and a language model, data, the trainer, text generation.
#pragma once

#include <capibara/training/batches.h>
#include <capibara/training/data.h>
#include <capibara/training/generate.h>
#include <capibara/training/language_model.h>
#include <capibara/training/layers.h>
#include <capibara/training/mesh.h>
#include <capibara/training/optimizers.h>
#include <capibara/training/pretrained.h>
#include <capibara/training/run.h>
#include <capibara/training/schedules.h>
#include <capibara/training/trainer.h>
#include <capibara/training/weights.h>
