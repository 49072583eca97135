/* Runs a jax program that the build has compiled to a C function: a thousand steps of y -= step * y. */
#include <math.h>
#include <stdalign.h>
#include <stdio.h>

#include "decay_steps.h"

static alignas(DECAY_STEPS_ARENA_ALIGNMENT) unsigned char arena[DECAY_STEPS_ARENA_BYTES + 1];

int main(void) {
  const float amounts[3] = {1, 2, 5}, step = 0.001f;
  float left[3];
  const void* inputs[DECAY_STEPS_INPUTS];
  void* outputs[DECAY_STEPS_OUTPUTS];
  inputs[DECAY_STEPS_IN_ARGS_0] = amounts;
  inputs[DECAY_STEPS_IN_ARGS_1] = &step;
  outputs[DECAY_STEPS_OUT_RESULT] = left;
  decay_steps(inputs, outputs, arena);

  int wrong = 0;
  for (int i = 0; i < 3; ++i) {
    const double expected = amounts[i] * pow(1 - 0.001, 1000);
    printf("of %g is left %.4f\n", amounts[i], left[i]);
    wrong |= !(fabs(left[i] - expected) < 1e-4 * expected);
  }
  return wrong;
}
