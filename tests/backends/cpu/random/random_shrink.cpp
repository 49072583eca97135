// Compares two runs of a random program, and reduces a program that shows a difference.
#include "backends/cpu/random/random_programs.h"

#include "core/array/element.h"
#include "program/ir/dce.h"
#include "program/trace/stage.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace capibara::random_programs {

namespace {

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

std::vector<double> parts_of(const Array& array) {
  const DType part = real_dtype(array.dtype());
  std::vector<double> parts(at(array.size()) * (is_complex(array.dtype()) ? 2 : 1));
  convert_elements(part, array.raw_data(), DType::float64, parts.data(), static_cast<int64_t>(parts.size()));
  return parts;
}

std::string element(const Array& array, int64_t index) {
  const std::size_t bytes = at(storage_size(array.dtype()));
  Buffer buffer = Buffer::allocate(bytes);
  std::memcpy(buffer.mutable_data(), array.raw_data() + at(index) * bytes, bytes);
  return Array::from_buffer(array.type().strong().with_shape({}), buffer).to_string();
}

std::string place_text(int64_t index, const Shape& shape) {
  std::string text;
  for (std::size_t d = shape.size(); d-- > 0;) {
    text = concat(index % shape[d], text.empty() ? "" : ", ", text);
    index /= shape[d];
  }
  return "[" + text + "]";
}

std::string difference(const Array& got, const Array& want, double tolerance) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return concat("got ", to_string(got.type()), ", want ", to_string(want.type()));
  }
  const std::size_t bytes = at(storage_size(got.dtype()));
  if (std::memcmp(got.raw_data(), want.raw_data(), at(got.size()) * bytes) == 0) return "";
  const bool inexact = is_inexact(got.dtype());
  std::vector<double> a, b;
  if (inexact) a = parts_of(got), b = parts_of(want);
  // A negative tolerance is relative to the largest element.
  if (tolerance < 0) {
    double greatest = 0;
    for (double x : b) greatest = std::max(greatest, std::isfinite(x) ? std::abs(x) : 0);
    tolerance *= -greatest;
  }
  const std::size_t parts = is_complex(got.dtype()) ? 2 : 1;
  int64_t wrong = 0, first = -1;
  double worst = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(got.raw_data() + at(i) * bytes, want.raw_data() + at(i) * bytes, bytes) == 0) continue;
    bool agrees = inexact;
    for (std::size_t part = 0; inexact && part < parts; ++part) {
      const double x = a[at(i) * parts + part], y = b[at(i) * parts + part];
      if (std::isnan(x) && std::isnan(y)) continue;
      // Parts of complex products are sums, which may be fused with later operations: a zero may have either sign.
      const bool same_sign = parts == 2 || std::signbit(x) == std::signbit(y);
      const bool same = tolerance == 0 ? x == y && same_sign : x == y || std::abs(x - y) <= tolerance;
      if (!same) agrees = false, worst = std::max(worst, std::abs(x - y));
    }
    if (agrees) continue;
    ++wrong;
    if (first < 0) first = i;
  }
  if (wrong == 0) return "";
  return concat(to_string(got.type()), ": ", wrong, " of ", got.size(), " elements differ, first at ",
                place_text(first, got.shape()), ": got ", element(got, first), ", want ", element(want, first),
                "; greatest difference ", worst, ", allowed ", tolerance);
}

// The tolerance of an intermediate value, whose error is unknown.
double loose(const ArrayType& type) {
  if (!is_inexact(type.dtype)) return 0;
  const double eps = finfo(real_dtype(type.dtype)).eps;
  return eps > 0.1 ? -0.5 : eps > 1e-4 ? -0.05 : -1e-3;
}

// Removes dead equations and unused inputs.
RandomProgram pruned(const RandomProgram& p) {
  DceProgram dce = dce_program(p.program, std::vector<bool>(p.program.outputs().size(), true));
  RandomProgram result = p;
  result.program = dce.program;
  result.inputs.clear();
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    if (dce.used_inputs[i]) result.inputs.push_back(p.inputs[i]);
  }
  return result;
}

RandomProgram with_outputs(const RandomProgram& p, const std::vector<Atom>& outputs, std::vector<double> tolerances) {
  Program::Body body = p.program.body();
  body.outputs = outputs;
  RandomProgram result = p;
  result.program = Program(std::move(body));
  result.tolerances = std::move(tolerances);
  return pruned(result);
}

