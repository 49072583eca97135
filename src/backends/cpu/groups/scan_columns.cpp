// Finds scans with elementwise steps, and the transposes and reversals that their sequences do not need.
#include "backends/cpu/groups/scan_columns.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/groups/work.h"
#include "program/ir/handles.h"
#include "program/ir/views.h"

namespace capibara::cpu {

namespace {

constexpr int64_t max_in_registers = 64;    // elements; scans of smaller values are written in registers
constexpr std::size_t max_equations = 128;  // of a step: larger ones are left to loops that share functions
constexpr int max_functions = 8;
constexpr int64_t min_columns_length = 4;           // steps; shorter columns are not worth a tile
constexpr int64_t max_scan_tile_bytes = 96 * 1024;  // of all tiles of a scan
constexpr int64_t max_tile_rows = 64, min_tile_rows = 16;
constexpr const char* layouts_name = "layouts";

// Bytes that one element takes, over all steps, in the sequences that are stored in columns.
int64_t column_bytes(const Equation& scan, const std::vector<SequenceLayout>& layouts) {
  const ScanView view(scan);
  const Program& body = view.body();
  int64_t bytes = 0;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (!layouts[i].columns) continue;
    const Atom step = i < view.xs() ? Atom(view.xs(body.invars())[i]) : body.outputs()[view.carry() + i - view.xs()];
    bytes += view.length() * storage_size(body.type(step).dtype);
  }
  return bytes;
}

int64_t tile_rows(int64_t bytes) {
  int64_t rows = max_tile_rows;
  while (rows > min_tile_rows && rows * bytes > max_scan_tile_bytes) rows /= 2;
  return rows * bytes <= max_scan_tile_bytes ? rows : 0;
}

// The origin of a value's dimensions: entry d is the dimension of the stored variable that became dimension d.
struct Source {
  Var var;
  Ints dimensions;
  bool reversed = false;
};

// The steps are the first or the last dimension, and the others keep their order.
std::optional<SequenceLayout> layout_of(const Source& source) {
  const auto rank = static_cast<int64_t>(source.dimensions.size());
  Ints first(source.dimensions.size()), last(source.dimensions.size());
  std::iota(first.begin(), first.end(), 0);
  for (int64_t d = 0; d < rank; ++d) last[at(d)] = d == 0 ? rank - 1 : d - 1;
  if (source.dimensions == first) return SequenceLayout{false, source.reversed};
  if (source.dimensions == last) return SequenceLayout{true, source.reversed};
  return std::nullopt;
}

class Rewriter {
 public:
  explicit Rewriter(const Program& program)
      : program_(program),
        body_(program.body()),
        definition_(at(program.var_count()), -1),
        readers_(definition_.size()) {
    for (std::size_t e = 0; e < body_.equations.size(); ++e) {
      for (Var output : body_.equations[e].outputs) {
        if (!output.dropped()) definition_[at(output.id)] = static_cast<int>(e);
      }
      for (Atom input : body_.equations[e].inputs) {
        if (!input.is_literal()) readers_[at(input.code)].push_back(static_cast<int>(e));
      }
    }
    for (Atom output : program.outputs()) {
      if (!output.is_literal()) readers_[at(output.code)].push_back(-1);
    }
  }

  Program run() {
    bool any = false;
    for (std::size_t e = 0; e < body_.equations.size(); ++e) {
      const Equation& own = body_.equations[e];
      if (own.primitive == prim::scan() && runs_in_blocks(own)) any |= rewrite(static_cast<int>(e));
    }
    if (!any) return program_;
    drop_unread();
    return Program(std::move(body_));
  }

 private:
  Equation& equation(int e) { return body_.equations[at(e)]; }

