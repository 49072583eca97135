/* Balances a pole on a cart: the controller is a jax function, the mechanics stand in for the real machine.
   Every 20 ms the state is measured and the controller plans the forces of the next second. */
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "control.h"

static alignas(CONTROL_ARENA_ALIGNMENT) unsigned char arena[CONTROL_ARENA_BYTES + 1];

/* The machine: finer steps than the controller's model, friction, and a heavier pole. */
static void move(float state[4], float force) {
  for (int i = 0; i < 20; ++i) {
    const float v = state[1], angle = state[2], spin = state[3], dt = 0.001f;
    const float push = (force - 0.1f * v + 0.055f * spin * spin * sinf(angle)) / 1.11f;
    const float turn = (9.81f * sinf(angle) - cosf(angle) * push) /
                       (0.5f * (4.f / 3 - 0.11f * cosf(angle) * cosf(angle) / 1.11f));
    state[0] += dt * v;
    state[1] += dt * (push - 0.055f * turn * cosf(angle) / 1.11f);
    state[2] += dt * spin;
    state[3] += dt * turn;
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void) {
  float state[4] = {0, 0, 0.3f, 0}, plan[50] = {0}, next[50], force;
  const void *inputs[CONTROL_INPUTS];
  void *outputs[CONTROL_OUTPUTS];
  inputs[CONTROL_IN_ARGS_0] = state;
  inputs[CONTROL_IN_ARGS_1] = plan;
  outputs[CONTROL_OUT_RESULT_FORCE] = &force;
  outputs[CONTROL_OUT_RESULT_PLAN] = next;

  double slowest = 0;
  for (int step = 0; step < 300; ++step) {
    const double start = seconds();
    control(inputs, outputs, arena);
    const double took = seconds() - start;
    if (step > 0 && took > slowest) slowest = took;
    memcpy(plan, next, sizeof plan);
    move(state, force);
    if (step % 50 == 0) printf("%.1f s: cart %+.3f m, pole %+.3f rad, force %+.2f N\n", 0.02 * step, state[0], state[2], force);
  }
  printf("after 6 s: cart %+.3f m, pole %+.3f rad\n", state[0], state[2]);
  fprintf(stderr, "slowest of 299 plans: %.0f us\n", 1e6 * slowest);
  return fabsf(state[2]) < 0.02f && fabsf(state[0]) < 0.1f ? 0 : 1;
}
