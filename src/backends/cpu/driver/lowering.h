// How a program becomes the driver's statements: the frame of each nested program, its memory, its groups.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/driver/sites.h"
#include "backends/cpu/groups/reuse.h"
#include "backends/cpu/groups/scan_columns.h"
#include "backends/cpu/loops/builder.h"
#include "backends/cpu/regions/region.h"
#include "backends/cpu/rewrites/unshare.h"

// Plans the single arena of a program: values with disjoint lifetimes may share offsets.

namespace capibara::cpu {

class ArenaPlan {
 public:
  // The lowest free block that fits, in multiples of a cache line.
  int64_t allocate(int64_t bytes) {
    const int64_t size = rounded(bytes);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < size) continue;
      const int64_t offset = it->first, left = it->second - size;
      free_.erase(it);
      if (left > 0) free_.emplace(offset + size, left);
      return offset;
    }
    int64_t offset = end_;
    if (!free_.empty()) {  // the last hole reaches the end: extend it
      auto last = std::prev(free_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        free_.erase(last);
      }
    }
    end_ = offset + size;
    return offset;
  }

  void release(int64_t offset, int64_t bytes) {
    auto [it, inserted] = free_.emplace(offset, rounded(bytes));
    auto next = std::next(it);
    if (next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it != free_.begin()) {
      auto before = std::prev(it);
      if (before->first + before->second == it->first) {
        before->second += it->second;
        free_.erase(it);
      }
    }
  }

  int64_t size() const { return end_; }

 private:
  static constexpr int64_t line = 64;
  static int64_t rounded(int64_t bytes) { return bytes <= 0 ? line : (bytes + line - 1) / line * line; }

  std::map<int64_t, int64_t> free_;  // offset -> size
  int64_t end_ = 0;
};

int64_t bytes_of(const ArrayType& type);
bool same(const Address& a, const Address& b);

// Memory of a variable, as a byte range of one of the driver's buffers.
struct Place {
  Address address;
  int64_t arena_offset = -1;  // in the arena, to be released
};

class Lowering {
 public:
  // `sites`: receives the call sites, each of which is then marked; or null. `kernels`: whether kernels may be
  // called.
  Lowering(const Program& program, const std::vector<bool>& donated, Sites* sites = nullptr, bool kernels = true)
      : program_(read_columns(unshare(program))), donated_(donated), sites_(sites), kernels_(kernels) {
    lowered_.module.functions.emplace_back();
    lowered_.module.functions[0].name = "driver";
    driver_ = std::make_unique<Builder>(driver_function_);
  }
  Lowered run();

 private:
  // Provisional numbers of the driver's buffers other than inputs, until all of them are known.
  static constexpr int32_t constant_base = 1 << 20, output_base = 1 << 24, arena_buffer = 1 << 28;

  // One instance of a program: where its variables are stored.
  struct Frame {
    explicit Frame(const Program& program) : program(program), place(static_cast<std::size_t>(program.var_count())) {}
    const Program& program;
    std::vector<std::optional<Place>> place;
    std::map<int32_t, Address> preferred;  // where a variable should be written
    std::map<int32_t, int32_t> replaces;   // results that reuse the memory of the carry they replace
  };

  void lower(Frame& frame);
  // Results of a loop reuse the memory of initial values that no one reads later.
  void take_over_carries(Frame& frame, const Analysis& known, int g, const Equation& loop);
  void release_dead(Frame& frame, const Analysis& known, int g);
  // Memory for a variable: at its preferred address, or in the arena.
  const Address& make_place(Frame& frame, Var var);
  void note_size(const ArrayType& type);
  Place in_arena(int64_t bytes);
  Address address_of(Frame& frame, Atom atom);

  // The end of the run of groups, starting at `first`, that is emitted as one function with all values in registers.
  int end_of_registers(const Frame& frame, const Analysis& known, int first) const;
  void lower_registers(Frame& frame, const Analysis& known, int first, int end);

