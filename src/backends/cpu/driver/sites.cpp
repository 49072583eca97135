// Descriptions of call sites for profiles.
#include "backends/cpu/driver/sites.h"

#include <algorithm>
#include <set>

#include "program/ir/callback.h"
#include "program/ir/cost.h"
#include "program/ir/handles.h"
#include "program/ir/source.h"

namespace capibara::cpu {

namespace {

constexpr std::size_t max_text_equations = 24;

// Operations as a processor counts them: a transcendental is one, too.
double operations_of(const Program& program, const Equation& equation) {
  const ProgramCost cost = equation_cost(program, equation);
  return cost.flops + cost.transcendentals;
}

double bytes_in(const ArrayType& type) {
  return static_cast<double>(type.size()) * static_cast<double>(storage_size(type.dtype));
}

std::string equation_line(const Program& program, const Equation& equation) {
  std::string text;
  for (Var output : equation.outputs) {
    if (!output.dropped()) text += concat(text.empty() ? "" : ", ", short_string(program.type(output)));
  }
  text += concat(" = ", call_name(equation), "(");
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    text += concat(i == 0 ? "" : ", ", short_string(program.type(equation.inputs[i])));
  }
  return text + ")";
}

// True if the equation reads no more of an operand than it writes.
bool reads_a_part(const Primitive& primitive) {
  return primitive == prim::slice() || primitive == prim::dynamic_slice() || primitive == prim::gather();
}

const char* kind_of(const Program& program, const Analysis& known, const std::vector<int>& equations) {
  const char* kind = "loop fusion";
  for (int e : equations) {
    const Equation& equation = program.equations()[static_cast<std::size_t>(e)];
    if (equation.attrs.has("callback")) return "callback";
    if (equation.primitive == prim::dot_general()) return "matmul";
    if (equation.primitive == prim::conv_general_dilated()) return "convolution";
    const int home = known.fusion.home[static_cast<std::size_t>(e)];
    if (home >= 0 && known.fusion.groups[static_cast<std::size_t>(home)].work == Work::host) kind = "kernel";
  }
  return kind;
}

}  // namespace

int32_t Sites::named(profile::Slot site, const std::string& name) {
  const auto number = static_cast<int32_t>(sites_.size());
  site.id = number;
  site.name = concat(name, ".", number);
  sites_.push_back(std::move(site));
  return number;
}

void Sites::locate(profile::Slot& site, const Equation& equation) {
  const SourceInfo info = source_info(equation.source);
  site.file = info.file;
  site.line = info.line;
  site.scope = info.name_scope;
}

int32_t Sites::add(const Program& program, const Analysis& known, const std::vector<int>& equations) {
  profile::Slot site;
  site.kind = kind_of(program, known, equations);
  const std::set<int> own(equations.begin(), equations.end());
  std::set<int32_t> read;
  // The most expensive equation names the site; the most expensive one with a source line locates it.
  const Equation *main = nullptr, *located = nullptr;
  double main_cost = -1, located_cost = -1;
  for (std::size_t i = 0; i < equations.size(); ++i) {
    const Equation& equation = program.equations()[static_cast<std::size_t>(equations[i])];
    const double operations = operations_of(program, equation);
    double written = 0;
    for (Var output : equation.outputs) {
      if (output.dropped()) continue;
      const double bytes = bytes_in(program.type(output));
      written += bytes;
      if (!known.fusion.inlined(output)) {
        const bool update = equation.primitive == prim::dynamic_update_slice();  // usually in place
        site.bytes_written += update ? bytes_in(program.type(equation.inputs[1])) : bytes;
      }
    }
    for (Atom input : equation.inputs) {
      if (input.is_literal()) continue;
      const int definition = known.fusion.definition[static_cast<std::size_t>(input.code)];
      if ((definition >= 0 && own.count(definition)) || !read.insert(input.code).second) continue;
      if (equation.primitive == prim::dynamic_update_slice() && input == equation.inputs[0]) continue;
      const double bytes = bytes_in(program.type(input));
      site.bytes_read += reads_a_part(equation.primitive) ? std::min(bytes, written) : bytes;
    }
    site.flops += operations;
    site.equations.push_back(equation.primitive.name());
    if (i < max_text_equations)
      site.text += concat(i == 0 ? "" : "; ", equation_line(program, equation));
    else if (i == max_text_equations)
      site.text += concat("; and ", equations.size() - i, " more");
    const double cost = operations + written * 0.1;
    if (cost > main_cost) {
      main = &equation;
      main_cost = cost;
      if (!equation.inputs.empty()) site.rate_type = rate_type(program.type(equation.inputs[0]).dtype);
    }
    const SourceInfo info = source_info(equation.source);
    const double rank = cost + (info.file.empty() ? 0 : 1e30) + (info.name_scope.empty() ? 0 : 1e29);
    if (rank > located_cost) {
      located = &equation;
      located_cost = rank;
    }
  }
  if (located) locate(site, *located);
  const std::string name = main ? call_name(*main) : std::string("empty");
  return named(std::move(site), equations.size() > 1 ? name + "_fusion" : name);
}

int32_t Sites::add_loop(const Program& program, const Equation& loop) {
  profile::Slot site;
  site.kind = "loop";
  site.text = equation_line(program, loop);
  site.equations = {loop.primitive.name()};
  const ProgramCost cost = equation_cost(program, loop);
  site.flops = cost.flops + cost.transcendentals;
  const auto most = std::max_element(cost.flops_by_type.begin(), cost.flops_by_type.end());
  site.rate_type = static_cast<RateType>(most - cost.flops_by_type.begin());
  for (Atom input : loop.inputs) site.bytes_read += bytes_in(program.type(input));
  for (Var output : loop.outputs) site.bytes_written += output.dropped() ? 0 : bytes_in(program.type(output));
  locate(site, loop);
  return named(std::move(site), loop.primitive.name());
}

int32_t Sites::add_rest(int32_t loop) {
  profile::Slot site = sites_[static_cast<std::size_t>(loop)];
  const std::string name = concat(site.equations[0], "_rest");
  site.text = concat("after a call in ", site.name, ": ", site.text);
  site.flops = site.bytes_read = site.bytes_written = 0;
  return named(std::move(site), name);
}

int32_t Sites::add_copy(int64_t bytes) {
  profile::Slot site;
  site.kind = "copy";
  site.text = concat("copy of ", bytes, " bytes");
  site.equations = {"copy"};
  site.bytes_read = site.bytes_written = static_cast<double>(bytes);
  return named(std::move(site), "copy");
}

bool too_short_for_marks(const Program& body) {
  constexpr double mark_nanoseconds = 40, flops_per_nanosecond = 20, bytes_per_nanosecond = 20, max_share = 0.03;
  const ProgramCost cost = count_cost(body);
  const double nanoseconds =
      cost.flops / flops_per_nanosecond + cost.transcendentals + cost.bytes_accessed / bytes_per_nanosecond;
  // About one call per three equations.
  const double marks = static_cast<double>(body.equations().size()) / 3 + 1;
  return marks * mark_nanoseconds > max_share * nanoseconds;
}

}  // namespace capibara::cpu
