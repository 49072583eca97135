// Programs as jaxpr text, laid out as by JAX.
#include <capibara/primitive.h>

#include "core/array/format.h"
#include "program/ir/explicit_types.h"
#include "program/ir/handles.h"
#include "program/ir/layout.h"
#include "program/ir/nested.h"
#include "program/ir/print_attr.h"

#include <deque>
#include <map>
#include <set>
#include <unordered_map>

namespace capibara {

namespace {

using layout::Doc;

using ProgramPtr = std::shared_ptr<const Program>;

std::string alphabetic(int n) {
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('a' + n % 26));
    n /= 26;
  } while (n);
  return text;
}

// Attributes that JAX does not show.
bool hidden(const Primitive& primitive, const std::string& name, const Attr& attr) {
  static const std::set<std::string> never = {"out_types", "with_tangent"};
  if (never.count(name)) return true;
  if (name == "accuracy") return attr.is_none();
  if (primitive == prim::mul() && name == "out_dtype") return attr.is_none();
  if (primitive == prim::convert_element_type() && name == "sharding") return true;
  if (primitive == prim::broadcast_in_dim()) {
    if (name == "shape" || name == "sharding") return true;
    if (const Ints* dims = attr.get_if<Ints>(); name == "broadcast_dimensions" && dims) return dims->empty();
  }
  if (primitive == prim::all_to_all() && name == "axis_size") return true;
  if (primitive == prim::reshard()) return true;
  if (primitive == prim::dot_general()) return attr.is_none() || name == "out_sharding";
  if (primitive == prim::jit()) {
    if (name == "jaxpr" || name == "name") return false;
    if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>(); name == "donated_invars" && list) {
      for (const Attr& entry : **list) {
        if (const bool* bit = entry.get_if<bool>(); bit && *bit) return false;
      }
    }
    return true;
  }
  if (name == "num_consts" && (primitive == prim::custom_jvp_call() || primitive == prim::custom_vjp_call())) {
    const int64_t* count = attr.get_if<int64_t>();
    return count && *count == 0;
  }
  return false;
}

std::string shown_name(const Primitive& primitive, const std::string& name) {
  if (name == "jvp_jaxpr_fun" && primitive == prim::custom_jvp_call()) return "jvp";
  if (name == "fwd_jaxpr_thunk" && primitive == prim::custom_vjp_call()) return "fwd";
  return name;
}

class Printer {
 public:
  Doc print(const Program& program) {
    find_shared(program);
    mark_unused_outputs(program);
    std::vector<Doc> docs;
    for (const Program& shared : shared_order_) {
      docs.push_back(layout::concat(
          {concat("let ", shared_names_.at(shared.identity()), " = "), skeleton(shared), " in", layout::line_break()}));
    }
    docs.push_back(skeleton(program));
    return layout::concat(std::move(docs));
  }

 private:
  using VarKey = std::pair<const void*, int32_t>;

  // Programs that occur twice, or are nested and long, are printed first under a name.
  void find_shared(const Program& top) {
    std::unordered_map<const void*, int> counts;
    std::unordered_map<const void*, std::string> names;
    std::vector<Program> order;
    std::deque<Program> queue = {top};
    std::size_t visited = 0;
    while (!queue.empty()) {
      Program program = queue.front();
      queue.pop_front();
      int& count = counts[program.identity()];
      if (count == 0) order.push_back(program);
      ++count;
      if (program.identity() != top.identity() && program.equations().size() > 10) ++count;
      // A repeated program is counted, but its inside only as often as needed to see that it is shared.
      if (++visited > 100000) continue;
      for (const Equation& equation : program.equations()) {
        const Attr* name = equation.attrs.find("name");
        const std::string* text = name ? name->get_if<std::string>() : nullptr;
        for_each_program(equation.attrs, [&](const Program& inner) {
          queue.push_back(inner);
          if (text) names.try_emplace(inner.identity(), strip(*text));
        });
      }
    }
    std::map<std::string, int> used;
    for (const Program& program : order) {
      if (counts[program.identity()] == 1) continue;
      auto it = names.find(program.identity());
      std::string name = it == names.end() ? "jaxpr" : it->second;
      if (int count = used[name]++; count > 0) {
        name += std::to_string(count);
        ++used[name];
      }
      taken_.insert(name);
      shared_names_[program.identity()] = name;
      shared_order_.push_back(program);
    }
  }