  void lower_alias(Frame& frame, const Group& group);
  // The loops of a group as calls, before any of them becomes a statement of the driver.
  struct RegionCall {
    Function function;
    std::vector<Argument> arguments;
  };
  std::vector<RegionCall> calls_of(Frame& frame, const Analysis& known, int g);
  void invoke(std::vector<RegionCall> calls);
  // Updates an array in place if this is its last use.
  bool takes_over(Frame& frame, const Analysis& known, int g, Aliases& aliases);
  // Equal regions share one function.
  int32_t function_number(Function function);
  // Memory for the outputs of an equation; outputs that no one reads are released when the equation is done.
  struct Results {
    std::vector<Address> places;
    std::vector<std::pair<int64_t, int64_t>> unread;  // offset and size in the arena
  };
  struct HostCall {
    Types inputs, outputs;
    std::vector<Argument> arguments;  // those of the inputs, then those of the outputs
    std::vector<bool> constants;
  };
  HostCall host_call(Frame& frame, const Equation& equation, const Results& results);
  void lower_host(Frame& frame, const Equation& equation);
  void lower_routine(const Equation& equation, const Types& outputs, HostCall call);
  // Lowers a matmul and the group of loops that reads its result next; returns that group's number, -1 for none.
  int lower_product(Frame& frame, const Analysis& known, int g);
  bool may_follow(const HostCall& product, const ProductKernel& kernel, const std::vector<RegionCall>& calls) const;
  Results make_results(Frame& frame, const Equation& equation, const Types& types);
  void release(const Results& results);
  void copy(const Address& from, const Address& to, int64_t bytes);

  // ---- marks, where requested
  void mark(int32_t site);
  void mark_group(const Frame& frame, const Analysis& known, int g);
  void mark_equations(const Frame& frame, const Analysis& known, std::vector<int> equations);
  // Lowers a loop; if its iterations are too short to be marked individually, the loop gets one mark.
  template <class F>
  void marked_loop(const Frame& frame, const Equation& equation, const Program& body, const F& lower_loop);

  // Deduplicates constants: small ones if their values are equal, large ones if they are the same array.
  int constant_number(const Array& array);
  int32_t constant_buffer(const Array& array) { return constant_base + constant_number(array); }
  // Assigns the final numbers of buffers: inputs, constants, outputs, arena.
  void number_buffers();

  // ---- control flow: lowering_control.cpp
  void lower_control(Frame& frame, const Equation& equation);
  std::vector<Address> places_of(Frame& frame, std::span<const Atom> atoms);
  // The body of a call, a branch or one iteration of a loop: reads inputs from and writes outputs to their final
  // addresses. `replaced`: for some outputs, the input whose memory they reuse.
  void lower_body(const Program& given, const std::vector<Address>& inputs, const std::vector<Address>& outputs,
                  const std::map<std::size_t, Var>& replaced = {});
  void lower_call(Frame& frame, const Equation& equation, const Program& body);
  void lower_cond(Frame& frame, const Equation& equation);
  void branch_from(const std::vector<Program>& branches, std::size_t first, Value index,
                   const std::vector<Address>& inputs, const std::vector<Address>& outputs);
  Value loaded_scalar(DType dtype, Address address);
  void start_carries(Frame& frame, std::span<const Atom> initial, const std::vector<Address>& carries,
                     const Program& body, std::size_t first);
  // One iteration: new values of carries are written to separate memory unless they may overwrite the old ones.
  void lower_iteration(const Program& body, std::vector<Address> inputs, const std::vector<Address>& carries,
                       std::size_t first_carry, const std::vector<Address>& further_outputs);
  void lower_while(Frame& frame, const Equation& equation);
  bool lower_while_in_place(Frame& frame, const Equation& equation, const std::vector<Address>& results);
  void lower_scan(Frame& frame, const Equation& equation);
  void lower_scan_blocks(Frame& frame, const Equation& equation);

  const Program program_;
  std::vector<bool> donated_;  // inputs whose memory outputs may still reuse
  Sites* sites_;
  bool kernels_;             // whether the program may call kernels outside of generated code
  int32_t whole_loop_ = -1;  // inside a loop that is marked as a whole, its site; else -1
  Lowered lowered_;
  Function driver_function_;
  std::unique_ptr<Builder> driver_;
  ArenaPlan arena_;
  std::set<std::pair<int64_t, std::string>> largest_;
  Analyses analyses_;
  std::unordered_map<std::string, int32_t> functions_;
  std::unordered_map<std::string, int> small_constants_;
  std::unordered_map<const void*, int> large_constants_;
};

}  // namespace capibara::cpu