  bool rewrite(int number) {
    Equation& scan = equation(number);
    const ScanView view(scan);
    const std::size_t first = view.first_xs(), carry = view.carry(), xs = view.xs();
    std::vector<SequenceLayout> layouts(xs + view.ys());
    bool any = false;
    auto fits = [&](const std::vector<SequenceLayout>& tried) {
      return view.length() >= min_columns_length && tile_rows(column_bytes(scan, tried)) > 0;
    };
    for (std::size_t i = 0; i < xs; ++i) {
      const std::optional<std::pair<Var, SequenceLayout>> found = source_of(scan.inputs[first + i]);
      if (!found) continue;
      std::vector<SequenceLayout> tried = layouts;
      tried[i] = found->second;
      if (found->second.columns && !fits(tried)) continue;
      layouts = std::move(tried);
      scan.inputs[first + i] = found->first;
      any = true;
    }
    for (std::size_t i = 0; i < view.ys(); ++i) {
      const Var output = scan.outputs[carry + i];
      const int reader = output.dropped() ? -1 : only_transpose(output);
      std::vector<SequenceLayout> tried = layouts;
      tried[xs + i].columns = true;
      if (reader < 0 || !fits(tried)) continue;
      layouts = std::move(tried);
      // The scan now writes the transposed value; the one with steps first is gone.
      scan.outputs[carry + i] = equation(reader).outputs[0];
      definition_[at(scan.outputs[carry + i].id)] = number;
      dropped_.push_back(reader);
      any = true;
    }
    if (!any) return false;
    Ints numbers;
    for (const SequenceLayout& layout : layouts)
      numbers.push_back((layout.columns ? 1 : 0) + (layout.reversed ? 2 : 0));
    scan.attrs = scan.attrs.with(layouts_name, numbers);
    return true;
  }

  // The variable before transposes and reversals of the steps, if a scan can read its layout.
  std::optional<std::pair<Var, SequenceLayout>> source_of(Atom sequence) {
    if (sequence.is_literal()) return std::nullopt;
    std::optional<std::pair<Var, SequenceLayout>> found;
    Source source{sequence.var(), Ints(program_.type(sequence).shape.size())};
    std::iota(source.dimensions.begin(), source.dimensions.end(), 0);
    while (definition_[at(source.var.id)] >= 0) {
      const Equation& maker = equation(definition_[at(source.var.id)]);
      if (maker.primitive == prim::transpose()) {
        const Ints& permutation = maker.attrs.ints("permutation");
        for (int64_t& dimension : source.dimensions) dimension = permutation[at(dimension)];
      } else if (maker.primitive == prim::rev() && maker.attrs.ints("dimensions") == Ints{source.dimensions[0]}) {
        source.reversed = !source.reversed;
      } else {
        break;
      }
      if (maker.inputs[0].is_literal()) break;
      source.var = maker.inputs[0].var();
      if (const std::optional<SequenceLayout> layout = layout_of(source)) found = {source.var, *layout};
    }
    return found;
  }

  // The only reader of a stacked result, if it moves the steps to the end; else -1.
  int only_transpose(Var output) {
    const std::vector<int>& readers = readers_[at(output.id)];
    if (readers.size() != 1 || readers[0] < 0) return -1;
    const Equation& reader = equation(readers[0]);
    if (reader.primitive != prim::transpose() ||
        std::find(dropped_.begin(), dropped_.end(), readers[0]) != dropped_.end())
      return -1;
    // A later scan may read the result with its steps first.
    const Ints& permutation = reader.attrs.ints("permutation");
    for (std::size_t d = 0; d < permutation.size(); ++d) {
      if (permutation[d] != (d + 1 == permutation.size() ? 0 : static_cast<int64_t>(d) + 1)) return -1;
    }
    return leads_to_scans_only(reader.outputs[0]) ? -1 : readers[0];
  }

  // True if every reader of a value is a scan, possibly after transposes and reversals that it does not need.
  bool leads_to_scans_only(Var var) {
    const std::vector<int>& readers = readers_[at(var.id)];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](int e) {
      if (e < 0) return false;
      const Equation& reader = equation(e);
      if (reader.primitive == prim::scan()) return runs_in_blocks(reader);
      return (reader.primitive == prim::transpose() || reader.primitive == prim::rev()) &&
             leads_to_scans_only(reader.outputs[0]);
    });
  }

  void drop_unread() {
    std::vector<bool> read(body_.var_types.size(), false), kept(body_.equations.size(), true);
    for (Atom output : program_.outputs()) {
      if (!output.is_literal()) read[at(output.code)] = true;
    }
    for (int e : dropped_) kept[at(e)] = false;
    for (std::size_t e = body_.equations.size(); e-- > 0;) {
      const Equation& own = body_.equations[e];
      const bool moves = own.primitive == prim::transpose() || own.primitive == prim::rev();
      if (moves && !read[at(own.outputs[0].id)]) kept[e] = false;
      if (!kept[e]) continue;
      for (Atom input : own.inputs) {
        if (!input.is_literal()) read[at(input.code)] = true;
      }
    }
    std::vector<Equation> left;
    for (std::size_t e = 0; e < body_.equations.size(); ++e) {
      if (kept[e]) left.push_back(std::move(body_.equations[e]));
    }
    body_.equations = std::move(left);
  }

  const Program& program_;
  Program::Body body_;
  std::vector<int> definition_;            // by variable: its equation, -1 for an input
  std::vector<std::vector<int>> readers_;  // by variable: equations, -1 for an output of the program
  std::vector<int> dropped_;
};

}  // namespace