  static std::string strip(const std::string& name) {
    std::size_t begin = name.find_first_not_of("<>"), end = name.find_last_not_of("<>");
    return begin == std::string::npos ? "" : name.substr(begin, end - begin + 1);
  }

  void mark_unused_outputs(const Program& program) {
    std::vector<bool> used(static_cast<std::size_t>(program.var_count()), false);
    auto use = [&](Atom atom) {
      if (!atom.is_literal()) used[static_cast<std::size_t>(atom.code)] = true;
    };
    for (const Equation& equation : program.equations()) {
      for (Atom input : equation.inputs) use(input);
    }
    for (Atom output : program.outputs()) use(output);
    for (const Equation& equation : program.equations()) {
      for (Var output : equation.outputs) {
        if (!output.dropped() && !used[static_cast<std::size_t>(output.id)])
          names_[{program.identity(), output.id}] = "_";
      }
    }
  }

  const std::string& name(const Program& program, Var var) {
    static const std::string dropped = "_";
    if (var.dropped()) return dropped;
    auto [it, added] = names_.try_emplace({program.identity(), var.id});
    if (added) {
      do {
        it->second = alphabetic(next_++);
      } while (taken_.count(it->second));
    }
    return it->second;
  }

  // Inputs and outputs of a call print under the names of its operands and results.
  template <class Vars, class Others>
  void suggest(const Program& inner, const Vars& vars, const Program& outer, const Others& like) {
    if (vars.size() != like.size()) return;
    std::set<int32_t> seen;
    for (std::size_t i = 0; i < vars.size(); ++i) {
      Atom from = like[i], to = vars[i];
      if (from.is_literal() || to.is_literal() || !seen.insert(from.code).second) continue;
      VarKey key{inner.identity(), to.code};
      if (!names_.count(key))
        names_[key] = name(outer, from.var());
      else
        seen.erase(from.code);
    }
  }

  Doc atom(const Program& program, Atom value) {
    if (!value.is_literal()) return name(program, value.var());
    const Array& literal = program.literal(value);
    return concat(format_scalar(literal.dtype(), literal.raw_data()), ":", short_string(literal.type()));
  }

  Doc blanks(std::vector<Doc> docs, const char* separator = "") {
    return layout::nest(
        2, layout::group(layout::join(layout::concat({separator, layout::group(layout::line_break())}), docs)));
  }

  Doc binders(const Program& program, const std::vector<Var>& vars, const Types* dropped_types = nullptr) {
    std::vector<Doc> docs;
    for (std::size_t i = 0; i < vars.size(); ++i) {
      std::string type = vars[i].dropped() ? (dropped_types ? short_string((*dropped_types)[i]) : "*")
                                           : short_string(program.type(vars[i]));
      docs.push_back(concat(name(program, vars[i]), ":", type));
    }
    return blanks(std::move(docs));
  }

  Doc nested(const Program& program) {
    auto it = shared_names_.find(program.identity());
    if (it != shared_names_.end()) return it->second;
    return skeleton(program);
  }

  Doc value(const Equation& equation, const std::string& key, const Attr& attr) {
    if (equation.primitive->print_attr) {
      if (std::optional<std::string> text = equation.primitive->print_attr(key, attr)) return *text;
    }
    if (attr.get_if<ProgramPtr>()) return nested(**attr.get_if<ProgramPtr>());
    const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
    if (list && !(*list)->empty() && (*list)->front().get_if<ProgramPtr>()) {
      std::vector<Doc> docs;
      for (const Attr& entry : **list) docs.push_back(nested(**entry.get_if<ProgramPtr>()));
      return layout::group(layout::concat(
          {layout::nest(2, layout::concat({"(", layout::line_break(""), layout::join(layout::line_break(), docs)})),
           layout::line_break(""), ")"}));
    }
    return attr_text(attr);
  }

