// Compares programs between processes by their text.
#include "transforms/agreement.h"

#include <cctype>
#include <set>
#include <vector>

#include "core/processes/exchange.h"
#include "core/sharding/process_grid.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/ir/source.h"
#include "program/ir/views.h"

namespace capibara {

namespace {

// The processes of all meshes that span processes, the source of the first map over them, and its collectives.
struct Span {
  std::set<int> processes;
  Source source;
  std::vector<std::string> operations;  // the first collectives
};

constexpr std::size_t max_named_operations = 4;

void add_operation(const Equation& equation, Span& span) {
  if (equation.effects.axes.empty() || holds_programs(equation.attrs)) return;
  if (span.operations.size() >= max_named_operations) return;
  std::string name = equation.primitive == prim::psum_invariant() ? "psum" : equation.primitive.name(), axes;
  for (const std::string& axis : equation.effects.axes) axes += concat(axes.empty() ? "'" : ", '", axis, "'");
  span.operations.push_back(concat(name, " over ", axes));
}

void find_span(const Program& program, Span& span) {
  for (const Equation& equation : program.equations()) {
    add_operation(equation, span);
    const NamedSharding* devices = mapped_devices(equation);
    if (devices && devices->platform == "cpu" && !is_addressable(*devices)) {
      if (span.processes.empty()) span.source = equation.source;
      for (const int device : devices->devices) span.processes.insert(process_of_device(device));
    }
    for_each_program(equation.attrs, [&](const Program& nested) { find_span(nested, span); });
  }
}

// Object addresses differ between processes that run the same program.
std::string without_addresses(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] != 'x' || i == 0 || text[i - 1] != '0') continue;
    while (i + 1 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 1]))) ++i;
  }
  return out;
}

}  // namespace

void agree_on_program(const Program& program, const std::string& name) {
  Span span;
  find_span(program, span);
  if (span.processes.empty()) return;
  std::string types;
  for (const ArrayType& type : program.input_types()) types += concat(types.empty() ? "" : ", ", to_string(type));
  const SourceInfo source = source_info(span.source);
  const std::string line =
      source.file.empty() ? "" : concat(source.file.substr(source.file.rfind('/') + 1), ":", source.line);
  std::string description = concat("jit(", name, ") of (", types, ")");
  for (std::size_t i = 0; i < span.operations.size(); ++i)
    description += concat(i == 0 ? " with " : ", ", span.operations[i]);
  processes::exchange().agree({description, line, {span.processes.begin(), span.processes.end()}},
                              without_addresses(program.to_string()), description);
}

}  // namespace capibara
