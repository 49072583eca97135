// jax.nn: activations, softmax and its logarithms, attention, one-hot codes; initializers in jax.nn.initializers.
#pragma once

#include <capibara/nn/activations.h>
#include <capibara/nn/attention.h>
#include <capibara/nn/initializers.h>
#include <capibara/nn/softmax.h>
