// Tensor cores of Hopper as warpgroups use them: codes in shared memory, vectors and scores in registers.
//
// Codes come in tiles of 128, or 64, that a first kernel has laid out as the tensor cores read them, rows of 128 bytes
// whose 16-byte pieces are permuted; each tile is followed by what its scores are scaled and shifted by. One bulk copy
// brings it, and barriers in shared memory say when it is there and when everybody has left it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/bulk_copies.h"
#include "backends/cuda/quantization/vq_tiles.h"

namespace capibara::cuda {
namespace {

// The byte of an element of a code in its tile of `codes`: parts of 64 elements, 128 bytes of each code.
__host__ __device__ inline int tile_byte(int code, int element, int codes) {
  const int part = element / 64, piece = element % 64 / 8;
  return part * (codes * 128) + code * 128 + (piece ^ (code & 7)) * 16 + element % 8 * 2;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Codes by 16 elements at an address in shared memory: rows of 128 bytes, groups of eight 1024 bytes apart, pieces
// permuted.
__device__ inline uint64_t matrix_at(uint32_t address) {
  return static_cast<uint64_t>(address >> 4 & 0x3fff) | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Afterwards the scores may be read, and not before: the compiler is told that they change here.
template <int count>
__device__ void end_products(float (&c)[count]) {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (float& score : c) asm volatile("" : "+f"(score)::"memory");
}

// Of the warpgroup's 64 vectors and 128 codes, 16 elements of each; `more` adds to what the scores are.
__device__ inline void multiply(float (&c)[64], const unsigned (&a)[4], uint64_t codes, int more) {
  asm volatile(
      "{\n.reg .pred more;\nsetp.ne.b32 more, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
      "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63}, "
      "{%64, %65, %66, %67}, %68, more, 1, 1, 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]),
        "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]),
        "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
        "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), "+f"(c[32]),
        "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]),
        "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), "+f"(c[48]),
        "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), "+f"(c[56]),
        "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(codes), "r"(more));
}

// As above, 64 codes.
__device__ inline void multiply(float (&c)[32], const unsigned (&a)[4], uint64_t codes, int more) {
  asm volatile(
      "{\n.reg .pred more;\nsetp.ne.b32 more, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, more, 1, 1, 0;\n}"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), "+f"(c[8]),
        "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]),
        "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
        "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(codes), "r"(more));
}

#endif

}  // namespace
}  // namespace capibara::cuda
