// The loop form, between a program and machine code: scalar operations in loops over buffers.
//
// A module is a list of functions; the first is the driver, the others are the regions it invokes. A function is
// structured: no jumps, every value is assigned once, and a loop names the values it carries. Arrays, dtypes and
// primitives are gone: what remains are machine numbers, addresses that are sums of indices, and loops.
// This header needs neither LLVM nor the rest of the library, so both sides of the module boundary include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

// Formulas of the loop form: long computations that a function calls instead of inlining them each time.

namespace capibara::cpu {

using Value = int32_t;  // an index into Function::types
inline constexpr Value no_value = -1;

struct Function;

// A long computation on numbers of one float type that a function needs in many places: compiled once, and called with
// vectors in registers. `body` holds one For in lanes: its carries are the operands, at most three, and the next value
// of the first one is the result.
struct Formula {
  std::shared_ptr<const Function> body;
  // The factors of the result if that is a product; else none. A sum that is the result's only reader fuses them, as it
  // does with the product of an inlined formula.
  Value factor_a = no_value, factor_b = no_value;
};

enum class Scalar : uint8_t { i1, i8, i16, i32, i64, f16, bf16, f32, f64 };

constexpr bool is_float(Scalar type) { return type >= Scalar::f16; }
constexpr int byte_size(Scalar type) {
  constexpr int sizes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8};  // an i1 is stored as one byte, 0 or 1
  return sizes[static_cast<int>(type)];
}

// Operations on scalars of one type. Integers wrap; comparisons of floats are false if one side is NaN, except `ne`.
// f16 and bf16 exist in memory only: they are converted on the way to and from f32.
enum class Op : uint8_t {
  constant,  // bits
  add,
  sub,
  mul,
  neg,  // both kinds
  div,
  fma,
  sqrt,
  abs,
  floor,
  ceil,
  truncate,
  round_even,
  copysign,  // floats
  minimum,
  maximum,  // floats: NaN wins, -0 < +0
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right_logical,
  shift_right_arithmetic,  // shifts by less than the width
  divide_signed,
  divide_unsigned,
  remainder_signed,
  remainder_unsigned,  // the divisor is not 0, nor -1 for signed
  leading_zeros,
  population_count,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  // signed integers and floats; the result is i1
  lt_unsigned,
  le_unsigned,
  gt_unsigned,
  ge_unsigned,
  select,  // a (i1) ? b : c
  sign_extend,
  zero_extend,
  narrow,  // between integers
  signed_to_float,
  unsigned_to_float,
  float_to_signed,
  float_to_unsigned,  // toward zero, saturating, NaN becomes 0
  float_convert,      // between floats
  bitcast,            // same width
  call,
  apply,  // by `bits`: a function of libm (see Math), a formula
};

// What `call` names, in `bits`: functions of the C library that take and return numbers of the result's type.
enum class Math : uint8_t {
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  atan2,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  pow,
  cbrt,
  erf,
  erfc,
  log,
  log1p,
  exp,
  expm1,
  tanh,
  fmod,
  lgamma,
  nextafter,
  round
};

// offset + sum of index * factor, in elements of the accessed type; every index is an i64.
struct Term {
  Value index;
  int64_t factor;
};
struct Address {
  int32_t buffer = 0;  // of the function; see Function::buffers
  int64_t offset = 0;
  std::vector<Term> terms;
  int64_t ahead = 0;  // of a load: prefetches the address this many elements ahead; 0: nothing
};

struct Statement;
using Block = std::vector<Statement>;

struct Compute {
  Value result;
  Op op;
  Value a = no_value, b = no_value, c = no_value;
  uint64_t bits = 0;  // of a constant, the number of a function or formula, or rounded_product
};
constexpr uint64_t rounded_product = 1;  // of a product that is never fused into a multiply-add
struct Load {
  Value result;
  Address address;
};
struct Store {
  Value value;
  Address address;
};