// The outputs of an equation become inputs with the values that the trusted runner gives them.
RandomProgram cut(const RandomProgram& p, std::size_t e, const Runner& trusted) {
  const Equation equation = p.program.equations()[e];
  std::vector<Atom> vars;
  for (Var output : equation.outputs) {
    if (!output.dropped()) vars.push_back(output);
  }
  Program::Body body = p.program.body();
  body.outputs = vars;
  Arrays values = trusted(Program(body), p.inputs);
  body = p.program.body();
  body.equations.erase(body.equations.begin() + static_cast<std::ptrdiff_t>(e));
  RandomProgram result = p;
  for (std::size_t i = 0; i < vars.size(); ++i) {
    body.invars.push_back(vars[i].var());
    result.inputs.push_back(values[i]);
  }
  result.program = Program(std::move(body));
  return pruned(result);
}

// int32 scalars terminate loops, so they are kept.
bool counts(const Program& program, const Equation& equation) {
  return std::any_of(equation.outputs.begin(), equation.outputs.end(), [&](Var output) {
    return !output.dropped() && program.type(output).shape.empty() && program.type(output).dtype == DType::int32;
  });
}

// Replaces equation number `place`, counting nested programs, by one of its operands or by zeros.
class Simplifier {
 public:
  Simplifier(int place, bool zeros) : place_(place), zeros_(zeros) {}

  bool changed() const { return changed_; }

  Program operator()(const Program& program) {
    Program::Body body = program.body();
    std::vector<Equation> equations;
    std::vector<std::pair<Var, Atom>> replaced;
    for (const Equation& given : program.equations()) {
      Equation equation = given;
      for (Atom& input : equation.inputs) input = now(input, replaced);
      if (next_++ == place_)
        simplify(program, equation, body, replaced, equations);
      else {
        equation.attrs = nested(equation.attrs);
        equations.push_back(std::move(equation));
      }
    }
    if (!changed_) return program;
    body.equations = std::move(equations);
    for (Atom& output : body.outputs) output = now(output, replaced);
    return Program(std::move(body));
  }

 private:
  static Atom now(Atom atom, const std::vector<std::pair<Var, Atom>>& replaced) {
    for (const auto& [var, by] : replaced) {
      if (atom == Atom(var)) return by;
    }
    return atom;
  }

  void simplify(const Program& program, const Equation& equation, Program::Body& body,
                std::vector<std::pair<Var, Atom>>& replaced, std::vector<Equation>& equations) {
    if (!counts(program, equation)) {
      std::vector<std::pair<Var, Atom>> mine;
      std::vector<Equation> added;
      for (Var output : equation.outputs) {
        if (output.dropped()) continue;
        const ArrayType& type = program.type(output);
        const auto same = std::find_if(equation.inputs.begin(), equation.inputs.end(),
                                       [&](Atom input) { return type_in(body, input) == type; });
        if (!zeros_ && same != equation.inputs.end()) {
          mine.emplace_back(output, *same);
        } else if (zeros_ && !equation.primitive.is("broadcast_in_dim")) {
          body.literals.push_back(array_of(ArrayType{{}, type.dtype, false, false, {}}, {0, 0}));
          const Atom zero = Atom::literal(static_cast<int32_t>(body.literals.size()) - 1);
          if (type.shape.empty())
            mine.emplace_back(output, zero);
          else
            added.push_back(broadcast(zero, body, output, type));
        } else {
          equations.push_back(equation);
          return;
        }
      }
      changed_ = true;
      replaced.insert(replaced.end(), mine.begin(), mine.end());
      equations.insert(equations.end(), added.begin(), added.end());
      return;
    }
    equations.push_back(equation);
  }

  static ArrayType type_in(const Program::Body& body, Atom atom) {
    return atom.is_literal() ? body.literals[at(atom.literal_index())].type() : body.var_types[at(atom.code)];
  }

  static Equation broadcast(Atom zero, const Program::Body& body, Var output, const ArrayType& type) {
    const Array number = body.literals[at(zero.literal_index())];
    Program staged =
        stage([&](std::span<const Array>) { return Arrays{jax::lax::broadcast(number, type.shape)}; }, {}, "zeros")
            .program;
    Equation equation = staged.equations().at(0);
    equation.inputs = {zero};
    equation.outputs = {output};
    return equation;
  }

