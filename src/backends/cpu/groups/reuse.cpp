// Liveness of variables, and the rules for writing a result over a value that dies.
#include "backends/cpu/groups/reuse.h"

#include <algorithm>

#include "backends/cpu/groups/scan_columns.h"
#include "backends/cpu/groups/schedule.h"
#include "backends/cpu/rewrites/unshare.h"
#include "compiler/optimise/simplify.h"
#include "core/runtime/arena.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu {

namespace {

// The group that first writes a result of the program to its final memory; -1 if that is unknown.
int writer_of(const Analysis& known, Atom atom) {
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

// The root of a value's aliases: the same memory before reshapes and similar renamings.
Atom first_name(const Analysis& known, Atom atom) {
  while (!atom.is_literal()) {
    const int definition = known.fusion.definition[at(atom.code)];
    const int home = definition < 0 ? -1 : known.fusion.home[at(definition)];
    if (home < 0 || known.fusion.groups[at(home)].work != Work::alias) break;
    atom = known.program.equations()[at(definition)].inputs[0];
  }
  return atom;
}

// How many operands alias the memory of this value.
int64_t names_among(const Analysis& known, const std::vector<Atom>& operands, Atom value) {
  const Atom memory = first_name(known, value);
  return std::count_if(operands.begin(), operands.end(),
                       [&](Atom operand) { return first_name(known, operand) == memory; });
}

// True if the loop's carry starts with the value, which no other operand aliases, and ends as the result.
bool is_carried(const Analysis& known, const Equation& loop, Var value, Atom result) {
  const Carries carries = carries_of(loop);
  for (std::size_t i = 0; i < carries.count; ++i) {
    if (loop.outputs[i] == result.var())
      return loop.inputs[carries.first + i] == Atom(value) && names_among(known, loop.inputs, value) == 1;
  }
  return false;
}

// True if the only use left of the input is as the initial value of the carry that ends as this result.
bool carries_through(const Analysis& known, Var input, Atom atom) {
  const int definition = known.fusion.definition[at(atom.code)];
  if (definition < 0) return false;
  const Equation& loop = known.program.equations()[at(definition)];
  if (known.last_use[at(input.id)] != known.fusion.home[at(definition)]) return false;
  return is_carried(known, loop, input, atom);
}

// Scatter kernels update their operand in place if the result has the same memory.
bool is_scatter(const Group& group, const Equation& equation) {
  return group.work == Work::host && equation.primitive->traits.combines == Combines::updates &&
         equation.inputs.size() == 3;
}

bool reads_anywhere(const Program& body, const Analysis& known, const Group& group, Var var) {
  for (int e : known.fusion.members[at(&group - known.fusion.groups.data())]) {
    const std::vector<Atom>& inputs = body.equations()[at(e)].inputs;
    if (std::find(inputs.begin(), inputs.end(), Atom(var)) != inputs.end()) return true;
  }
  return false;
}

bool reads_at_own_place(const Program& body, const Analysis& known, const Group& group, Var var) {
  if (body.type(var).shape != group.space) return !reads_anywhere(body, known, group, var);
  Index own;
  for (std::size_t d = 0; d < group.space.size(); ++d) own.push_back(Affine::of(static_cast<Symbol>(d)));
  std::vector<int> members = group.results;
  members.insert(members.end(), group.kept.begin(), group.kept.end());
  for (int e : members) {
    const Equation* source = &body.equations()[at(e)];
    if (std::find(group.columns.begin(), group.columns.end(), e) !=
        group.columns.end()) {  // reads its operand in place
      const Atom operand = source->inputs[0];
      if (operand.is_literal() || !known.fusion.inlined(operand.var())) continue;
      source = &body.equations()[at(known.fusion.definition[at(operand.code)])];
    }
    for (const Access& access :
         accesses(body, known.fusion, *source, own, group.kept, static_cast<Symbol>(own.size()))) {
      if (access.var == var && access.index != own) return false;
    }
  }
  return true;
}

}  // namespace

const Analysis& Analyses::of(const Program& program) {
  auto [it, inserted] = analyses_.try_emplace(program.identity());
  if (!inserted) return *it->second;
  it->second = std::make_unique<Analysis>();
  Analysis& found = *it->second;
  found.program = program;
  found.fusion = fuse(program);
  schedule(program, found.fusion);
  const int groups = static_cast<int>(found.fusion.groups.size());
  found.last_use.assign(at(program.var_count()), -1);
  found.fusion.members.resize(at(groups));
  for (std::size_t e = 0; e < program.equations().size(); ++e) {
    const int home = found.fusion.home[e];
    if (home < 0) continue;
    found.fusion.members[at(home)].push_back(static_cast<int>(e));
    for (Atom input : program.equations()[e].inputs) {
      if (!input.is_literal()) found.last_use[at(input.code)] = std::max(found.last_use[at(input.code)], home);
    }
  }
  for (Atom output : program.outputs()) {
    if (!output.is_literal()) found.last_use[at(output.code)] = groups;
  }
  for (std::size_t g = at(groups); g-- > 0;) {  // the memory of an operand lives as long as its aliases
    const Group& group = found.fusion.groups[g];
    if (group.work != Work::alias) continue;
    const Equation& equation = program.equations()[at(group.results[0])];
    if (equation.inputs[0].is_literal()) continue;
    int& last = found.last_use[at(equation.inputs[0].code)];
    last = std::max(last, found.last_use[at(equation.outputs[0].id)]);
  }
  return found;
}

const Program& Analyses::unshared(const Program& program) {
  auto [it, inserted] = unshared_.try_emplace(program.identity());
  if (inserted) it->second = {program, read_columns(unshare(program))};
  return it->second.second;
}

Carries carries_of(const Equation& equation) {
  if (equation.primitive == prim::scan()) return {ScanView(equation).consts(), ScanView(equation).carry()};
  if (equation.primitive == prim::while_()) return {WhileView(equation).first_carry(), WhileView(equation).carry()};
  return {};
}

bool dies_as_carry(const Analysis& known, int g, const Equation& loop, std::size_t operand) {
  Atom atom = loop.inputs[operand];
  if (atom.is_literal() || names_among(known, loop.inputs, atom) != 1) return false;
  while (true) {
    const int definition = known.fusion.definition[at(atom.code)];
    if (definition < 0 || known.fusion.inlined(atom.var()) || known.last_use[at(atom.code)] != g) return false;
    const Group& home = known.fusion.groups[at(known.fusion.home[at(definition)])];
    if (home.work != Work::alias) return true;
    atom = known.program.equations()[at(definition)].inputs[0];
    if (atom.is_literal()) return false;
  }
}

bool reads_what_it_writes(const Program& program, const std::vector<int>& members, const Equation& slice,
                          const Equation& update) {
  if (slice.primitive != prim::dynamic_slice() || slice.inputs[0] != update.inputs[0] ||
      !std::equal(slice.inputs.begin() + 1, slice.inputs.end(), update.inputs.begin() + 2, update.inputs.end()) ||
      slice.attrs.ints("slice_sizes") != program.type(update.inputs[1]).shape) {
    return false;
  }
  // Elements keep their order up to the update: each is read before it is written, and by no other reader.
  const int64_t size = program.type(update.inputs[1]).size();
  const auto keeps_order = [&](const Equation& equation) {
    const Primitive& primitive = equation.primitive;
    if (program.type(equation.outputs[0]).size() != size) return false;
    if (primitive == prim::reshape()) return equation.attrs["dimensions"].is_none();
    return primitive == prim::broadcast_in_dim() || primitive == prim::squeeze() ||
           primitive->traits.elementwise != Elementwise::no;
  };
  std::vector<Atom> follows = {slice.outputs[0]};
  for (int e : members) {
    const Equation& equation = program.equations()[at(e)];
    const bool reads = std::any_of(equation.inputs.begin(), equation.inputs.end(), [&](Atom input) {
      return std::find(follows.begin(), follows.end(), input) != follows.end();
    });
    if (!reads || &equation == &update) continue;
    if (!keeps_order(equation)) return false;
    follows.push_back(equation.outputs[0]);
  }
  return true;
}

bool reads_elsewhere(const Analysis& known, int g, const Equation& update) {
  const std::vector<int>& members = known.fusion.members[at(g)];
  return std::any_of(members.begin(), members.end(), [&](int e) {
    const Equation& reader = known.program.equations()[at(e)];
    const bool once = &reader == &update || reads_what_it_writes(known.program, members, reader, update);
    return names_among(known, reader.inputs, update.inputs[0]) > (once ? 1 : 0);
  });
}

bool may_replace(const Analysis& known, Var old, std::size_t output) {
  const Program& body = known.program;
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
  const bool in_place =
      group.work == Work::pieces ? writer.primitive == prim::dynamic_update_slice() : is_scatter(group, writer);
  const bool updates = in_place && writer.inputs[0] == Atom(old);
  const bool carried = group.work == Work::control && is_carried(known, writer, old, result);
  if (!flat && !updates && !carried) return false;
  for (std::size_t e = 0; e < body.equations().size(); ++e) {
    const Equation& reader = body.equations()[e];
    if (known.fusion.home[e] < 0 ||
        std::find(reader.inputs.begin(), reader.inputs.end(), Atom(old)) == reader.inputs.end())
      continue;
    if (known.fusion.home[e] > home || known.fusion.groups[at(known.fusion.home[e])].work == Work::alias) return false;
    if (known.fusion.home[e] < home) continue;
    if (carried) continue;  // the loop itself reads it once
    if (updates && static_cast<int>(e) != definition &&
        !reads_what_it_writes(body, known.fusion.members[at(home)], reader, writer))
      return false;
    if (updates && std::count(reader.inputs.begin(), reader.inputs.end(), Atom(old)) != 1) return false;
  }
  return updates || carried || reads_at_own_place(body, known, group, old);
}

int donated_for(const Analysis& known, const std::vector<bool>& donated, std::size_t output) {
  const Program& program = known.program;
  const Atom atom = program.outputs()[output];
  const ArrayType& type = program.type(atom);
  // Small arrays are stored next to their own state, so that their memory cannot change hands.
  if (type.size() * storage_size(type.dtype) < static_cast<int64_t>(arena::min_block)) return -1;
  for (std::size_t i = 0; i < donated.size(); ++i) {
    const Var input = program.invars()[i];
    if (!donated[i] || program.type(input).shape != type.shape || program.type(input).dtype != type.dtype) continue;
    if (known.last_use[at(input.id)] < writer_of(known, atom) || carries_through(known, input, atom) ||
        may_replace(known, input, output)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace capibara::cpu
