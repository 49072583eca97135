// Lowers a program group by group into the driver.
#include "backends/cpu/driver/lowering.h"

#include <algorithm>

#include "backends/cpu/kernels/exchange.h"
#include "backends/cpu/loops/epilogue.h"
#include "backends/cpu/loops/hoist.h"
#include "backends/cpu/regions/registers.h"
#include "program/ir/callback.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

constexpr int64_t max_register_run = 1500;          // scalar operations per function
constexpr int64_t max_epilogue_bytes = 256 * 1024;  // of a matmul, read by one step of an epilogue: fits the cache

}  // namespace

int64_t bytes_of(const ArrayType& type) {
  int64_t bytes = storage_size(type.dtype);
  for (int64_t size : type.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw RuntimeError(concat("compile: ", to_string(type), " is larger than memory"));
  }
  return bytes;
}

// ---- a frame ----------------------------------------------------------------------------------------------------

void Lowering::lower(Frame& frame) {
  const Analysis& known = analyses_.of(frame.program);
  // An alias passes its preferred address on to its operand, a carry to its initial value.
  for (std::size_t g = known.fusion.groups.size(); g-- > 0;) {
    const Group& group = known.fusion.groups[g];
    const Equation& equation = frame.program.equations()[at(group.results[0])];
    const Carries carries = carries_of(equation);
    for (std::size_t i = 0; i < carries.count; ++i) {
      auto preferred = frame.preferred.find(equation.outputs[i].id);
      if (preferred == frame.preferred.end() || !dies_as_carry(known, static_cast<int>(g), equation, carries.first + i))
        continue;
      frame.preferred.try_emplace(equation.inputs[carries.first + i].code, preferred->second);
    }
    if (group.work != Work::alias) continue;
    auto preferred = frame.preferred.find(equation.outputs[0].id);
    if (preferred == frame.preferred.end() || equation.inputs[0].is_literal()) continue;
    const int32_t operand = equation.inputs[0].code;
    if (known.fusion.definition[at(operand)] >= 0) frame.preferred.try_emplace(operand, preferred->second);
  }
  for (std::size_t g = 0; g < known.fusion.groups.size(); ++g) {
    if (const int end = end_of_registers(frame, known, static_cast<int>(g)); end > static_cast<int>(g)) {
      lower_registers(frame, known, static_cast<int>(g), end);
      for (; static_cast<int>(g) < end; ++g) release_dead(frame, known, static_cast<int>(g));
      --g;
      continue;
    }
    const Group& group = known.fusion.groups[g];
    switch (group.work) {
      case Work::alias:
        if (sites_ && frame.program.equations()[at(group.results[0])].primitive == exchange_wait())
          mark_group(frame, known, static_cast<int>(g));
        lower_alias(frame, group);
        break;
      case Work::loops:
      case Work::pieces: {
        std::vector<RegionCall> calls = calls_of(frame, known, static_cast<int>(g));
        if (sites_ && !calls.empty()) mark_group(frame, known, static_cast<int>(g));
        invoke(std::move(calls));
        break;
      }
      case Work::host:
        if (const int last = lower_product(frame, known, static_cast<int>(g)); last >= 0) {
          for (; static_cast<int>(g) < last; ++g) release_dead(frame, known, static_cast<int>(g));
          break;
        }
        if (sites_) mark_group(frame, known, static_cast<int>(g));
        lower_host(frame, frame.program.equations()[at(group.results[0])]);
        if (whole_loop_ >= 0 && calls_host(frame.program.equations()[at(group.results[0])].primitive))
          mark(sites_->add_rest(whole_loop_));
        break;
      case Work::control:
        take_over_carries(frame, known, static_cast<int>(g), frame.program.equations()[at(group.results[0])]);
        lower_control(frame, frame.program.equations()[at(group.results[0])]);
        break;
    }
    release_dead(frame, known, static_cast<int>(g));
  }
  for (const auto& [id, address] : frame.preferred) {
    if (known.last_use[at(id)] != static_cast<int>(known.fusion.groups.size())) continue;
    const Place& place = *frame.place[at(id)];
    if (!same(place.address, address)) copy(place.address, address, bytes_of(frame.program.type(Var{id})));
  }
}