// A value that a loop carries: `initial` at first, `next` of one iteration is `inside` of the next one, `result` after
// the last. A loop that may be split into lanes needs `combine` (add, mul, minimum, maximum, bit_and, bit_or, bit_xor,
// or for integers lt/gt for the smaller/greater, lt_unsigned/gt_unsigned for unsigned ones) with its `identity`: lanes
// accumulate separately from `identity` and are combined with `initial` in an order that the extent alone determines.
struct Carry {
  Value initial, inside, next, result;
  Op combine = Op::constant;
  Value identity = no_value;
};

// for (index = 0; index < extent; ++index). The extent is a number, or a value if one is set.
struct For {
  Value index;
  int64_t extent = 0;
  Value extent_value = no_value;
  bool lanes = false;     // iterations are independent except for combined carries: may run in vector registers
  bool parallel = false;  // the outermost loop of a region: it runs over the range that the caller passes
  bool poll = false;      // check in each iteration whether the process requests a stop
  std::vector<Carry> carries;
  Block body;
};

struct While {
  std::vector<Carry> carries;
  Block condition;  // reads the `inside` values
  Value go = no_value;
  Block body;
  bool poll = false;
};

struct Branch {
  Value condition;
  Block yes, no;
  struct Result {
    Value yes, no, result;
  };
  std::vector<Result> results;
};

// A part of one of the caller's buffers, passed to a callee: here `offset` and the factors count bytes.
struct Argument {
  Address address;
};

// Calls another function of the module; in parallel over its outermost loop if that is marked parallel.
struct Invoke {
  int32_t function;
  std::vector<Argument> arguments;  // one per parameter buffer
};

// Calls the program's own code on buffers: kernels outside of generated code. A status other than 0 ends the program.
struct Host {
  int32_t kernel;
  std::vector<Argument> arguments;
};

struct Statement {
  std::variant<Compute, Load, Store, For, While, Branch, Invoke, Host> what;
};

struct BufferInfo {
  int64_t bytes = 0;
  bool local = false;    // lives in the function's frame; else a parameter, in order
  bool written = false;  // by this function; no other parameter overlaps a written one
};

struct Function {
  std::string name;
  std::vector<Scalar> types;  // of all values
  std::vector<BufferInfo> buffers;
  Block body;
  bool parallel = false;  // the body is one For marked parallel, with values computed before it
  int64_t extent = 0;     // of that loop
  double cost = 0;        // nanoseconds per iteration of that loop, estimated
  std::vector<Formula> formulas;

  Value value(Scalar type) {
    types.push_back(type);
    return static_cast<Value>(types.size()) - 1;
  }
};

// True if the driver passes a function to Runtime::parallel: waking other threads takes as long as a shorter one.
inline bool runs_in_parallel(const Function& function) {
  constexpr double least_nanoseconds = 20000;
  return function.parallel && static_cast<double>(function.extent) * function.cost >= least_nanoseconds;
}

struct Module {
  std::vector<Function> functions;  // [0] is the driver
};

inline const For& loop_of(const Formula& formula) { return std::get<For>(formula.body->body.back().what); }
std::string to_string(const Module& module);
std::string to_string(const Function& function);

// ---- across the module boundary ---------------------------------------------------------------------------------

// Called by polling loops instead of a kernel: a status other than 0 ends the program.
inline constexpr int32_t poll_kernel = -1;

// The process's services for generated code; the first argument of each function.
struct Runtime {
  const volatile int32_t* ask;  // not 0: loops that poll call `host` with poll_kernel to learn whether to continue
  // Runs function(runtime, buffers, begin, end) over [0, extent) on the threads of the pool; returns a status.
  int32_t (*parallel)(const Runtime*, int32_t (*function)(const Runtime*, std::byte* const*, int64_t, int64_t),
                      std::byte* const* buffers, int64_t extent, double cost);
  int32_t (*host)(const Runtime*, int32_t kernel, std::byte* const* buffers);
  void* program;  // for `host`
};

// Every function of a module has this type; the driver ignores begin and end. 0: done, 1: cancelled, else failed.
using Entry = int32_t (*)(const Runtime*, std::byte* const* buffers, int64_t begin, int64_t end);

}  // namespace capibara::cpu
