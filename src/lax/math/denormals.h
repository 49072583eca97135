// Scopes in which this thread computes as jax on the CPU does, with denormals as zero in and out, or with denormals
// kept.
//
// Measured on jax 0.10.2: float32 1e-40 * 1 is 0, exp(-87.5f) is 0, in eager and compiled code alike; operations that
// only move bits (bitcast, nextafter, select, abs, negate) keep denormals.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace capibara::math {

namespace detail {

#if defined(__aarch64__)
constexpr std::uint64_t flush_bits = std::uint64_t{1} << 24;  // FPCR.FZ
inline std::uint64_t read_float_mode() {
  std::uint64_t value;
  asm volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
inline void write_float_mode(std::uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#elif defined(__x86_64__)
constexpr std::uint64_t flush_bits = 0x8040;  // MXCSR: flush to zero, denormals are zero
inline std::uint64_t read_float_mode() { return _mm_getcsr(); }
inline void write_float_mode(std::uint64_t value) { _mm_setcsr(static_cast<unsigned>(value)); }
#else
constexpr std::uint64_t flush_bits = 0;
inline std::uint64_t read_float_mode() { return 0; }
inline void write_float_mode(std::uint64_t) {}
#endif

template <bool Flush>
class DenormalMode {
 public:
  DenormalMode() : saved_(read_float_mode()) { write_float_mode(Flush ? saved_ | flush_bits : saved_ & ~flush_bits); }
  ~DenormalMode() { write_float_mode(saved_); }
  DenormalMode(const DenormalMode&) = delete;
  DenormalMode& operator=(const DenormalMode&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace detail

using FlushDenormals = detail::DenormalMode<true>;
// For calls from within a scope to code that chooses its own mode, or to the user's code.
using KeepDenormals = detail::DenormalMode<false>;

}  // namespace capibara::math
