// Runs one compiled program on another architecture: reads its buffers from standard input, writes its outputs.
//
// Linked with the program's object code and started by the tests under an emulator. The input is a sequence of
// 64-bit numbers and bytes: the count of buffers and, for each, its size, 1 if it is an output, and its contents.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef struct Runtime Runtime;
typedef int32_t (*Entry)(const Runtime*, char* const* buffers, int64_t begin, int64_t end);

struct Runtime {
  const volatile int32_t* ask;
  int32_t (*parallel)(const Runtime*, Entry function, char* const* buffers, int64_t extent, double cost);
  int32_t (*host)(const Runtime*, int32_t kernel, char* const* buffers);
  void* program;
};

int32_t capibara_driver(const Runtime*, char* const* buffers, int64_t begin, int64_t end);

static int32_t parallel(const Runtime* runtime, Entry function, char* const* buffers, int64_t extent, double cost) {
  (void)cost;
  const int32_t status = function(runtime, buffers, extent / 2, extent);
  return status ? status : function(runtime, buffers, 0, extent / 2);
}

static int32_t host(const Runtime* runtime, int32_t kernel, char* const* buffers) {
  (void)runtime, (void)kernel, (void)buffers;
  return 2;
}

static int64_t number(void) {
  int64_t value = 0;
  if (fread(&value, sizeof value, 1, stdin) != 1) exit(3);
  return value;
}

int main(void) {
  const int64_t count = number();
  char** buffers = calloc((size_t)count + 1, sizeof *buffers);
  int64_t* sizes = calloc((size_t)count + 1, sizeof *sizes);
  int64_t* outputs = calloc((size_t)count + 1, sizeof *outputs);
  for (int64_t i = 0; i < count; ++i) {
    sizes[i] = number();
    outputs[i] = number();
    buffers[i] = aligned_alloc(64, ((size_t)sizes[i] + 127) / 64 * 64);
    if (fread(buffers[i], 1, (size_t)sizes[i], stdin) != (size_t)sizes[i]) return 3;
  }
#ifdef __x86_64__
  _mm_setcsr(_mm_getcsr() | 0x8040);  // denormals are zero, as in compiled programs
#elif defined(__aarch64__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | UINT64_C(1) << 24));
#endif
  const int32_t never = 0;
  const Runtime runtime = {&never, parallel, host, NULL};
  const int32_t status = capibara_driver(&runtime, buffers, 0, 0);
  if (status) return 4;
  for (int64_t i = 0; i < count; ++i) {
    if (outputs[i]) fwrite(buffers[i], 1, (size_t)sizes[i], stdout);
  }
  return 0;
}