void Lowering::take_over_carries(Frame& frame, const Analysis& known, int g, const Equation& loop) {
  const Carries carries = carries_of(loop);
  for (std::size_t i = 0; i < carries.count; ++i) {
    const Var output = loop.outputs[i];
    if (output.dropped() || frame.preferred.count(output.id) || !dies_as_carry(known, g, loop, carries.first + i))
      continue;
    std::optional<Place>& first = frame.place[at(loop.inputs[carries.first + i].code)];
    if (!first || first->arena_offset < 0) continue;
    frame.place[at(output.id)] = *first;
    first->arena_offset = -1;
  }
}

void Lowering::release_dead(Frame& frame, const Analysis& known, int g) {
  auto consider = [&](Var var) {
    if (var.dropped()) return;
    std::optional<Place>& place = frame.place[at(var.id)];
    if (!place || place->arena_offset < 0) return;
    if (known.last_use[at(var.id)] > g) return;
    arena_.release(place->arena_offset, bytes_of(frame.program.type(var)));
    place->arena_offset = -1;
  };
  for (int e : known.fusion.members[at(g)]) {
    const Equation& equation = frame.program.equations()[at(e)];
    for (Atom input : equation.inputs) {
      if (!input.is_literal()) consider(input.var());
    }
    for (Var output : equation.outputs) consider(output);
  }
}

const Address& Lowering::make_place(Frame& frame, Var var) {
  note_size(frame.program.type(var));
  std::optional<Place>& place = frame.place[at(var.id)];
  if (auto preferred = frame.preferred.find(var.id); preferred != frame.preferred.end()) {
    place = Place{preferred->second};
  } else {
    place = in_arena(bytes_of(frame.program.type(var)));
  }
  return place->address;
}

void Lowering::note_size(const ArrayType& type) {
  largest_.emplace(bytes_of(type), to_string(type));
  if (largest_.size() > 5) largest_.erase(largest_.begin());
}

Place Lowering::in_arena(int64_t bytes) {
  const int64_t offset = arena_.allocate(bytes);
  return {{arena_buffer, offset, {}}, offset};
}

Address Lowering::address_of(Frame& frame, Atom atom) {
  if (atom.is_literal()) return {constant_buffer(frame.program.literal(atom)), 0, {}};
  const std::optional<Place>& place = frame.place[at(atom.code)];
  if (!place) throw InternalError(concat("cpu: variable ", atom.code, " has no memory"));
  return place->address;
}

// ---- small groups, in registers ---------------------------------------------------------------------------------

int Lowering::end_of_registers(const Frame& frame, const Analysis& known, int first) const {
  int64_t cost = 0;
  int g = first;
  for (; g < static_cast<int>(known.fusion.groups.size()); ++g) {
    int64_t own = 0;
    for (int e : known.fusion.members[at(g)]) {
      const Equation& equation = frame.program.equations()[at(e)];
      if (!fits_registers(frame.program, equation)) return g;
      own += register_cost(frame.program, equation);
    }
    if (g > first && cost + own > max_register_run) return g;
    cost += own;
  }
  return g;
}

void Lowering::lower_registers(Frame& frame, const Analysis& known, int first, int end) {
  std::vector<int> equations;
  for (int g = first; g < end; ++g)
    equations.insert(equations.end(), known.fusion.members[at(g)].begin(), known.fusion.members[at(g)].end());
  std::sort(equations.begin(), equations.end());
  std::vector<Var> stored;
  for (int e : equations) {
    for (Var output : frame.program.equations()[at(e)].outputs) {
      if (output.dropped()) continue;
      const ArrayType& type = frame.program.type(output);
      if (known.last_use[at(output.id)] < end && type.size() <= 64) continue;
      stored.push_back(output);
      make_place(frame, output);
    }
  }
  if (stored.empty()) return;
  Region region = write_registers(frame.program, equations, stored);
  std::vector<Argument> arguments;
  for (Var var : region.parameters) arguments.push_back({address_of(frame, var)});
  if (sites_) mark_equations(frame, known, std::move(equations));
  driver_->invoke(function_number(std::move(region.function)), std::move(arguments));
}

// ---- groups -----------------------------------------------------------------------------------------------------