  Attrs nested(const Attrs& attrs) {
    std::vector<Attrs::Entry> entries;
    for (const auto& [name, attr] : attrs.entries())
      entries.emplace_back(name, name == "cond_jaxpr" ? attr : nested(attr));
    return Attrs(std::move(entries));
  }
  Attr nested(const Attr& attr) {
    if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) return Attr((*this)(**program));
    if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
      Attr::List copy;
      for (const Attr& entry : **list) copy.push_back(nested(entry));
      return Attr(std::move(copy));
    }
    return attr;
  }

  int place_, next_ = 0;
  bool zeros_, changed_ = false;
};

class Shrinker {
 public:
  Shrinker(RandomProgram program, const Runner& trusted, const Runner& tried)
      : best_(std::move(program)), trusted_(trusted), tried_(tried) {}

  RandomProgram run() {
    one_output();
    for (bool again = true; again && tries_ < 1500;)
      again = std::max({earlier_output(), cut_equations(), simplify(false), simplify(true)});
    return best_;
  }

 private:
  bool accept(const RandomProgram& candidate) {
    ++tries_;
    try {
      verify(candidate.program);
      if (random_programs::difference(candidate, trusted_, tried_).empty()) return false;
    } catch (const std::exception&) {
      return false;  // not a program any more
    }
    best_ = candidate;
    return true;
  }

  void one_output() {
    const RandomProgram all = best_;
    for (std::size_t i = 0; i < all.program.outputs().size(); ++i) {
      if (accept(with_outputs(all, {all.program.outputs()[i]}, {all.tolerances[i]}))) return;
    }
  }

  bool earlier_output() {
    const RandomProgram all = best_;
    for (const Equation& equation : all.program.equations()) {
      for (Var output : equation.outputs) {
        if (output.dropped() || all.program.outputs()[0] == Atom(output)) continue;
        if (is_key(all.program.type(output).dtype)) continue;  // its elements cannot be compared
        if (accept(with_outputs(all, {Atom(output)}, {loose(all.program.type(output))}))) return true;
      }
    }
    return false;
  }

  bool cut_equations() {
    bool any = false;
    for (std::size_t e = 0; e < best_.program.equations().size();) {
      RandomProgram candidate;
      try {
        candidate = cut(best_, e, trusted_);
      } catch (const std::exception&) {
        ++e;
        continue;
      }
      if (candidate.program.equations().empty() || !accept(candidate))
        ++e;
      else
        any = true;
    }
    return any;
  }

  bool simplify(bool zeros) {
    bool any = false;
    for (int place = equation_count(best_.program); place-- > 0 && tries_ < 1500;) {
      Simplifier simplifier(place, zeros);
      RandomProgram candidate = best_;
      candidate.program = simplifier(best_.program);
      if (!simplifier.changed()) continue;
      try {
        candidate = pruned(candidate);
      } catch (const std::exception&) {
        continue;
      }
      if (accept(candidate)) any = true;
    }
    return any;
  }

  RandomProgram best_;
  const Runner& trusted_;
  const Runner& tried_;
  int tries_ = 0;
};

void count_equations(const Attr& attr, int& count) {
  if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) count += equation_count(**program);
  if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
    for (const Attr& entry : **list) count_equations(entry, count);
  }
}

}  // namespace

int equation_count(const Program& program) {
  int count = 0;
  for (const Equation& equation : program.equations()) {
    ++count;
    for (const auto& [name, attr] : equation.attrs.entries()) count_equations(attr, count);
  }
  return count;
}

std::string difference(const Arrays& got, const Arrays& want, const std::vector<double>& tolerances) {
  if (got.size() != want.size()) return concat("got ", got.size(), " outputs, want ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::string text = difference(got[i], want[i], tolerances[i]);
    if (!text.empty()) return concat("output ", i, ", ", text);
  }
  return "";
}

std::string difference(const RandomProgram& program, const Runner& trusted, const Runner& tried) {
  Arrays want = trusted(program.program, program.inputs);
  try {
    return difference(tried(program.program, program.inputs), want, program.tolerances);
  } catch (const std::exception& error) {
    return concat("it throws: ", error.what());
  }
}

RandomProgram shrink(RandomProgram program, const Runner& trusted, const Runner& tried) {
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  return Shrinker(std::move(program), trusted, tried).run();
}

std::string describe(const RandomProgram& program) {
  std::string text = concat("seed ", program.seed, "\n", program.program.to_string());
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Array& input = program.inputs[i];
    text += concat("\ninput ", i, ": ", to_string(input.type()));
    if (input.size() <= 70) text += concat(" ", input.to_string());
  }
  return text;
}

}  // namespace capibara::random_programs
