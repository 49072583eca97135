// Matmuls, FLOPs and memory of a program, from its equations.
#include <capibara/primitive.h>
#include <capibara/program.h>
#include <capibara/tpu/costs.h>

#include <algorithm>
#include <functional>

#include "program/ir/handles.h"
#include "program/ir/source.h"

namespace capibara::tpu {

namespace {

double bytes_of(const ArrayType& type) {
  return static_cast<double>(type.size()) * static_cast<double>(storage_size(type.dtype));
}

// The programs inside an equation, and how often it runs them; of branches only the last, an arbitrary choice.
void for_nested(const Equation& equation, const std::function<void(const Program& inner, double times)>& visit) {
  const bool loops = equation.primitive->traits.control == Control::scan;
  const double times = loops ? static_cast<double>(equation.attrs.integer("length")) : 1;
  for (const auto& [name, attr] : equation.attrs.entries()) {
    if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) visit(**program, times);
    const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
    if (!list || (*list)->empty()) continue;
    const Attr& last = (*list)->back();
    if (const auto* program = last.get_if<std::shared_ptr<const Program>>()) visit(**program, times);
  }
}

Matmul matmul_of(const Program& program, const Equation& equation) {
  const auto& numbers = equation.attrs.get<DotDimensionNumbers>("dimension_numbers");
  const ArrayType &lhs = program.type(equation.inputs[0]), &rhs = program.type(equation.inputs[1]);
  Matmul m;
  m.rows = m.columns = m.inner = 1;
  auto size = [](const ArrayType& type, int64_t d) { return type.shape[static_cast<std::size_t>(d)]; };
  for (const int64_t d : numbers.lhs_batch) m.batch *= size(lhs, d);
  for (const int64_t d : numbers.lhs_contracting) m.inner *= size(lhs, d);
  const int64_t shared = std::max<int64_t>(1, m.batch * m.inner);
  m.rows = std::max<int64_t>(1, lhs.size() / shared);
  m.columns = std::max<int64_t>(1, rhs.size() / shared);
  if (storage_size(lhs.dtype) == 1)
    m.precision = Precision::int8;
  else if (storage_size(lhs.dtype) == 4)
    m.precision = Precision::f32;
  m.alone = false;
  return m;
}

void add_matmuls(const Program& program, double times, std::vector<ProgramMatmul>& all) {
  for (const Equation& equation : program.equations()) {
    if (equation.primitive == prim::dot_general()) {
      const Matmul m = matmul_of(program, equation);
      if (m.batch > 0 && m.inner > 0) all.push_back({m, times});
    }
    for_nested(equation, [&](const Program& inner, double more) { add_matmuls(inner, times * more, all); });
  }
}

// The peak number of bytes alive inside a program, not counting its inputs.
double peak_of(const Program& program, uint32_t* source) {
  std::vector<int32_t> last_use(static_cast<std::size_t>(program.var_count()), -1);
  std::vector<bool> own(last_use.size(), false);
  int32_t index = 0;
  for (const Equation& equation : program.equations()) {
    for (const Atom input : equation.inputs) {
      if (!input.is_literal()) last_use[static_cast<std::size_t>(input.var().id)] = index;
    }
    for (const Var output : equation.outputs) {
      if (!output.dropped()) own[static_cast<std::size_t>(output.id)] = true;
    }
    ++index;
  }
  for (const Atom output : program.outputs()) {
    if (!output.is_literal()) last_use[static_cast<std::size_t>(output.var().id)] = index;
  }
  double alive = 0, peak = 0;
  index = 0;
  for (const Equation& equation : program.equations()) {
    double inside = 0;
    uint32_t line = equation.source.id;
    for_nested(equation, [&](const Program& inner, double) {
      uint32_t inner_line = 0;
      const double bytes = peak_of(inner, &inner_line);
      if (bytes > inside) {
        inside = bytes;
        if (inner_line) line = inner_line;
      }
    });
    const bool fused = equation.primitive->traits.elementwise != Elementwise::no;
    for (const Var output : equation.outputs) {
      if (!output.dropped()) alive += bytes_of(program.type(output));
    }
    // An elementwise operation overwrites an operand that dies with it.
    double reused = 0;
    for (const Atom input : equation.inputs) {
      if (input.is_literal()) continue;
      const std::size_t id = static_cast<std::size_t>(input.var().id);
      if (!own[id] || last_use[id] != index) continue;
      own[id] = false;
      const double bytes = bytes_of(program.type(input));
      if (fused) reused = std::max(reused, bytes);
      if (alive + inside - (fused ? reused : 0) > peak) {
        peak = alive + inside - (fused ? reused : 0);
        if (source) *source = line;
      }
      alive -= bytes;
    }
    if (alive + inside > peak) {
      peak = alive + inside;
      if (source) *source = line;
    }
    ++index;
  }
  return peak;
}

}  // namespace

std::vector<ProgramMatmul> program_matmuls(const Program& program) {
  std::vector<ProgramMatmul> all;
  add_matmuls(program, 1, all);
  return all;
}

double model_flops(const Program& program) {
  double flops = 0;
  for (const ProgramMatmul& one : program_matmuls(program)) {
    const Matmul& m = one.shape;
    flops += one.times * 2 * static_cast<double>(m.batch) * static_cast<double>(m.rows) *
             static_cast<double>(m.columns) * static_cast<double>(m.inner);
  }
  return flops;
}

ProgramPlan plan_program(const Chip& chip, const Program& program) {
  ProgramPlan plan;
  for (const ArrayType& type : program.input_types()) plan.argument_bytes += bytes_of(type);
  for (const Array& constant : program.constants()) plan.argument_bytes += bytes_of(constant.type());
  for (const ArrayType& type : program.output_types()) plan.output_bytes += bytes_of(type);
  uint32_t line = 0;
  plan.peak_bytes = plan.argument_bytes + peak_of(program, &line);
  if (line) plan.peak_source = to_string(Source{line});
  plan.flops = model_flops(program);
  for (const ProgramMatmul& one : program_matmuls(program))
    plan.matmul_seconds += one.times * matmul_cost(chip, one.shape).seconds;
  plan.memory_seconds = copy_seconds(chip, (plan.argument_bytes + plan.output_bytes) / 2);
  return plan;
}

}  // namespace capibara::tpu
