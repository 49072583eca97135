// Writes one function of the loop form as LLVM IR; the methods are in function_emitter*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "backends/cpu/execution/compiler.h"
#include "backends/cpu/llvm/analysis.h"
#include "backends/cpu/loops/loops.h"

// State of a function's emitter: values, places in memory, loops and formulas.

namespace capibara::cpu {

// In a loop that runs in lanes a varying value is a vector; an affine one is the scalar of lane 0.
struct Slot {
  llvm::Value* value = nullptr;
  std::size_t level = 0;  // the number of loops around the definition
};

struct Place {
  llvm::Value* pointer;  // of lane 0, without the terms in `gathered`
  int64_t step = 0;      // elements from lane to lane
  std::vector<Term> gathered;
};

// A loop around the current point: values it does not change are computed before it, once.
struct Scope {
  llvm::Instruction* before;
  std::map<std::tuple<int32_t, llvm::Type*, std::vector<std::pair<Value, int64_t>>>, llvm::Value*> pointers;
  std::unordered_map<Value, llvm::Value*> splats;
};

enum class Sum : uint8_t { none, plus, minus };  // the operation after the product that ends a formula: z + ab, z - ab
struct Pending {
  llvm::Function* out;
  uint64_t formula;
  int lanes;
  Sum sum;
};

class FunctionEmitter {
 public:
  FunctionEmitter(const Module& source, std::size_t index, std::span<llvm::Function* const> functions,
                  const Target& target, bool standalone);
  // Emits the body of a formula.
  FunctionEmitter(const Module& source, const Function& body, llvm::Function* out, const Target& target);
  void run();

