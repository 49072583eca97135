// Builder: emits a function in loop form, statement by statement; equal computations in scope become one.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

class Builder {
 public:
  explicit Builder(Function& function) : function_(function), scopes_(1) { scopes_[0].block = &function.body; }
  Builder(const Builder&) = delete;

  Function& function() { return function_; }
  Scalar type(Value value) const { return function_.types[static_cast<std::size_t>(value)]; }

  // ---- values; constants of integers fold ------------------------------------------------------------------------
  Value constant_bits(Scalar type, uint64_t bits);
  Value constant(Scalar type, double value);       // rounded to the type
  Value constant_int(Scalar type, int64_t value);  // of an integer type, wrapped
  Value index(int64_t value) { return constant_int(Scalar::i64, value); }
  // The result has the type of `a` (of `b` for select, i1 for comparisons).
  Value compute(Op op, Value a, Value b = no_value, Value c = no_value);
  Value convert(Op op, Scalar to, Value a);  // sign_extend ... bitcast
  Value call(Math function, Value a, Value b = no_value);
  Value apply(std::size_t formula, std::span<const Value> operands);  // of Function::formulas
  // While on, products of floats are rounded on their own, even if a sum reads them.
  void round_products(bool on) { round_products_ = on; }
  // The bits of a constant value; else null.
  const uint64_t* constant_of(Value value) const;

  // ---- memory ----------------------------------------------------------------------------------------------------
  int32_t parameter(int64_t bytes, bool written);  // a buffer that the caller passes
  int32_t local(int64_t bytes);
  Value load(Scalar type, Address address);  // loads are never shared: there may be stores in between
  void store(Value value, Address address);

  // ---- structure: the callback writes the inner block ------------------------------------------------------------
  struct LoopOptions {
    bool lanes = false, parallel = false, poll = false;
    Value extent_value = no_value;
  };
  struct Initial {
    Value value;
    Op combine = Op::constant;
    Value identity = no_value;
  };
  using Body = std::function<std::vector<Value>(Value index, std::span<const Value> carried)>;
  // Returns the carried values after the last iteration; the body returns those of the next one.
  std::vector<Value> loop(int64_t extent, LoopOptions options, std::span<const Initial> initial, const Body& body);
  std::vector<Value> repeat(std::span<const Value> initial, bool poll,
                            const std::function<Value(std::span<const Value>)>& goes_on,
                            const std::function<std::vector<Value>(std::span<const Value>)>& body);
  std::vector<Value> branch(Value condition, const std::function<std::vector<Value>()>& yes,
                            const std::function<std::vector<Value>()>& no);
  void invoke(int32_t function, std::vector<Argument> arguments);
  void host(int32_t kernel, std::vector<Argument> arguments);

  int64_t statement_count() const { return statements_; }

 private:
  struct Key {
    Op op;
    Scalar type;
    Value a, b, c;
    uint64_t bits;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Scope {
    Block* block = nullptr;
    std::unordered_map<Key, Value, KeyHash> known;
  };

  Value emit(Op op, Scalar type, Value a, Value b, Value c, uint64_t bits);
  void append(Statement statement);
  template <class Write>
  void inside(Block& block, Write&& write);

  Function& function_;
  std::vector<Scope> scopes_;
  std::unordered_map<Value, uint64_t> constants_;
  int64_t statements_ = 0;
  bool round_products_ = false;
};

}  // namespace capibara::cpu