bool stretches(const Program& body, const Equation& equation) {
  const Primitive& primitive = equation.primitive;
  return (primitive == prim::broadcast_in_dim() || primitive == prim::reshape() || primitive == prim::squeeze()) &&
         body.type(equation.inputs[0]).size() == 1;
}

std::optional<ElementwiseScan> elementwise_scan(const Equation& scan) {
  const ScanView view(scan);
  const Program& body = view.body();
  ElementwiseScan found;
  bool any = false;
  auto fits = [&](const ArrayType& type) {
    if (type.ref || !has_element(type.dtype) || part_count(type.dtype) != 1) return false;
    if (type.size() == 1) return true;
    if (any && found.shape != type.shape) return false;
    any = true;
    found.shape = type.shape;
    found.widest = std::max({found.widest, static_cast<int64_t>(storage_size(type.dtype)),
                             static_cast<int64_t>(byte_size(computed_type(type.dtype)))});
    return true;
  };
  for (Var input : body.invars()) {
    if (!fits(body.type(input))) return std::nullopt;
  }
  if (!body.constvars().empty()) return std::nullopt;
  for (const Equation& equation : body.equations()) {
    if (!equation.effects.empty() || equation.outputs.size() != 1 || equation.outputs[0].dropped()) return std::nullopt;
    const ArrayType& type = body.type(equation.outputs[0]);
    if (!fits(type)) return std::nullopt;
    if (stretches(body, equation)) continue;
    std::vector<DType> dtypes;
    for (Atom input : equation.inputs) {
      if (!fits(body.type(input))) return std::nullopt;
      dtypes.push_back(body.type(input).dtype);
    }
    if (moves_elements(equation.primitive) || is_reduction(equation.primitive)) return std::nullopt;
    if (!is_elementwise(equation.primitive, dtypes, type.dtype)) return std::nullopt;
  }
  if (!any) return std::nullopt;
  // Each carry stays a scalar or an array.
  for (std::size_t i = 0; i < view.carry(); ++i) {
    if (body.type(body.outputs()[i]).size() != body.type(view.carry(body.invars())[i]).size()) return std::nullopt;
  }
  return found;
}

bool runs_in_blocks(const Equation& scan) {
  const ScanView view(scan);
  const Program& body = view.body();
  if (view.length() < 1 || body.equations().size() > max_equations) return false;
  int functions = 0;
  for (const Equation& equation : body.equations()) functions += is_expensive(equation.primitive) ? 1 : 0;
  if (functions > max_functions) return false;
  const std::optional<ElementwiseScan> found = elementwise_scan(scan);
  if (!found || element_count(found->shape) <= max_in_registers) return false;
  // Every block would write a stacked scalar.
  for (std::size_t i = view.carry(); i < body.outputs().size(); ++i) {
    if (body.type(body.outputs()[i]).size() == 1) return false;
  }
  return true;
}

int64_t block_elements(const Equation& scan) {
  if (const int64_t bytes = column_bytes(scan, layouts_of(scan)); bytes > 0) return tile_rows(bytes);
  const int64_t size = element_count(elementwise_scan(scan)->shape);
  constexpr int64_t least = 128, most = 1024, parts = 16;  // parts: for the threads
  return std::clamp((size / parts + least - 1) / least * least, least, most);
}

std::vector<SequenceLayout> layouts_of(const Equation& scan) {
  const ScanView view(scan);
  std::vector<SequenceLayout> layouts(view.xs() + view.ys());
  if (!scan.attrs.has(layouts_name)) return layouts;
  const Ints& numbers = scan.attrs.ints(layouts_name);
  for (std::size_t i = 0; i < layouts.size(); ++i) layouts[i] = {(numbers[i] & 1) != 0, (numbers[i] & 2) != 0};
  return layouts;
}

Program read_columns(const Program& program) { return Rewriter(program).run(); }

}  // namespace capibara::cpu