 private:
  // ---- values (function_emitter.cpp) --------------------------------------------------------------------------------
  Scalar type(Value value) const { return function_.types[static_cast<std::size_t>(value)]; }
  llvm::Type* type_of(Scalar type);         // in registers: f16 and bf16 as their bits
  llvm::Type* memory_type_of(Scalar type);  // an i1 is stored as a byte
  llvm::Type* widened(llvm::Type* type) { return llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes_)); }
  llvm::Value* constant(Scalar type, uint64_t bits);
  llvm::ConstantInt* index(int64_t value) { return llvm::ConstantInt::getSigned(b_.getInt64Ty(), value); }
  bool is_defined(Value value) const { return slots_[static_cast<std::size_t>(value)].value != nullptr; }
  void define(Value value, llvm::Value* what);
  std::size_t mark() const { return defined_.size(); }
  void forget(std::size_t mark);  // undefines the values defined since then
  llvm::Value* scalar(Value value);
  llvm::Value* vector(Value value);
  llvm::Value* splat(llvm::Value* value);
  // A vector if the carried value varies, else a scalar.
  llvm::Value* carried(Value value, Value inside) {
    return lanes_ > 1 && analysis_.kind(inside) == Kind::varying ? vector(value) : scalar(value);
  }
  llvm::BasicBlock* new_block(const char* name);
  void leave_if(llvm::Value* condition, llvm::Value* status);

  // ---- statements --------------------------------------------------------------------------------------------------
  void block(const Block& statements);
  void statement(const Compute& compute);
  void statement(const Load& load);
  void statement(const Store& store);
  void statement(const For& loop);
  void statement(const While& loop);
  void statement(const Branch& branch);
  void statement(const Invoke& invoke);
  void statement(const Host& host);
  void poll();
  void require_process() const;  // throws for standalone objects
  llvm::Value* call_host(llvm::Value* kernel, llvm::Value* arguments);
  llvm::Value* call_parallel(llvm::Value* function, llvm::Value* arguments, llvm::Value* extent, llvm::Value* cost);

  // ---- function_emitter_call_table.cpp ------------------------------------------------------------------------------
  std::size_t calls_in_a_row(const Block& statements, std::size_t first) const;  // 0 if a table is not worth it
  void call_table(std::span<const Statement> calls);

  // ---- function_emitter_formulas.cpp --------------------------------------------------------------------------------
  llvm::Value* apply(const Compute& compute, bool vectors, Sum sum = Sum::none, llvm::Value* addend = nullptr);
  void write_formulas();
  void run_formula(const For& loop, int lanes);

  // ---- function_emitter_structure.cpp -------------------------------------------------------------------------------
  using Values = std::vector<llvm::Value*>;
  // Emits loop-invariant computations before the loop; `surely`: the block runs at least once.
  void hoist(const Block& statements, bool surely);
  Values iteration(const For& loop, llvm::Value* at, const Values& carried);
  Values iterations(const For& loop, llvm::Value* begin, llvm::Value* end, int64_t step, Values carried);
  void clamped_iterations(const For& loop, llvm::Value* begin, llvm::Value* end);
  Values masked_iteration(const For& loop, int64_t at, int64_t count, const Values& carried);
  Values lanes_loop(const For& loop, LaneChoice choice, llvm::Value* begin, llvm::Value* end);
  Values initial_values(const For& loop);
  void lanes_branch(const Branch& branch);
  Values joined(const For& loop, const Values& lanes);

  // ---- function_emitter_operations.cpp ------------------------------------------------------------------------------
  llvm::Value* operation(const Compute& compute, bool vectors);
  std::optional<double> known_number(Value value) const;
  llvm::Value* bound(const Compute& choice, bool vectors);
  llvm::Value* divide(Value divisor, llvm::Value* a, llvm::Value* b);
  llvm::Value* combine(Op op, llvm::Value* a, llvm::Value* b);
  llvm::Value* math(Math function, Scalar type, llvm::Value* a, llvm::Value* b);
  // a * b + c, in one rounding.
  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* from_table(llvm::Constant* splat);
  void finish_table();

  // ---- function_emitter_conversions.cpp -----------------------------------------------------------------------------
  llvm::Value* from_integer(bool is_signed, llvm::Value* value, llvm::Type* to);
  llvm::Value* to_integer(bool is_signed, llvm::Value* value, llvm::Type* to);
  llvm::Value* convert_float(Scalar from, Scalar to, llvm::Value* value);
  bool converts_halves() const;
  // Halves are represented as 16-bit integers.
  llvm::Value* half_to_float(llvm::Value* value);
  llvm::Value* float_to_half(llvm::Value* value);

  // ---- function_emitter_memory.cpp ----------------------------------------------------------------------------------
  llvm::Value* base(int32_t buffer);
  llvm::Value* pointer(int32_t buffer, llvm::Type* element, const std::vector<Term>& terms, std::size_t level);
  llvm::Value* plus(llvm::Value* pointer, llvm::Type* element, const std::vector<Term>& terms);
  Place place(const Address& address, llvm::Type* element);
  llvm::Value* lane_pointer(const Place& place, llvm::Type* element, int lane);
  llvm::Value* load_one(llvm::Type* type, llvm::Value* pointer, const Address& address);
  void store_one(llvm::Value* value, llvm::Value* pointer, const Address& address);
  void prefetch(llvm::Value* pointer, llvm::Type* element, int64_t ahead);
  llvm::Value* load_lanes(const Address& address, llvm::Type* element);
  void store_lanes(llvm::Value* value, const Address& address, llvm::Type* element);
  int64_t step_of(const Address& address) const;
  bool load_pair(const Load& load);
  bool store_pair(const Store& store);
  bool store_square(const Store& store);
  void write_square(const std::vector<const Store*>& stores);
  llvm::Value* argument_array(const std::vector<Argument>& arguments);
  void describe_buffers();
  template <class Access>
  Access* described(Access* access, int32_t buffer);

  const Module& source_;
  bool standalone_ = false;  // no Runtime: one thread, no polls, no kernels
  const Function& function_;
  std::span<llvm::Function* const> functions_;
  const Target& target_;
  llvm::Function* out_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  Analysis analysis_;
  int lanes_ = 1;
  std::size_t lanes_level_ = 0;  // the number of loops around the loop that runs in lanes

  std::vector<Slot> slots_;
  std::vector<Value> defined_;
  std::vector<Scope> scopes_;
  std::vector<llvm::Value*> bases_;  // null: loaded where used
  std::vector<llvm::MDNode*> scopes_of_buffer_, others_of_buffer_;
  std::unordered_map<const Store*, const Store*> waiting_;               // from the second store of a pair to the first
  std::unordered_map<const Store*, std::vector<const Store*>> squares_;  // stores that are written together
  const Block* here_ = nullptr;  // the innermost block being written, and the current statement in it
  std::size_t position_ = 0;
  llvm::GlobalVariable* table_ = nullptr;  // constants that are loaded where they are used
  std::vector<llvm::Constant*> table_entries_;
  std::map<llvm::Constant*, uint64_t> table_places_;  // in bytes
  uint64_t table_bytes_ = 0;
  std::vector<Pending> pending_;  // formulas that are called but have no body yet
  llvm::Value* ask_ = nullptr;
  llvm::Value* arguments_ = nullptr;  // room for a callee's pointer arguments
  llvm::BasicBlock* exit_ = nullptr;
  llvm::PHINode* status_ = nullptr;
};

bool has_feature(const Target& target, const char* feature);
bool is_x86(const Target& target);

}  // namespace capibara::cpu
