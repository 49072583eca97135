// Times contractions and convolutions of the CPU backend against the machine's limits, measured in the same program.
//
// contraction [THREADS] prints microseconds (the minimum of many short repeats), Gflop/s or GB/s, and the share of the
// limit of that many cores: multiply-adds on registers for matmuls, read bandwidth for vector-matrix products.
#include <capibara/primitive.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/kernels/host.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"
#include "program/ir/window_shape.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

using namespace capibara;

// One assembly instruction per source line.
// clang-format off
namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class F>
double least(double budget, F&& f) {
  f();
  double best = 1e9;
  for (const double end = seconds() + budget; seconds() < end;) {
    const double start = seconds();
    f();
    best = std::min(best, seconds() - start);
  }
  return best;
}

struct Limits {
  double single = 0, real = 0, bfloat16 = 0, byte = 0, read = 0;  // Gflop/s of one core, GB/s of all
};

#if defined(__aarch64__)
#define EACH(M)                                                                                                             \
  M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15) M(16) M(17) M(18) M(19) M(20) M(21) M(22) M(23) M(24) M(25) M(26) M(27) M(28) \
  M(29) M(30) M(31)
#define CLEAR(R) "movi v" #R ".2d, #0\n"
#define SINGLE(R) "fmla v" #R ".4s, v0.4s, v1.4s\n"
#define REAL(R) "fmla v" #R ".2d, v0.2d, v1.2d\n"
#define BRAIN(R) "bfmmla v" #R ".4s, v0.8h, v1.8h\n"
#define BYTE(R) "smmla v" #R ".4s, v0.16b, v1.16b\n"
#if defined(__clang__)
#define NARROW __attribute__((target("bf16,i8mm")))
#else
#define NARROW __attribute__((target("arch=armv8.2-a+bf16+i8mm")))
#endif
#define PEAK(NAME, TARGET, INSTRUCTION)                                                                              \
  TARGET void NAME(int64_t iterations) {                                                                             \
    asm volatile(                                                                                                    \
        "movi v0.2d, #0\n movi v1.2d, #0\n" EACH(CLEAR) "1:\n" EACH(INSTRUCTION) "subs %0, %0, #1\n b.ne 1b\n"       \
        : "+r"(iterations)                                                                                           \
        :                                                                                                            \
        : "cc", "v0", "v1", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", \
          "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");                              \
  }
PEAK(single_peak, , SINGLE)
PEAK(real_peak, , REAL)
PEAK(bfloat16_peak, NARROW, BRAIN)
PEAK(byte_peak, NARROW, BYTE)
#endif

Limits measure() {
  Limits limits;
#if defined(__aarch64__)
  constexpr int64_t iterations = 4000;
  auto rate = [](void (*peak)(int64_t), double operations) {
    return 24 * operations * iterations / least(0.2, [&] { peak(iterations); }) * 1e-9;
  };
  limits.single = rate(single_peak, 8);
  limits.real = rate(real_peak, 4);
  if (getauxval(AT_HWCAP2) & HWCAP2_BF16) limits.bfloat16 = rate(bfloat16_peak, 32);
  if (getauxval(AT_HWCAP2) & HWCAP2_I8MM) limits.byte = rate(byte_peak, 64);
#endif
  std::vector<uint64_t> memory(std::size_t{32} << 20, 1);
  uint64_t total = 0;
  const double time = least(0.5, [&] {
    parallel_for(64, 1, [&](int64_t begin, int64_t end) {
      typedef uint64_t V __attribute__((vector_size(16), may_alias));
      V sums[8] = {};
      for (std::size_t i = static_cast<std::size_t>(begin) << 19; i < static_cast<std::size_t>(end) << 19; i += 16) {
#pragma GCC unroll 8
        for (std::size_t s = 0; s < 8; ++s) sums[s] += *reinterpret_cast<const V*>(&memory[i + 2 * s]);
      }
      for (const V& sum : sums) __atomic_fetch_add(&total, sum[0] + sum[1], __ATOMIC_RELAXED);
      return 0;
    });
  });
  if (total == 0) std::puts("nothing was read");
  limits.read = static_cast<double>(memory.size() * 8) / time * 1e-9;
  return limits;
}

ArrayType type_of(DType dtype, Shape shape) {
  ArrayType type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

// Runs one primitive on operands between -1 and 1.
double time_kernel(const char* name, const Types& inputs, const Attrs& attrs) {
  const Primitive primitive = *find_primitive(name);
  const Types outputs = primitive->type(inputs, attrs).types;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> buffers;
  uint32_t state = 1;
  for (const Types* types : {&inputs, &outputs}) {
    for (const ArrayType& type : *types) {
      memory.emplace_back(static_cast<std::size_t>(type.size() * storage_size(type.dtype)) + 64);
      for (int64_t i = 0; types == &inputs && i < type.size(); ++i) {
        state = state * 1664525 + 1013904223;
        const double value = static_cast<double>(state >> 8) / (1 << 23) - 1;
        store_as<double>(type.dtype, memory.back().data(), i, is_integer(type.dtype) ? static_cast<double>(static_cast<int>(value * 8)) : value);
      }
    }
  }
  for (std::vector<std::byte>& bytes : memory) buffers.push_back(bytes.data());
  const cpu::HostKernel kernel = cpu::host_kernel(primitive, inputs, outputs, attrs);
  return least(0.4, [&] { kernel(buffers.data()); });
}

Attrs dot_attrs(DotDimensionNumbers numbers, Attr preferred = {}) {
  return {{"dimension_numbers", numbers}, {"precision", Attr()}, {"preferred_element_type", preferred}, {"out_sharding", Attr()}};
}

void print(const std::string& what, double time, double amount, const char* unit, double limit) {
  std::printf("%-32s %10.1f us %8.1f %s", what.c_str(), time * 1e6, amount / time * 1e-9, unit);
  if (limit > 0) std::printf("  %3.0f %% of %.0f", 100 * amount / time * 1e-9 / limit, limit);
  std::puts("");
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) set_thread_count(std::atoi(arguments[1]));
  const double threads = thread_count();
  const Limits limits = measure();
  std::printf("%d threads; one core: f32 %.1f, f64 %.1f, bf16 %.1f, int8 %.1f Gflop/s; reading %.1f GB/s\n", thread_count(), limits.single, limits.real,
              limits.bfloat16, limits.byte, limits.read);
  struct Size {
    DType dtype;
    int64_t batch, m, k, n;
  };
  for (const Size& s : {Size{DType::float32, 1, 64, 64, 64}, Size{DType::float32, 1, 512, 512, 512}, Size{DType::float32, 1, 1024, 1024, 1024},
                        Size{DType::float32, 1, 2048, 2048, 2048}, Size{DType::float32, 256, 64, 64, 64}, Size{DType::float32, 1, 16, 1024, 4096},
                        Size{DType::float32, 1, 64, 100000, 64}, Size{DType::float64, 1, 1024, 1024, 1024}, Size{DType::bfloat16, 1, 1024, 1024, 1024},
                        Size{DType::int8, 1, 1024, 1024, 1024}}) {
    const double limit = s.dtype == DType::float32 ? limits.single : s.dtype == DType::float64 ? limits.real : s.dtype == DType::bfloat16 ? limits.bfloat16 : limits.byte;
    const Attr preferred = s.dtype == DType::int8 ? Attr(DType::int32) : Attr();
    const double time = time_kernel("dot_general", {type_of(s.dtype, {s.batch, s.m, s.k}), type_of(s.dtype, {s.batch, s.k, s.n})}, dot_attrs({{2}, {1}, {0}, {0}}, preferred));
    const std::string name = std::string(to_string(s.dtype)) + " " + std::to_string(s.batch) + " of " + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" + std::to_string(s.n);
    print(name, time, 2.0 * static_cast<double>(s.batch * s.m * s.k * s.n), "Gflop/s", limit * threads);
  }
  for (bool transposed : {false, true}) {
    const double time = time_kernel("dot_general", {type_of(DType::float32, {1, 4096}), type_of(DType::float32, {4096, 4096})}, dot_attrs({{1}, {transposed ? 1 : 0}, {}, {}}));
    print(transposed ? "float32 1x4096 by rows" : "float32 1x4096x4096", time, 4.0 * 4096 * 4096, "GB/s", limits.read);
  }
  for (DType dtype : {DType::float32, DType::float64}) {
    const double size = static_cast<double>(storage_size(dtype));
    double time = time_kernel("dot_general", {type_of(dtype, {1000000, 3}), type_of(dtype, {3, 3})}, dot_attrs({{1}, {0}, {}, {}}));
    print(std::string(to_string(dtype)) + " (1e6,3)@(3,3)", time, 6e6 * size, "GB/s", 0);
    time = time_kernel("dot_general", {type_of(dtype, {1000000, 3, 3}), type_of(dtype, {1000000, 3, 3})}, dot_attrs({{2}, {1}, {0}, {0}}));
    print(std::string(to_string(dtype)) + " 1e6 of 3x3@3x3", time, 27e6 * size, "GB/s", 0);
  }
  const ConvDimensionNumbers numbers{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}};
  struct Convolution {
    const char* name;
    int64_t window, stride, groups;
  };
  for (const Convolution& c : {Convolution{"convolution 3x3 8x64x56x56", 3, 1, 1}, Convolution{"convolution 1x1", 1, 1, 1}, Convolution{"convolution 3x3 by 2", 3, 2, 1},
                               Convolution{"convolution 3x3 depthwise", 3, 1, 64}}) {
    const int64_t pad = c.window / 2;
    const Attrs attrs{{"window_strides", Ints{c.stride, c.stride}}, {"padding", padding_attr({{pad, pad}, {pad, pad}})}, {"lhs_dilation", Ints{1, 1}},
                      {"rhs_dilation", Ints{1, 1}}, {"dimension_numbers", numbers}, {"feature_group_count", c.groups}, {"batch_group_count", int64_t{1}},
                      {"precision", Attr()}, {"preferred_element_type", Attr()}};
    const double time = time_kernel("conv_general_dilated", {type_of(DType::float32, {8, 64, 56, 56}), type_of(DType::float32, {64, 64 / c.groups, c.window, c.window})}, attrs);
    const double places = static_cast<double>(8 * (56 / c.stride) * (56 / c.stride));
    print(c.name, time, 2 * places * 64 * static_cast<double>(64 / c.groups * c.window * c.window), "Gflop/s", limits.single * threads);
  }
}