std::vector<Lowering::RegionCall> Lowering::calls_of(Frame& frame, const Analysis& known, int g) {
  std::vector<RegionCall> calls;
  const Group& group = known.fusion.groups[at(g)];
  Aliases aliases;
  const bool taken_over = takes_over(frame, known, g, aliases);
  bool in_place = taken_over;
  for (int e : group.results) {
    const Var output = frame.program.equations()[at(e)].outputs[0];
    if (taken_over) break;
    make_place(frame, output);
    if (auto other = frame.replaces.find(output.id); other != frame.replaces.end()) {
      aliases[output.id] = other->second;
      in_place = true;
    }
  }
  if (frame.program.type(frame.program.equations()[at(group.results[0])].outputs[0]).size() == 0 && group.row.empty())
    return calls;
  std::optional<Place> shared;
  int64_t shared_bytes = 0;
  for (Region& region : write_regions(frame.program, known.fusion, group, aliases, in_place)) {
    if (region.function.parallel && region.function.extent == 0) continue;
    if (region.temporary_bytes > 0 && !shared) {
      shared_bytes = region.temporary_bytes;
      shared = in_arena(shared_bytes);
    }
    std::vector<Argument> arguments;
    for (Var var : region.parameters) arguments.push_back({var.dropped() ? shared->address : address_of(frame, var)});
    calls.push_back({std::move(region.function), std::move(arguments)});
  }
  if (shared) arena_.release(shared->arena_offset, shared_bytes);
  return calls;
}

void Lowering::invoke(std::vector<RegionCall> calls) {
  for (RegionCall& call : calls) driver_->invoke(function_number(std::move(call.function)), std::move(call.arguments));
}

bool Lowering::takes_over(Frame& frame, const Analysis& known, int g, Aliases& aliases) {
  const Group& group = known.fusion.groups[at(g)];
  if (group.work != Work::pieces) return false;
  const Equation& equation = frame.program.equations()[at(group.results[0])];
  const Var output = equation.outputs[0];
  if (equation.primitive != prim::dynamic_update_slice() || equation.inputs[0].is_literal() ||
      frame.preferred.count(output.id))
    return false;
  const Var old = equation.inputs[0].var();
  std::optional<Place>& place = frame.place[at(old.id)];
  if (known.fusion.inlined(old) || !place || place->arena_offset < 0 || known.last_use[at(old.id)] != g) return false;
  if (reads_elsewhere(known, g, equation)) return false;
  frame.place[at(output.id)] = *place;
  place->arena_offset = -1;
  aliases[output.id] = old.id;
  return true;
}

int32_t Lowering::function_number(Function function) {
  auto [it, inserted] =
      functions_.try_emplace(to_string(function), static_cast<int32_t>(lowered_.module.functions.size()));
  if (inserted) {
    hoist(function);
    function.name = concat("region_", it->second);
    lowered_.module.functions.push_back(std::move(function));
  }
  return it->second;
}

int Lowering::lower_product(Frame& frame, const Analysis& known, int g) {
  if (!kernels_) return -1;
  const Equation& product = frame.program.equations()[at(known.fusion.groups[at(g)].results[0])];
  if (product.primitive != prim::dot_general() || product.outputs[0].dropped()) return -1;
  // The result under all of its aliases, and the first group after them.
  std::vector<Atom> names = {product.outputs[0]};
  auto reads = [&](int e) {
    const std::vector<Atom>& inputs = frame.program.equations()[at(e)].inputs;
    return std::find_first_of(inputs.begin(), inputs.end(), names.begin(), names.end()) != inputs.end();
  };
  int next = g + 1;
  for (; next < static_cast<int>(known.fusion.groups.size()) && known.fusion.groups[at(next)].work == Work::alias;
       ++next) {
    const int e = known.fusion.groups[at(next)].results[0];
    if (frame.program.equations()[at(e)].primitive == exchange_wait()) return -1;  // would wait before the product
    if (reads(e)) names.push_back(frame.program.equations()[at(e)].outputs[0]);
  }
  if (next == static_cast<int>(known.fusion.groups.size())) return -1;
  const Group& reader = known.fusion.groups[at(next)];
  if (reader.work != Work::loops || !reader.columns.empty()) return -1;
  if (std::none_of(known.fusion.members[at(next)].begin(), known.fusion.members[at(next)].end(), reads)) return -1;
  HostCall call = host_call(frame, product, make_results(frame, product, {frame.program.type(product.outputs[0])}));
  ProductKernel kernel = product_kernel(call.inputs, call.outputs, product.attrs, call.constants);
  for (int alias = g + 1; alias < next; ++alias) lower_alias(frame, known.fusion.groups[at(alias)]);
  std::vector<RegionCall> calls = calls_of(frame, known, next);
  const auto number = static_cast<int32_t>(lowered_.kernels.size());
  const bool follows = may_follow(call, kernel, calls);
  if (follows) {
    lowered_.add({}, product);
    lowered_.products.emplace(number, std::move(kernel));
  } else {
    lowered_.add(host_kernel(product.primitive, call.inputs, call.outputs, product.attrs, call.constants), product);
  }
  if (sites_) {
    std::vector<int> together = known.fusion.members[at(g)];
    if (follows)
      together.insert(together.end(), known.fusion.members[at(next)].begin(), known.fusion.members[at(next)].end());
    mark_equations(frame, known, std::move(together));
  }
  driver_->host(number, std::move(call.arguments));
  if (sites_ && !follows && !calls.empty()) mark_group(frame, known, next);
  invoke(std::move(calls));
  return next;
}

