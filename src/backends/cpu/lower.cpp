// Lowers a program group by group into the driver; loops and branches are lowered with their bodies in place.
#include "backends/cpu/lower.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "backends/cpu/arena_plan.h"
#include "backends/cpu/builder.h"
#include "backends/cpu/element.h"
#include "backends/cpu/fuse.h"
#include "backends/cpu/hoist.h"
#include "backends/cpu/region.h"
#include "backends/cpu/registers.h"
#include "backends/cpu/schedule.h"
#include "backends/cpu/unshare.h"
#include "optimise/simplify.h"

namespace capibara::cpu {

namespace {

constexpr int64_t largest_register_run = 1500;  // scalar operations in one function

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }
int64_t bytes_of(const ArrayType& type) {
  int64_t bytes = storage_size(type.dtype);
  for (int64_t size : type.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) throw RuntimeError(concat("compile: ", to_string(type), " is larger than memory"));
  }
  return bytes;
}

bool same(const Address& a, const Address& b) {
  if (a.buffer != b.buffer || a.offset != b.offset || a.terms.size() != b.terms.size()) return false;
  for (std::size_t i = 0; i < a.terms.size(); ++i) {
    if (a.terms[i].index != b.terms[i].index || a.terms[i].factor != b.terms[i].factor) return false;
  }
  return true;
}

// Memory of a variable, as bytes of one of the driver's buffers.
struct Place {
  Address address;
  int64_t arena_offset = -1;  // where it lies in the arena and must be given back
};

class Lowering {
 public:
  Lowering(const Program& program, const std::vector<bool>& donated) : program_(unshare(program)), donated_(donated) {
    lowered_.module.functions.emplace_back();
    lowered_.module.functions[0].name = "driver";
    driver_ = std::make_unique<Builder>(driver_function_);
  }

