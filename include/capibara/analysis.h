// Cost of a program: memory as its backend planned it, and operations counted from its equations.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <capibara/dtype.h>

namespace capibara {

class Program;
struct NamedSharding;

// In bytes, for one device.
struct MemoryUse {
  int64_t generated_code = 0, argument = 0, output = 0, alias = 0, temp = 0, peak = 0;
  int64_t host_generated_code = 0, host_argument = 0, host_output = 0, host_alias = 0, host_temp = 0;
};

// Element types whose matmuls devices run at different rates. Any other type counts as float32, complex128 as
// float64.
enum class RateType : uint8_t { float32, float64, bfloat16, float16, float8, int8 };
inline constexpr std::size_t rate_type_count = 6;
// The rate class of operations on elements of this type.
RateType rate_type(DType type);
// A representative element type of that class: bfloat16, float8_e4m3fn, ...
DType element_type(RateType type);

// The body of a scan counts once per iteration; that of a while loop once, since its trip count is unknown.
struct ProgramCost {
  double flops = 0;            // additions, products, comparisons
  double transcendentals = 0;  // exp, log, tanh and the like
  double bytes_accessed = 0;   // operands and results of every operation, as if each were run alone
  std::array<double, rate_type_count> flops_by_type = {};  // by the type of the first operand
};
// Counts the operations and the bytes accessed by a program.
ProgramCost count_cost(const Program& program);

// Details of one compiled variant of a program, for fixed placements of its inputs.
struct ExecutableDetails {
  std::optional<MemoryUse> memory;                            // absent if the backend does not report it
  std::vector<std::shared_ptr<const NamedSharding>> outputs;  // empty: a single device
};

}  // namespace capibara