  Doc attributes(const Equation& equation) {
    std::vector<const Attrs::Entry*> shown;
    for (const Attrs::Entry& entry : equation.attrs.entries()) {
      if (hidden(equation.primitive, entry.first, entry.second)) continue;
      bool name_first = entry.first == "name" && equation.attrs.entries().size() > 1;
      shown.insert(name_first ? shown.begin() : shown.end(), &entry);
    }
    if (shown.empty()) return "";
    std::vector<Doc> docs;
    for (const Attrs::Entry* entry : shown) {
      docs.push_back(layout::concat(
          {shown_name(equation.primitive, entry->first) + "=", value(equation, entry->first, entry->second)}));
    }
    return layout::group(layout::concat(
        {layout::nest(2, layout::concat({"[", layout::line_break(""), layout::join(layout::line_break(), docs)})),
         layout::line_break(""), "]"}));
  }

  // Reads and writes of refs have a notation of their own.
  std::optional<Doc> ref_operation(const Program& program, const Equation& equation) {
    if (equation.inputs.empty()) return std::nullopt;
    Doc whole = layout::concat({atom(program, equation.inputs[0]), "[...]"});
    if (equation.primitive == prim::get() && equation.inputs.size() == 1) {
      return layout::concat({binders(program, equation.outputs), " <- ", whole});
    }
    if (equation.primitive == prim::swap() && equation.inputs.size() == 2) {
      Doc written = atom(program, equation.inputs[1]);
      bool ignored = equation.outputs[0].dropped() || name(program, equation.outputs[0]) == "_";
      if (ignored) return layout::concat({whole, " <- ", written});
      return layout::concat({binders(program, equation.outputs), ", ", whole, " <- ", whole, ", ", written});
    }
    if (equation.primitive == prim::addupdate() && equation.inputs.size() == 2) {
      return layout::concat({whole, " += ", atom(program, equation.inputs[1])});
    }
    return std::nullopt;
  }

  Doc equation(const Program& program, const Equation& equation) {
    if (std::optional<Doc> special = ref_operation(program, equation)) return *special;
    std::vector<Doc> docs;
    if (!equation.outputs.empty()) {
      Types types;
      for (Var output : equation.outputs) {
        if (output.dropped()) {
          Types inputs;
          for (Atom input : equation.inputs) inputs.push_back(program.type(input));
          types = any_splits(inputs) || requested_sharding(equation.attrs)
                      ? explicit_types(equation.primitive, inputs, equation.attrs).types
                      : equation.primitive->type(inputs, equation.attrs).types;
          break;
        }
      }
      docs.push_back(binders(program, equation.outputs, &types));
      docs.push_back(" = ");
    }
    if (equation.primitive == prim::jit()) {
      const Program& inner = equation.attrs.program("jaxpr");
      if (!shared_names_.count(inner.identity())) {
        suggest(inner, inner.invars(), program, equation.inputs);
        suggest(inner, inner.outputs(), program, equation.outputs);
      }
    }
    docs.push_back(equation.primitive.name());
    docs.push_back(attributes(equation));
    docs.push_back(" ");
    std::vector<Doc> operands;
    for (Atom input : equation.inputs) operands.push_back(atom(program, input));
    docs.push_back(blanks(std::move(operands)));
    return layout::concat(std::move(docs));
  }

  Doc skeleton(const Program& program) {
    Doc constants = binders(program, program.constvars());
    Doc inputs = binders(program, program.invars());
    std::vector<Doc> equations;
    for (const Equation& one : program.equations()) equations.push_back(equation(program, one));
    std::vector<Doc> outputs;
    for (Atom output : program.outputs()) outputs.push_back(atom(program, output));
    bool single = outputs.size() == 1;
    return layout::group(layout::concat(
        {layout::nest(
             2, layout::concat({"{ lambda ", constants, "; ", inputs, ". let",
                                layout::nest(2, layout::concat({layout::line_break(),
                                                                layout::join(layout::line_break("; "), equations)})),
                                layout::line_break(), "in (", blanks(std::move(outputs), ","), single ? ",)" : ")"})),
         " }"}));
  }

  std::map<VarKey, std::string> names_;
  std::set<std::string> taken_;
  std::unordered_map<const void*, std::string> shared_names_;
  std::vector<Program> shared_order_;
  int next_ = 0;
};

}  // namespace

std::string Program::to_string() const {
  if (!defined()) return "<empty program>";
  return Printer().print(*this).render(80);
}

}  // namespace capibara
