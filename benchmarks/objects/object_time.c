/* Times the function of an object file: the first call of the process, and later calls, on inputs from standard input.

   Built with -include HEADER -DFUNCTION=name -DINPUTS=.. -DOUTPUTS=.. -DARENA_BYTES=.. by objects.py. stdin: for each input
   its size in bytes and its data, then the size of each output. Prints two times in nanoseconds. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void *memory(int64_t bytes) { return aligned_alloc(64, (size_t)((bytes + 64) / 64 * 64)); }

static int64_t read_size(void) {
  int64_t size;
  if (fread(&size, sizeof size, 1, stdin) != 1) exit(1);
  return size;
}

int main(void) {
  const void *inputs[INPUTS + 1];
  void *outputs[OUTPUTS + 1];
  for (int i = 0; i < INPUTS; ++i) {
    const int64_t bytes = read_size();
    void *block = memory(bytes);
    if (bytes && fread(block, (size_t)bytes, 1, stdin) != 1) return 1;
    inputs[i] = block;
  }
  for (int i = 0; i < OUTPUTS; ++i) outputs[i] = memory(read_size());
  void *arena = memory(ARENA_BYTES);

  const double start = nanoseconds();
  FUNCTION(inputs, outputs, arena);
  const double first = nanoseconds() - start;

  /* The minimum of nine rounds of ten milliseconds or one call. */
  const int64_t calls = first > 1e7 ? 1 : (int64_t)(1e7 / (first / 4 + 20));
  double least = 1e300;
  for (int round = 0; round < 9; ++round) {
    const double begin = nanoseconds();
    for (int64_t i = 0; i < calls; ++i) FUNCTION(inputs, outputs, arena);
    const double each = (nanoseconds() - begin) / (double)calls;
    if (each < least) least = each;
  }
  printf("%.0f %.1f\n", first, least);
  return 0;
}