// True if loops may run on finished rows of a matmul while it still computes others: they read only these rows, and
// write nothing that the matmul reads.
bool Lowering::may_follow(const HostCall& product, const ProductKernel& kernel,
                          const std::vector<RegionCall>& calls) const {
  if (!kernel.run || calls.size() != 1) return false;
  const auto& [region, arguments] = calls[0];
  if (!runs_in_parallel(region)) return false;
  // An iteration covers part of a row, or several rows that are finished soon after each other.
  const bool in_rows = region.extent % kernel.rows == 0;
  const bool of_rows =
      kernel.rows % region.extent == 0 && bytes_of(product.outputs[0]) / region.extent <= max_epilogue_bytes;
  if (!in_rows && !of_rows) return false;
  std::vector<std::size_t> shared;
  std::vector<int64_t> sizes;
  std::vector<bool> written;
  for (const BufferInfo& buffer : region.buffers) {
    if (buffer.local) continue;
    sizes.push_back(buffer.bytes);
    written.push_back(buffer.written);
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Address& own = arguments[i].address;
    if (same(own, product.arguments.back().address)) {
      if (written[i]) return false;
      shared.push_back(i);
    }
    if (!written[i]) continue;
    for (std::size_t k = 0; k < product.inputs.size(); ++k) {
      const Address& operand = product.arguments[k].address;
      if (operand.buffer != own.buffer) continue;
      const bool apart =
          operand.terms.empty() && own.terms.empty() &&
          (own.offset + sizes[i] <= operand.offset || operand.offset + bytes_of(product.inputs[k]) <= own.offset);
      if (!apart) return false;
    }
  }
  return !shared.empty() && reads_own_share(region, shared, bytes_of(product.outputs[0]));
}

Lowering::Results Lowering::make_results(Frame& frame, const Equation& equation, const Types& types) {
  Results results;
  for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
    const Var output = equation.outputs[i];
    if (!output.dropped()) {
      const std::optional<Place>& known = frame.place[at(output.id)];  // taken over
      results.places.push_back(known ? known->address : make_place(frame, output));
      continue;
    }
    const Place place = in_arena(bytes_of(types[i]));
    results.unread.emplace_back(place.arena_offset, bytes_of(types[i]));
    results.places.push_back(place.address);
  }
  return results;
}

void Lowering::release(const Results& results) {
  for (const auto& [offset, bytes] : results.unread) arena_.release(offset, bytes);
}

void Lowering::copy(const Address& from, const Address& to, int64_t bytes) {
  if (bytes == 0) return;
  Function function;
  {
    Builder builder(function);
    const int32_t source = builder.parameter(bytes, false), target = builder.parameter(bytes, true);
    const Scalar unit = bytes % 8 == 0 ? Scalar::i64 : bytes % 4 == 0 ? Scalar::i32 : Scalar::i8;
    builder.loop(bytes / byte_size(unit), {.lanes = true, .parallel = true}, {},
                 [&](Value position, std::span<const Value>) {
                   builder.store(builder.load(unit, {source, 0, {{position, 1}}}), {target, 0, {{position, 1}}});
                   return std::vector<Value>();
                 });
    function.cost = 0.1;
  }
  if (sites_ && whole_loop_ < 0) mark(sites_->add_copy(bytes));
  driver_->invoke(function_number(std::move(function)), {{from}, {to}});
}

}  // namespace capibara::cpu