  Lowered run() {
    driver_function_.name = "driver";
    Frame frame(program_);
    for (Var input : program_.invars()) {
      frame.place[at(input.id)] = Place{{driver_->parameter(bytes_of(program_.type(input)), false), 0, {}}};
    }
    // Constants and outputs become parameters when they are met, the arena comes last: the numbers are set at the end.
    for (std::size_t i = 0; i < program_.constvars().size(); ++i) {
      const Var var = program_.constvars()[i];
      frame.place[at(var.id)] = Place{{constant_buffer(program_.constants()[i]), 0, {}}};
    }
    std::map<int32_t, int> first_output;
    for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
      const Atom atom = program_.outputs()[i];
      Lowered::Output output{Lowered::Output::From::driver, 0, program_.type(atom)};
      if (atom.is_literal()) {
        output.from = Lowered::Output::From::constant;
        output.index = constant_number(program_.literal(atom));
      } else if (auto known = first_output.find(atom.code); known != first_output.end()) {
        output.from = Lowered::Output::From::output;
        output.index = known->second;
      } else {
        first_output[atom.code] = static_cast<int>(i);
        const auto input = std::find(program_.invars().begin(), program_.invars().end(), atom.var());
        const auto constant = std::find(program_.constvars().begin(), program_.constvars().end(), atom.var());
        if (input != program_.invars().end()) {
          output.from = Lowered::Output::From::input;
          output.index = static_cast<int>(input - program_.invars().begin());
        } else if (constant != program_.constvars().end()) {
          output.from = Lowered::Output::From::constant;
          output.index = constant_number(program_.constants()[at(constant - program_.constvars().begin())]);
        } else if (const int given = donated_for(i); given >= 0) {
          output.from = Lowered::Output::From::donated;
          output.index = given;
          donated_[at(given)] = false;
          driver_function_.buffers[at(given)].written = true;
          frame.wanted[atom.code] = {given, 0, {}};
          if (may_replace_in(program_, program_.invars()[at(given)], i)) frame.replaces[atom.code] = program_.invars()[at(given)].id;
        } else {
          output.index = static_cast<int>(lowered_.output_bytes.size());
          lowered_.output_bytes.push_back(bytes_of(output.type));
          frame.wanted[atom.code] = {output_base + output.index, 0, {}};
        }
      }
      lowered_.outputs.push_back(std::move(output));
    }
    lower(frame);
    lowered_.arena_bytes = arena_.size();
    for (auto value = largest_.rbegin(); value != largest_.rend(); ++value) {
      lowered_.largest.push_back(concat(value->second, " (", value->first, " bytes)"));
    }
    number_buffers();
    lowered_.module.functions[0] = std::move(driver_function_);
    return std::move(lowered_);
  }

 private:
  // Buffers of the driver other than inputs, until all of them are known.
  static constexpr int32_t constant_base = 1 << 20, output_base = 1 << 24, arena_buffer = 1 << 28;

  // One instance of a program: where its variables lie.
  struct Frame {
    explicit Frame(const Program& program) : program(program), place(at(program.var_count())) {}
    const Program& program;
    std::vector<std::optional<Place>> place;
    std::map<int32_t, Address> wanted;    // where a variable should be written
    std::map<int32_t, int32_t> replaces;  // results that take the memory of the carry they replace
  };

  struct Analysis {
    Program program;  // kept alive: the fusion refers to it
    Fusion fusion;
    std::vector<int> last_use;  // group after which a variable is dead, -1: never read; outputs live on
    std::vector<std::vector<int>> members;  // equations of each group
  };

  // The donated input whose memory an output of the program takes: nobody reads it once the output is written. -1: none.
  int donated_for(std::size_t output) {
    const Atom atom = program_.outputs()[output];
    const ArrayType& type = program_.type(atom);
    const Analysis& known = analysis(program_);
    for (std::size_t i = 0; i < donated_.size(); ++i) {
      const Var input = program_.invars()[i];
      if (!donated_[i] || program_.type(input).shape != type.shape || program_.type(input).dtype != type.dtype) continue;
      if (known.last_use[at(input.id)] < writer_of(known, atom) || carries_through(known, input, atom) || may_replace_in(program_, input, output)) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  // The first group that writes a result of the program where it is wanted; -1 where that is not told.
  static int writer_of(const Analysis& known, Atom atom) {
    while (true) {
      const int definition = known.fusion.definition[at(atom.code)];
      if (definition < 0) return -1;
      const int home = known.fusion.home[at(definition)];
      const Equation& equation = known.program.equations()[at(definition)];
      if (carries_of(equation).count > 0) return -1;
      if (known.fusion.groups[at(home)].work != Work::alias) return home;
      if (equation.inputs[0].is_literal()) return -1;
      atom = equation.inputs[0];
    }
  }

  // Whether the input is the first value of the carry that ends as this result, and nothing else any more.
  static bool carries_through(const Analysis& known, Var input, Atom atom) {
    const int definition = known.fusion.definition[at(atom.code)];
    if (definition < 0) return false;
    const Equation& loop = known.program.equations()[at(definition)];
    if (known.last_use[at(input.id)] != known.fusion.home[at(definition)]) return false;
    if (std::count(loop.inputs.begin(), loop.inputs.end(), Atom(input)) != 1) return false;
    const Carries carries = carries_of(loop);
    for (std::size_t i = 0; i < carries.count; ++i) {
      if (loop.outputs[i] == atom.var()) return loop.inputs[carries.first + i] == Atom(input);
    }
    return false;
  }

  // A nested program with its own broadcasts for each reader; inputs and outputs keep their variables.
  const Program& unshared(const Program& program) {
    auto [place, inserted] = unshared_.try_emplace(program.identity());
    if (inserted) place->second = {program, unshare(program)};
    return place->second.second;
  }

  const Analysis& analysis(const Program& program) {
    auto [place, inserted] = analyses_.try_emplace(program.identity());
    if (!inserted) return *place->second;
    place->second = std::make_unique<Analysis>();
    Analysis& found = *place->second;
    found.program = program;
    found.fusion = fuse(program);
    schedule(program, found.fusion);
    const int groups = static_cast<int>(found.fusion.groups.size());
    found.last_use.assign(at(program.var_count()), -1);
    found.members.resize(at(groups));
    for (std::size_t e = 0; e < program.equations().size(); ++e) {
      const int home = found.fusion.home[e];
      if (home < 0) continue;
      found.members[at(home)].push_back(static_cast<int>(e));
      for (Atom input : program.equations()[e].inputs) {
        if (!input.is_literal()) found.last_use[at(input.code)] = std::max(found.last_use[at(input.code)], home);
      }
    }
    for (Atom output : program.outputs()) {
      if (!output.is_literal()) found.last_use[at(output.code)] = groups;
    }
    for (std::size_t g = at(groups); g-- > 0;) {  // the memory of an operand lives as long as its other names
      const Group& group = found.fusion.groups[g];
      if (group.work != Work::alias) continue;
      const Equation& equation = program.equations()[at(group.results[0])];
      if (equation.inputs[0].is_literal()) continue;
      int& last = found.last_use[at(equation.inputs[0].code)];
      last = std::max(last, found.last_use[at(equation.outputs[0].id)]);
    }
    return found;
  }

  // ---- a frame ----------------------------------------------------------------------------------------------------

  void lower(Frame& frame) {
    const Analysis& known = analysis(frame.program);
    // An alias that is wanted somewhere makes its operand wanted there, and a carry its first value.
    for (std::size_t g = known.fusion.groups.size(); g-- > 0;) {
      const Group& group = known.fusion.groups[g];
      const Equation& equation = frame.program.equations()[at(group.results[0])];
      const Carries carries = carries_of(equation);
      for (std::size_t i = 0; i < carries.count; ++i) {
        auto wanted = frame.wanted.find(equation.outputs[i].id);
        if (wanted == frame.wanted.end() || !dies_as_carry(known, static_cast<int>(g), equation, carries.first + i)) continue;
        frame.wanted.try_emplace(equation.inputs[carries.first + i].code, wanted->second);
      }
      if (group.work != Work::alias) continue;
      auto wanted = frame.wanted.find(equation.outputs[0].id);
      if (wanted == frame.wanted.end() || equation.inputs[0].is_literal()) continue;
      const int32_t operand = equation.inputs[0].code;
      if (known.fusion.definition[at(operand)] >= 0) frame.wanted.try_emplace(operand, wanted->second);
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
          lower_alias(frame, group);
          break;
        case Work::loops:
        case Work::pieces:
          lower_loops(frame, known, static_cast<int>(g));
          break;
        case Work::host:
          lower_host(frame, frame.program.equations()[at(group.results[0])]);
          break;
        case Work::control:
          take_over_carries(frame, known, static_cast<int>(g), frame.program.equations()[at(group.results[0])]);
          lower_control(frame, frame.program.equations()[at(group.results[0])]);
          break;
      }
      release_dead(frame, known, static_cast<int>(g));
    }
    for (const auto& [id, address] : frame.wanted) {
      if (known.last_use[at(id)] != static_cast<int>(known.fusion.groups.size())) continue;
      const Place& place = *frame.place[at(id)];
      if (!same(place.address, address)) copy(place.address, address, bytes_of(frame.program.type(Var{id})));
    }
  }

  // The carries of a loop among its operands; none where an equation is not a loop.
  struct Carries {
    std::size_t first = 0, count = 0;
  };
  static Carries carries_of(const Equation& equation) {
    const Attrs& attrs = equation.attrs;
    if (equation.primitive.is("scan")) return {at(attrs.integer("num_consts")), at(attrs.integer("num_carry"))};
    if (!equation.primitive.is("while")) return {};
    const std::size_t first = at(attrs.integer("cond_nconsts") + attrs.integer("body_nconsts"));
    return {first, equation.inputs.size() - first};
  }

  // Whether an operand of a loop is computed in this program and read by nobody else from the loop on.
  static bool dies_as_carry(const Analysis& known, int g, const Equation& loop, std::size_t operand) {
    Atom atom = loop.inputs[operand];
    if (atom.is_literal() || std::count(loop.inputs.begin(), loop.inputs.end(), atom) != 1) return false;
    while (true) {
      const int definition = known.fusion.definition[at(atom.code)];
      if (definition < 0 || known.fusion.inlined(atom.var()) || known.last_use[at(atom.code)] != g) return false;
      const Group& home = known.fusion.groups[at(known.fusion.home[at(definition)])];
      if (home.work != Work::alias) return true;
      atom = known.program.equations()[at(definition)].inputs[0];
      if (atom.is_literal()) return false;
    }
  }

  // Results of a loop take the memory of first values that nobody reads later.
  void take_over_carries(Frame& frame, const Analysis& known, int g, const Equation& loop) {
    const Carries carries = carries_of(loop);
    for (std::size_t i = 0; i < carries.count; ++i) {
      const Var output = loop.outputs[i];
      if (output.dropped() || frame.wanted.count(output.id) || !dies_as_carry(known, g, loop, carries.first + i)) continue;
      std::optional<Place>& first = frame.place[at(loop.inputs[carries.first + i].code)];
      if (!first || first->arena_offset < 0) continue;
      frame.place[at(output.id)] = *first;
      first->arena_offset = -1;
    }
  }

  void release_dead(Frame& frame, const Analysis& known, int g) {
    auto consider = [&](Var var) {
      if (var.dropped()) return;
      std::optional<Place>& place = frame.place[at(var.id)];
      if (!place || place->arena_offset < 0) return;
      if (known.last_use[at(var.id)] > g) return;
      arena_.release(place->arena_offset, bytes_of(frame.program.type(var)));
      place->arena_offset = -1;
    };
    for (int e : known.members[at(g)]) {
      const Equation& equation = frame.program.equations()[at(e)];
      for (Atom input : equation.inputs) {
        if (!input.is_literal()) consider(input.var());
      }
      for (Var output : equation.outputs) consider(output);
    }
  }

  // Memory for a variable: where it is wanted, or in the arena.
  const Address& make_place(Frame& frame, Var var) {
    note_size(frame.program.type(var));
    std::optional<Place>& place = frame.place[at(var.id)];
    if (auto wanted = frame.wanted.find(var.id); wanted != frame.wanted.end()) {
      place = Place{wanted->second};
    } else {
      place = in_arena(bytes_of(frame.program.type(var)));
    }
    return place->address;
  }

  void note_size(const ArrayType& type) {
    largest_.emplace(bytes_of(type), to_string(type));
    if (largest_.size() > 5) largest_.erase(largest_.begin());
  }

  Place in_arena(int64_t bytes) {
    const int64_t offset = arena_.allocate(bytes);
    return {{arena_buffer, offset, {}}, offset};
  }

  Address address_of(Frame& frame, Atom atom) {
    if (atom.is_literal()) return {constant_buffer(frame.program.literal(atom)), 0, {}};
    const std::optional<Place>& place = frame.place[at(atom.code)];
    if (!place) throw InternalError(concat("cpu: variable ", atom.code, " has no memory"));
    return place->address;
  }

  // ---- small groups, in registers ---------------------------------------------------------------------------------

  // The end of the run of groups from `first` on that are written as one function with all values in registers.
  int end_of_registers(const Frame& frame, const Analysis& known, int first) const {
    int64_t cost = 0;
    int g = first;
    for (; g < static_cast<int>(known.fusion.groups.size()); ++g) {
      int64_t own = 0;
      for (int e : known.members[at(g)]) {
        const Equation& equation = frame.program.equations()[at(e)];
        if (!fits_registers(frame.program, equation)) return g;
        own += register_cost(frame.program, equation);
      }
      if (g > first && cost + own > largest_register_run) return g;
      cost += own;
    }
    return g;
  }

  void lower_registers(Frame& frame, const Analysis& known, int first, int end) {
    std::vector<int> equations;
    for (int g = first; g < end; ++g) equations.insert(equations.end(), known.members[at(g)].begin(), known.members[at(g)].end());
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
    driver_->invoke(function_number(std::move(region.function)), std::move(arguments));
  }

  // ---- groups -----------------------------------------------------------------------------------------------------

  void lower_alias(Frame& frame, const Group& group) {
    const Equation& equation = frame.program.equations()[at(group.results[0])];
    frame.place[at(equation.outputs[0].id)] = Place{address_of(frame, equation.inputs[0])};
  }

  void lower_loops(Frame& frame, const Analysis& known, int g) {
    const Group& group = known.fusion.groups[at(g)];
    Together together;
    const bool taken_over = takes_over(frame, known, g, together);
    bool in_place = taken_over;
    for (int e : group.results) {
      const Var output = frame.program.equations()[at(e)].outputs[0];
      if (taken_over) break;
      make_place(frame, output);
      if (auto other = frame.replaces.find(output.id); other != frame.replaces.end()) {
        together[output.id] = other->second;
        in_place = true;
      }
    }
    if (frame.program.type(frame.program.equations()[at(group.results[0])].outputs[0]).size() == 0 && group.row.empty()) return;
    std::optional<Place> shared;
    int64_t shared_bytes = 0;
    for (Region& region : write_regions(frame.program, known.fusion, group, together, in_place)) {
      if (region.function.parallel && region.function.extent == 0) continue;
      if (region.temporary_bytes > 0 && !shared) {
        shared_bytes = region.temporary_bytes;
        shared = in_arena(shared_bytes);
      }
      std::vector<Argument> arguments;
      for (Var var : region.parameters) arguments.push_back({var.dropped() ? shared->address : address_of(frame, var)});
      driver_->invoke(function_number(std::move(region.function)), std::move(arguments));
    }
    if (shared) arena_.release(shared->arena_offset, shared_bytes);
  }

  // A slice of the very elements that an update then replaces, which meets the update element by element: each is read
  // before it is written.
  static bool reads_what_it_writes(const Program& program, const std::vector<int>& members, const Equation& slice, const Equation& update) {
    if (!slice.primitive.is("dynamic_slice") || slice.inputs[0] != update.inputs[0] ||
        !std::equal(slice.inputs.begin() + 1, slice.inputs.end(), update.inputs.begin() + 2, update.inputs.end()) ||
        slice.attrs.ints("slice_sizes") != program.type(update.inputs[1]).shape) {
      return false;
    }
    std::vector<Atom> follows = {slice.outputs[0]};
    for (int e : members) {
      const Equation& equation = program.equations()[at(e)];
      const bool reads = std::any_of(equation.inputs.begin(), equation.inputs.end(), [&](Atom input) {
        return std::find(follows.begin(), follows.end(), input) != follows.end();
      });
      if (!reads || &equation == &update) continue;
      if (!passes::is_elementwise(equation.primitive) || program.type(equation.outputs[0]).shape != program.type(update.inputs[1]).shape) return false;
      follows.push_back(equation.outputs[0]);
    }
    return true;
  }

  // Kernels of scatters write into their operand where the result has the same memory.
  static bool is_scatter(const Group& group, const Equation& equation) {
    return group.work == Work::host && equation.primitive.name().starts_with("scatter") && equation.inputs.size() == 3;
  }

  // An update of an array that dies here is written into the array itself.
  bool takes_over(Frame& frame, const Analysis& known, int g, Together& together) {
    const Group& group = known.fusion.groups[at(g)];
    if (group.work != Work::pieces) return false;
    const Equation& equation = frame.program.equations()[at(group.results[0])];
    const Var output = equation.outputs[0];
    if (!equation.primitive.is("dynamic_update_slice") || equation.inputs[0].is_literal() || frame.wanted.count(output.id)) return false;
    const Var old = equation.inputs[0].var();
    std::optional<Place>& place = frame.place[at(old.id)];
    if (known.fusion.inlined(old) || !place || place->arena_offset < 0 || known.last_use[at(old.id)] != g) return false;
    for (int e : known.members[at(g)]) {
      const Equation& reader = frame.program.equations()[at(e)];
      const auto reads = std::count(reader.inputs.begin(), reader.inputs.end(), Atom(old));
      if (reads > (e == group.results[0] || reads_what_it_writes(frame.program, known.members[at(g)], reader, equation) ? 1 : 0)) return false;
    }
    frame.place[at(output.id)] = *place;
    place->arena_offset = -1;
    together[output.id] = old.id;
    return true;
  }

  // Equal regions are one function.
  int32_t function_number(Function function) {
    hoist(function);
    auto [place, inserted] = functions_.try_emplace(to_string(function), static_cast<int32_t>(lowered_.module.functions.size()));
    if (inserted) {
      function.name = concat("region_", place->second);
      lowered_.module.functions.push_back(std::move(function));
    }
    return place->second;
  }

  void lower_host(Frame& frame, const Equation& equation) {
    Types inputs, outputs;
    std::vector<Argument> arguments;
    for (Atom input : equation.inputs) {
      inputs.push_back(frame.program.type(input));
      arguments.push_back({address_of(frame, input)});
    }
    TypeResult result = equation.primitive->type(inputs, equation.attrs);
    outputs = result.types;
    const Results results = make_results(frame, equation, outputs);
    for (const Address& place : results.places) arguments.push_back({place});
    lowered_.kernels.push_back(host_kernel(equation.primitive, inputs, outputs, equation.attrs));
    driver_->host(static_cast<int32_t>(lowered_.kernels.size()) - 1, std::move(arguments));
    release(results);
  }

  // Memory for the outputs of an equation; what nobody reads is given back when the equation is done.
  struct Results {
    std::vector<Address> places;
    std::vector<std::pair<int64_t, int64_t>> unread;  // offset and size in the arena
  };

  Results make_results(Frame& frame, const Equation& equation, const Types& types) {
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

  void release(const Results& results) {
    for (const auto& [offset, bytes] : results.unread) arena_.release(offset, bytes);
  }

  void copy(const Address& from, const Address& to, int64_t bytes) {
    if (bytes == 0) return;
    Function function;
    {
      Builder builder(function);
      const int32_t source = builder.parameter(bytes, false), target = builder.parameter(bytes, true);
      const Scalar unit = bytes % 8 == 0 ? Scalar::i64 : bytes % 4 == 0 ? Scalar::i32 : Scalar::i8;
      builder.loop(bytes / byte_size(unit), {.lanes = true, .parallel = true}, {}, [&](Value position, std::span<const Value>) {
        builder.store(builder.load(unit, {source, 0, {{position, 1}}}), {target, 0, {{position, 1}}});
        return std::vector<Value>();
      });
      function.cost = 0.1;
    }
    driver_->invoke(function_number(std::move(function)), {{from}, {to}});
  }

  // ---- control flow -----------------------------------------------------------------------------------------------

  void lower_control(Frame& frame, const Equation& equation) {
    const std::string& name = equation.primitive.name();
    if (name == "scan") lower_scan(frame, equation);
    else if (name == "while") lower_while(frame, equation);
    else if (name == "cond") lower_cond(frame, equation);
    else lower_call(frame, equation, equation.attrs.program(name == "jit" || name == "remat2" ? "jaxpr" : "call_jaxpr"));
  }

  std::vector<Address> places_of(Frame& frame, std::span<const Atom> atoms) {
    std::vector<Address> places;
    for (Atom atom : atoms) places.push_back(address_of(frame, atom));
    return places;
  }

  // The body of a call, a branch or one turn of a loop: reads its inputs where they lie, writes its outputs where they
  // should lie. `replaced`: for some outputs the input whose memory they take over.
  void lower_body(const Program& given, const std::vector<Address>& inputs, const std::vector<Address>& outputs,
                  const std::map<std::size_t, Var>& replaced = {}) {
    const Program& body = unshared(given);
    Frame frame(body);
    for (std::size_t i = 0; i < inputs.size(); ++i) frame.place[at(body.invars()[i].id)] = Place{inputs[i]};
    for (std::size_t i = 0; i < body.constvars().size(); ++i) {
      frame.place[at(body.constvars()[i].id)] = Place{{constant_buffer(body.constants()[i]), 0, {}}};
    }
    std::vector<std::pair<Atom, Address>> copies;
    const Analysis& known = analysis(body);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Atom atom = body.outputs()[i];
      const bool computed = !atom.is_literal() && known.fusion.definition[at(atom.code)] >= 0;
      if (auto input = replaced.find(i); input != replaced.end()) frame.replaces[atom.code] = input->second.id;
      if (computed && frame.wanted.try_emplace(atom.code, outputs[i]).second) continue;
      copies.emplace_back(atom, outputs[i]);
    }
    lower(frame);
    for (const auto& [atom, target] : copies) {
      const Address source = address_of(frame, atom);
      if (!same(source, target)) copy(source, target, bytes_of(body.type(atom)));
    }
  }

  void lower_call(Frame& frame, const Equation& equation, const Program& body) {
    const std::vector<Address> inputs = places_of(frame, equation.inputs);
    const Results results = make_results(frame, equation, body.output_types());
    lower_body(body, inputs, results.places);
    release(results);
  }

  void lower_cond(Frame& frame, const Equation& equation) {
    const std::vector<Program> branches = equation.attrs.programs("branches");
    const DType dtype = frame.program.type(equation.inputs[0]).dtype;
    Address address = address_of(frame, equation.inputs[0]);
    const std::vector<Address> inputs = places_of(frame, std::span(equation.inputs).subspan(1));
    const Results results = make_results(frame, equation, branches[0].output_types());
    const Value index = loaded_scalar(dtype, address);
    branch_from(branches, 0, index, inputs, results.places);
    release(results);
  }

  void branch_from(const std::vector<Program>& branches, std::size_t first, Value index, const std::vector<Address>& inputs,
                   const std::vector<Address>& outputs) {
    if (first + 1 == branches.size()) {
      lower_body(branches[first], inputs, outputs);
      return;
    }
    const Value here = driver_->compute(Op::le, index, driver_->constant_int(driver_->type(index), static_cast<int64_t>(first)));
    driver_->branch(
        here,
        [&] {
          lower_body(branches[first], inputs, outputs);
          return std::vector<Value>();
        },
        [&] {
          branch_from(branches, first + 1, index, inputs, outputs);
          return std::vector<Value>();
        });
  }

  // An element of rank 0 in the driver; addresses there count bytes.
  Value loaded_scalar(DType dtype, Address address) {
    const int64_t size = storage_size(dtype);
    address.offset /= size;
    for (Term& term : address.terms) term.factor /= size;
    return load_element(*driver_, dtype, address).parts[0];
  }

  // Copies the first values of carries into the memory of the results, which the loop then updates.
  void start_carries(Frame& frame, std::span<const Atom> initial, const std::vector<Address>& carries, const Program& body,
                     std::size_t first) {
    for (std::size_t i = 0; i < initial.size(); ++i) {
      const Address from = address_of(frame, initial[i]);
      if (!same(from, carries[i])) copy(from, carries[i], bytes_of(body.type(body.invars()[first + i])));
    }
  }

  // Whether an output of a body may be written over the carry that it replaces: nothing reads the old value later, and
  // the loops that write read it at the place they write, if at all.
  bool may_replace(const Program& given, Var old, std::size_t output) { return may_replace_in(unshared(given), old, output); }
  bool may_replace_in(const Program& body, Var old, std::size_t output) {
    const Analysis& known = analysis(body);
    const Atom result = body.outputs()[output];
    if (result.is_literal() || body.type(old).size() <= 64) return false;
    const int definition = known.fusion.definition[at(result.code)];
    if (definition < 0 || body.type(result).size() != body.type(old).size()) return false;
    if (std::count(body.outputs().begin(), body.outputs().end(), result) != 1) return false;
    if (std::count(body.outputs().begin(), body.outputs().end(), Atom(old)) != 0) return false;
    const int home = known.fusion.home[at(definition)];
    const Group& group = known.fusion.groups[at(home)];
    const bool flat = group.work == Work::loops && group.row_values.empty();
    const Equation& writer = body.equations()[at(definition)];
    const bool in_place = group.work == Work::pieces ? writer.primitive.is("dynamic_update_slice") : is_scatter(group, writer);
    const bool updates = in_place && writer.inputs[0] == Atom(old);
    if (!flat && !updates) return false;
    for (std::size_t e = 0; e < body.equations().size(); ++e) {
      const Equation& reader = body.equations()[e];
      if (known.fusion.home[e] < 0 || std::find(reader.inputs.begin(), reader.inputs.end(), Atom(old)) == reader.inputs.end()) continue;
      if (known.fusion.home[e] > home || known.fusion.groups[at(known.fusion.home[e])].work == Work::alias) return false;
      if (known.fusion.home[e] < home) continue;
      if (updates && static_cast<int>(e) != definition && !reads_what_it_writes(body, known.members[at(home)], reader, writer)) return false;
      if (updates && std::count(reader.inputs.begin(), reader.inputs.end(), Atom(old)) != 1) return false;
    }
    return updates || reads_at_own_place(body, known, group, old);
  }

  static bool reads_at_own_place(const Program& body, const Analysis& known, const Group& group, Var var) {
    if (body.type(var).shape != group.space) return !reads_anywhere(body, known, group, var);
    Index own;
    for (std::size_t d = 0; d < group.space.size(); ++d) own.push_back(Affine::of(static_cast<Symbol>(d)));
    std::vector<int> members = group.results;
    members.insert(members.end(), group.kept.begin(), group.kept.end());
    for (int e : members) {
      const Equation* source = &body.equations()[at(e)];
      if (std::find(group.columns.begin(), group.columns.end(), e) != group.columns.end()) {  // it reads its operand in place
        const Atom operand = source->inputs[0];
        if (operand.is_literal() || !known.fusion.inlined(operand.var())) continue;
        source = &body.equations()[at(known.fusion.definition[at(operand.code)])];
      }
      for (const Access& access : accesses(body, known.fusion, *source, own, group.kept, static_cast<Symbol>(own.size()))) {
        if (access.var == var && access.index != own) return false;
      }
    }
    return true;
  }

  static bool reads_anywhere(const Program& body, const Analysis& known, const Group& group, Var var) {
    for (int e : known.members[at(&group - known.fusion.groups.data())]) {
      const std::vector<Atom>& inputs = body.equations()[at(e)].inputs;
      if (std::find(inputs.begin(), inputs.end(), Atom(var)) != inputs.end()) return true;
    }
    return false;
  }

  // One turn: the new values of the carries are written beside the old ones unless they may take their place.
  void lower_turn(const Program& body, std::vector<Address> inputs, const std::vector<Address>& carries, std::size_t first_carry,
                  const std::vector<Address>& further_outputs) {
    std::vector<Address> outputs;
    std::vector<std::pair<std::size_t, Place>> beside;
    std::map<std::size_t, Var> replaced;
    for (std::size_t i = 0; i < carries.size(); ++i) {
      const Var old = body.invars()[first_carry + i];
      const ArrayType& type = body.type(old);
      if (body.outputs()[i] == Atom(old)) {
        outputs.push_back(carries[i]);
        continue;
      }
      if (may_replace(body, old, i)) {
        replaced.emplace(i, old);
        outputs.push_back(carries[i]);
        continue;
      }
      Place place = in_arena(bytes_of(type));
      beside.emplace_back(i, place);
      outputs.push_back(place.address);
    }
    outputs.insert(outputs.end(), further_outputs.begin(), further_outputs.end());
    lower_body(body, inputs, outputs, replaced);
    for (const auto& [i, place] : beside) {
      const int64_t bytes = bytes_of(body.type(body.invars()[first_carry + i]));
      copy(place.address, carries[i], bytes);
      arena_.release(place.arena_offset, bytes);
    }
  }

  void lower_while(Frame& frame, const Equation& equation) {
    const Program& condition = equation.attrs.program("cond_jaxpr");
    const Program& body = equation.attrs.program("body_jaxpr");
    const std::size_t condition_consts = at(equation.attrs.integer("cond_nconsts"));
    const std::size_t body_consts = at(equation.attrs.integer("body_nconsts"));
    const std::span<const Atom> operands(equation.inputs);
    const std::vector<Address> for_condition = places_of(frame, operands.first(condition_consts));
    const std::vector<Address> for_body = places_of(frame, operands.subspan(condition_consts, body_consts));
    const Results results = make_results(frame, equation, body.output_types());
    const std::vector<Address>& carries = results.places;
    start_carries(frame, operands.subspan(condition_consts + body_consts), carries, body, body_consts);
    const Place answer = in_arena(1);
    driver_->repeat(
        {}, true,
        [&](std::span<const Value>) {
          lower_body(condition, joined(for_condition, carries), {answer.address});
          return loaded_scalar(DType::bool_, answer.address);
        },
        [&](std::span<const Value>) {
          lower_turn(body, joined(for_body, carries), carries, body_consts, {});
          return std::vector<Value>();
        });
    arena_.release(answer.arena_offset, 1);
    release(results);
  }

  void lower_scan(Frame& frame, const Equation& equation) {
    const Program& body = equation.attrs.program("jaxpr");
    const std::size_t consts = at(equation.attrs.integer("num_consts")), carry = at(equation.attrs.integer("num_carry"));
    const int64_t length = equation.attrs.integer("length");
    const bool reverse = equation.attrs.boolean("reverse");
    const std::span<const Atom> operands(equation.inputs);
    const std::vector<Address> given = places_of(frame, operands.first(consts));
    const std::vector<Address> sequences = places_of(frame, operands.subspan(consts + carry));
    Types types;
    for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
      ArrayType type = body.type(body.outputs()[i]);
      if (i >= carry) type.shape.insert(type.shape.begin(), length);
      types.push_back(type);
    }
    const Results results = make_results(frame, equation, types);
    const std::vector<Address> carries(results.places.begin(), results.places.begin() + static_cast<std::ptrdiff_t>(carry));
    start_carries(frame, operands.subspan(consts, carry), carries, body, consts);
    driver_->loop(length, {.poll = true}, {}, [&](Value turn, std::span<const Value>) {
      auto slice = [&](Address whole, const ArrayType& type) {
        const int64_t bytes = bytes_of(type);
        if (reverse) whole.offset += (length - 1) * bytes;
        whole.terms.push_back({turn, reverse ? -bytes : bytes});
        return whole;
      };
      std::vector<Address> inputs = joined(given, carries), further;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        inputs.push_back(slice(sequences[i], body.type(body.invars()[consts + carry + i])));
      }
      for (std::size_t i = carry; i < results.places.size(); ++i) further.push_back(slice(results.places[i], body.type(body.outputs()[i])));
      lower_turn(body, inputs, carries, consts, further);
      return std::vector<Value>();
    });
    release(results);
  }

  static std::vector<Address> joined(std::vector<Address> first, const std::vector<Address>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  // ---- buffers ----------------------------------------------------------------------------------------------------

  // Small constants are one where their values are, large ones where they are the same array.
  int constant_number(const Array& array) {
    const int next = static_cast<int>(lowered_.constants.size());
    int number;
    if (array.size() <= 8) {
      const std::string content(reinterpret_cast<const char*>(array.raw_data()), at(bytes_of(array.type())));
      number = small_constants_.try_emplace(concat(short_string(array.type()), " ", content), next).first->second;
    } else {
      number = large_constants_.try_emplace(array.body().get(), next).first->second;
    }
    if (number == next) lowered_.constants.push_back(array);
    return number;
  }
  int32_t constant_buffer(const Array& array) { return constant_base + constant_number(array); }

  // Buffers get their final numbers: inputs, constants, outputs, arena.
  void number_buffers() {
    const int32_t inputs = static_cast<int32_t>(program_.invars().size());
    const int32_t constants = static_cast<int32_t>(lowered_.constants.size());
    const int32_t outputs = static_cast<int32_t>(lowered_.output_bytes.size());
    for (const Array& constant : lowered_.constants) driver_->parameter(bytes_of(constant.type()), false);
    for (int64_t bytes : lowered_.output_bytes) driver_->parameter(bytes, true);
    driver_->parameter(lowered_.arena_bytes, true);
    renumber(driver_function_.body, [&](int32_t& buffer) {
      if (buffer >= arena_buffer) buffer = inputs + constants + outputs;
      else if (buffer >= output_base) buffer = inputs + constants + buffer - output_base;
      else if (buffer >= constant_base) buffer = inputs + buffer - constant_base;
    });
  }

  template <class F>
  static void renumber(Block& block, const F& number) {
    for (Statement& statement : block) {
      std::visit(
          [&](auto& own) {
            using T = std::remove_cvref_t<decltype(own)>;
            if constexpr (std::is_same_v<T, Load> || std::is_same_v<T, Store>) number(own.address.buffer);
            if constexpr (std::is_same_v<T, Invoke> || std::is_same_v<T, Host>) {
              for (Argument& argument : own.arguments) number(argument.address.buffer);
            }
            if constexpr (std::is_same_v<T, For>) renumber(own.body, number);
            if constexpr (std::is_same_v<T, While>) {
              renumber(own.condition, number);
              renumber(own.body, number);
            }
            if constexpr (std::is_same_v<T, Branch>) {
              renumber(own.yes, number);
              renumber(own.no, number);
            }
          },
          statement.what);
    }
  }

  const Program program_;
  std::vector<bool> donated_;  // inputs whose memory outputs may still take
  Lowered lowered_;
  Function driver_function_;
  std::unique_ptr<Builder> driver_;
  ArenaPlan arena_;
  std::set<std::pair<int64_t, std::string>> largest_;
  std::unordered_map<const void*, std::unique_ptr<Analysis>> analyses_;
  std::unordered_map<const void*, std::pair<Program, Program>> unshared_;  // the first is kept for its identity
  std::unordered_map<std::string, int32_t> functions_;
  std::unordered_map<std::string, int> small_constants_;
  std::unordered_map<const void*, int> large_constants_;
};

bool holds_refs(const Program& program) {
  for (const ArrayType& type : program.body().var_types) {
    if (type.ref) return true;
  }
  for (const Equation& equation : program.equations()) {
    for (const auto& [name, attr] : equation.attrs.entries()) {
      if (const auto* inner = attr.get_if<std::shared_ptr<const Program>>(); inner && holds_refs(**inner)) return true;
      if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
        for (const Attr& entry : **list) {
          if (const auto* inner = entry.get_if<std::shared_ptr<const Program>>(); inner && holds_refs(**inner)) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

bool can_lower(const Program& program) { return !holds_refs(program); }

Lowered lower_to_loops(const Program& program, const std::vector<bool>& donated) { return Lowering(program, donated).run(); }

}  // namespace capibara::cpu
