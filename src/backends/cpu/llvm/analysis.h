// Facts about a function that the emitter needs in advance: uses, fused multiply-adds, and which loops run in lanes.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// How a value differs between the lanes of a loop: not at all, by a constant step, or arbitrarily.
enum class Kind : uint8_t { uniform, affine, varying };

struct LaneChoice {
  int lanes = 1;
  bool repeatable = false;  // an iteration may run twice: no buffer is both stored and loaded
};

class Analysis {
 public:
  // `fuses`: the target has fused multiply-add, so products with a single use are merged into the sum that uses them.
  Analysis(const Function& function, int vector_bytes, bool fuses);

  LaneChoice choice(const For& loop) const;
  // Marks the values of a loop's body with their kinds; outside of enter and leave every value is uniform.
  void enter(const For& loop);
  void leave();
  Kind kind(Value value) const { return kinds_[index(value)]; }
  int64_t step(Value value) const { return steps_[index(value)]; }  // of an affine value, from lane to lane

  // The product merged into a sum, or null: a multiplication, or a formula that ends in one.
  const Compute* product_of(const Compute& sum) const;
  bool is_fused(Value product) const { return fused_[index(product)]; }

  // The computation of a value; null if it is loaded, carried or an index.
  const Compute* definition(Value value) const { return definitions_[index(value)]; }

  // Not stored to while the function runs: loads may move.
  bool is_constant_buffer(int32_t buffer) const { return constant_buffers_[static_cast<std::size_t>(buffer)]; }
  bool calls() const { return calls_; }
  bool polls() const { return polls_; }
  std::size_t max_arguments() const { return max_arguments_; }
  // Statements executed per run of the block; `limit` if there are more, or if a loop has no small constant extent.
  int64_t weight(const Block& block, int64_t limit) const;

 private:
  static std::size_t index(Value value) { return static_cast<std::size_t>(value); }

  // Requirements of a formula where it is inlined.
  struct Demand {
    bool possible = true;  // in lanes
    int widest = 1, pressure = 0;
  };
  const Demand& demand(uint64_t formula);

  void survey(const Block& block);
  void use(Value value);
  void use(const Address& address);
  void decide(const Block& block, bool& has_lanes);
  LaneChoice try_lanes(const For& loop);

  struct Walk;

  const Function& function_;
  int vector_bytes_;
  bool fuses_;
  bool calls_ = false, polls_ = false;
  std::size_t max_arguments_ = 0;
  int blocks_ = 0;
  std::vector<int32_t> uses_, block_of_;
  std::vector<const Compute*> definitions_;
  std::vector<bool> fused_, constant_buffers_;
  std::unordered_map<const Compute*, const Compute*> products_;
  std::unordered_map<const For*, LaneChoice> choices_;
  std::vector<Kind> kinds_;
  std::vector<int64_t> steps_;
  std::vector<Value> marked_;
  std::unordered_map<uint64_t, Demand> demands_;
};

}  // namespace capibara::cpu
