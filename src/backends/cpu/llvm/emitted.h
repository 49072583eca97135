// What the emitter of a function keeps of values, places in memory, loops and formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/loops/loops.h"

namespace capibara::cpu {

// In a loop that runs in lanes a varying value is a vector; an affine one is the scalar of lane 0.
struct Slot {
  llvm::Value* value = nullptr;
  std::size_t level = 0;  // the number of loops around the definition
};

struct Place {
  llvm::Value* pointer;  // of lane 0, without the gathered terms
  int64_t step = 0;      // elements from lane to lane
  std::vector<Term> gathered;
};

// A loop around the current point: what it does not change is put before it, once.
struct Scope {
  llvm::Instruction* before;
  std::map<std::tuple<int32_t, llvm::Type*, std::vector<std::pair<Value, int64_t>>>, llvm::Value*> pointers;
  std::unordered_map<Value, llvm::Value*> splats;
};

enum class Sum : uint8_t { none, plus, minus };  // what follows the product in which a formula ends: z + ab, z - ab
struct Pending {
  llvm::Function* out;
  uint64_t formula;
  int lanes;
  Sum sum;
};

}  // namespace capibara::cpu
