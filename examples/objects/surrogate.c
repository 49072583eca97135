/* Heat flows through a rod whose conductivity depends on temperature. A network in an object file gives the conductivity of
   all cells; a second run uses the formula that it was trained on, and the temperatures are compared at the end. */
#include <math.h>
#include <stdalign.h>
#include <stdio.h>

#include "surrogate.h"

enum { cells = 200, steps = 20000 };

static alignas(SURROGATE_ARENA_ALIGNMENT) unsigned char arena[SURROGATE_ARENA_BYTES + 1];

static void by_network(const float *temperature, float *conductivity) {
  const void *inputs[] = {temperature};
  void *outputs[] = {conductivity};
  surrogate(inputs, outputs, arena);
}

static void by_formula(const float *temperature, float *conductivity) {
  for (int i = 0; i < cells; ++i) {
    const float t = temperature[i];
    conductivity[i] = 0.05f + powf(t, 2.5f) / (1 + t * t) + 0.1f * sinf(3 * t);
  }
}

/* An explicit finite-difference step: the ends are held at 2.5 and 0.2. */
static void conduct(float *temperature, void (*law)(const float *, float *)) {
  const float ratio = 0.15f; /* dt / dx^2 */
  float conductivity[cells], flow[cells];
  for (int i = 0; i < cells; ++i) temperature[i] = i == 0 ? 2.5f : 0.2f;
  for (int step = 0; step < steps; ++step) {
    law(temperature, conductivity);
    for (int i = 0; i + 1 < cells; ++i)
      flow[i] = 0.5f * (conductivity[i] + conductivity[i + 1]) * (temperature[i + 1] - temperature[i]);
    for (int i = 1; i + 1 < cells; ++i) temperature[i] += ratio * (flow[i] - flow[i - 1]);
  }
}

int main(void) {
  static float learned[cells], exact[cells];
  conduct(learned, by_network);
  conduct(exact, by_formula);
  float largest = 0;
  for (int i = 0; i < cells; ++i) largest = fmaxf(largest, fabsf(learned[i] - exact[i]));
  for (int i = 0; i < cells; i += 25) printf("cell %3d: %.3f by the network, %.3f by the formula\n", i, learned[i], exact[i]);
  printf("largest difference: %.4f\n", largest);
  return largest < 0.02f ? 0 : 1;
}
