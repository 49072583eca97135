// Runs the function of an object file on arrays from standard input and writes its results to standard output.
//
// Built with -include HEADER -DFUNCTION=name -DINPUTS=.. -DOUTPUTS=.. -DARENA_BYTES=.. by test_object_code.py. stdin: for
// each input its size in bytes and its data, then the size of each output. All memory has guards on both sides, which
// must be intact afterwards; the function runs twice, with different garbage in the arena, and must give the same bits.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { guard = 64 };

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static unsigned char* guarded(int64_t bytes, int filling) {
  unsigned char* block = aligned_alloc(64, (size_t)((bytes + 2 * guard + 63) / 64 * 64));
  if (!block) fail("no memory");
  memset(block, 0xA5, guard);
  memset(block + guard, filling, (size_t)bytes);
  memset(block + guard + bytes, 0xA5, guard);
  return block + guard;
}

static void check_guards(const unsigned char* data, int64_t bytes, const char* what) {
  for (int i = 0; i < guard; ++i)
    if (data[i - guard] != 0xA5 || data[bytes + i] != 0xA5) fail(what);
}

static int64_t read_size(void) {
  int64_t size;
  if (fread(&size, sizeof size, 1, stdin) != 1) fail("no size");
  return size;
}

int main(void) {
  unsigned char* inputs[INPUTS + 1];
  unsigned char* copies[INPUTS + 1];
  unsigned char* outputs[2][OUTPUTS + 1];
  int64_t in_bytes[INPUTS + 1], out_bytes[OUTPUTS + 1];
  for (int i = 0; i < INPUTS; ++i) {
    in_bytes[i] = read_size();
    inputs[i] = guarded(in_bytes[i], 0);
    copies[i] = guarded(in_bytes[i], 0);
    if (in_bytes[i] && fread(inputs[i], (size_t)in_bytes[i], 1, stdin) != 1) fail("input ends early");
    memcpy(copies[i], inputs[i], (size_t)in_bytes[i]);
  }
  for (int i = 0; i < OUTPUTS; ++i) out_bytes[i] = read_size();
  for (int run = 0; run < 2; ++run) {
    unsigned char* arena = guarded(ARENA_BYTES, run ? 0xFF : 0x00);
    for (int i = 0; i < OUTPUTS; ++i) outputs[run][i] = guarded(out_bytes[i], run ? 0xFF : 0x00);
    FUNCTION((const void* const*)inputs, (void* const*)outputs[run], arena);
    check_guards(arena, ARENA_BYTES, "wrote beside the arena");
    for (int i = 0; i < OUTPUTS; ++i) check_guards(outputs[run][i], out_bytes[i], "wrote beside an output");
    free(arena - guard);
  }
  for (int i = 0; i < INPUTS; ++i)
    if (memcmp(inputs[i], copies[i], (size_t)in_bytes[i])) fail("changed an input");
  for (int i = 0; i < OUTPUTS; ++i) {
    if (memcmp(outputs[0][i], outputs[1][i], (size_t)out_bytes[i])) fail("two runs differ");
    fwrite(outputs[0][i], (size_t)out_bytes[i], 1, stdout);
  }
  for (int i = 0; i < INPUTS; ++i) free(inputs[i] - guard), free(copies[i] - guard);
  for (int i = 0; i < OUTPUTS; ++i) free(outputs[0][i] - guard), free(outputs[1][i] - guard);
  return 0;
}
