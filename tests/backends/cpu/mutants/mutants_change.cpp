// The changes that make mutants: a program is retraced with one equation, operand or reader changed.
#include "backends/cpu/mutants/mutants.h"

#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/trace/stage.h"

#include <capibara/lax.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace capibara::mutants {

namespace lax = jax::lax;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Array number(DType dtype, double value) {
  return random_programs::array_of(ArrayType{{}, dtype, false, false, {}}, {value, 0});
}

bool is_plain(DType dtype) { return is_integer(dtype) || is_floating(dtype) || is_bool(dtype); }

// An equation about to be traced.
struct Site {
  Primitive& primitive;
  Arrays& operands;
  Attrs& attrs;
  const std::vector<bool>& literals;  // which operands are literals
  const Arrays& pool;                 // all values so far
  Dice& dice;

  std::size_t operand() const {
    if (operands.empty()) throw Unfit{};
    return static_cast<std::size_t>(dice.below(static_cast<int64_t>(operands.size())));
  }
};

bool same_type(const Array& a, const Array& b) { return a.shape() == b.shape() && a.dtype() == b.dtype(); }

void swap_operands(Site& site) {
  const std::size_t i = site.operand();
  for (std::size_t j = 0; j < site.operands.size(); ++j) {
    if (j == i || !same_type(site.operands[i], site.operands[j])) continue;
    std::swap(site.operands[i], site.operands[j]);
    return;
  }
  throw Unfit{};
}

void repeat_operand(Site& site) {
  const std::size_t i = site.operand();
  for (std::size_t j = 0; j < site.operands.size(); ++j) {
    if (j == i || !same_type(site.operands[i], site.operands[j])) continue;
    site.operands[i] = site.operands[j];
    return;
  }
  throw Unfit{};
}

void cast(Site& site) {
  Array& x = site.operands[site.operand()];
  if (!is_plain(x.dtype())) throw Unfit{};
  static const std::vector<DType> floats = {DType::float16, DType::bfloat16, DType::float64, DType::float32,
                                            DType::int32,   DType::int8,     DType::uint8,   DType::bool_};
  static const std::vector<DType> integers = {DType::int8,    DType::uint8, DType::uint32, DType::int64,
                                              DType::float32, DType::int16, DType::bool_};
  const DType between = site.dice.pick(is_floating(x.dtype()) ? floats : integers);
  if (between == x.dtype()) throw Unfit{};
  x = lax::convert_element_type(lax::convert_element_type(x, between), x.dtype());
}

void negate(Site& site) {
  Array& x = site.operands[site.operand()];
  if (is_bool(x.dtype()))
    x = lax::bitwise_not(x);
  else if (is_plain(x.dtype()) || is_complex(x.dtype()))
    x = lax::neg(x);
  else
    throw Unfit{};
}

// The same shape, with elements in another order.
void permute(Site& site) {
  Array& x = site.operands[site.operand()];
  if (x.ndim() < 2) throw Unfit{};
  Ints order(static_cast<std::size_t>(x.ndim()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto d = static_cast<std::size_t>(site.dice.below(x.ndim() - 1));
  std::swap(order[d], order.back());
  x = lax::reshape(lax::transpose(x, order), x.shape());
}

void reverse(Site& site) {
  Array& x = site.operands[site.operand()];
  if (x.ndim() == 0) throw Unfit{};
  x = lax::rev(x, {site.dice.below(x.ndim())});
}

const Array& another(Site& site, const Array& x) {
  std::vector<const Array*> found;
  for (const Array& other : site.pool) {
    if (same_type(other, x)) found.push_back(&other);
  }
  if (found.empty()) throw Unfit{};
  return *site.dice.pick(found);
}

// Replaces an operand by one from another part of the program, or by a value computed from one.
void take_another(Site& site) {
  Array& x = site.operands[site.operand()];
  x = another(site, x);
}
void mix(Site& site) {
  Array& x = site.operands[site.operand()];
  const Array& y = another(site, x);
  const bool logical = is_bool(x.dtype());
  switch (site.dice.below(3)) {
    case 0:
      x = logical ? lax::bitwise_xor(x, y) : lax::add(x, y);
      break;
    case 1:
      x = logical ? lax::bitwise_and(x, y) : lax::mul(x, y);
      break;
    default:
      x = logical ? lax::bitwise_or(x, y) : lax::max(y, x);
  }
}

// Replaces a literal by another number, or combines an operand with one.
void change_constant(Site& site) {
  const std::size_t i = site.operand();
  Array& x = site.operands[i];
  if (!is_plain(x.dtype())) throw Unfit{};
  static const std::vector<double> real = {0.0, -0.0, 1, -1, 2, 0.5, 1e-5, -1e9, 1e9, -3e38, infinity, -infinity, nan},
                                   whole = {0, 1, 2, 3, 5, 100, 127};
  double value = is_floating(x.dtype()) ? site.dice.pick(real) : site.dice.pick(whole);
  if (is_bool(x.dtype()))
    value = site.dice.chance(50) ? 1 : 0;
  else if (is_integer(x.dtype()) && is_signed(x.dtype()) && site.dice.chance(30))
    value = -value;
  const Array constant = number(x.dtype(), value), spread = lax::broadcast(constant, x.shape());
  if (site.literals[i])
    x = constant;
  else if (is_bool(x.dtype()))
    x = value == 1 ? lax::bitwise_or(x, spread) : lax::bitwise_and(x, spread);
  else
    x = site.dice.chance(50) ? lax::add(x, spread) : site.dice.chance(50) ? lax::mul(x, spread) : lax::max(x, spread);
}

// Puts NaN, an infinity or a zero in place of one element, or of a row.
void poison(Site& site) {
  Array& x = site.operands[site.operand()];
  if (!is_floating(x.dtype()) || x.size() == 0) throw Unfit{};
  static const std::vector<double> values = {nan, infinity, -infinity, -0.0, 0.0};
  const Array value = lax::broadcast(number(x.dtype(), site.dice.pick(values)), x.shape());
  Array is_there = lax::broadcast(number(DType::bool_, 1), x.shape());
  const bool row = x.ndim() > 1 && site.dice.chance(30);
  for (int64_t d = row ? 1 : 0; d < x.ndim(); ++d) {
    const Array place = number(DType::int32, static_cast<double>(site.dice.below(x.shape(d))));
    const Array index = lax::broadcasted_iota(DType::int32, x.shape(), d);
    is_there = lax::bitwise_and(is_there, lax::eq(index, lax::broadcast(place, x.shape())));
  }
  x = lax::select(is_there, value, x);
}

// Another operation with the same operands.
void change_operation(Site& site) {
  static const std::vector<std::vector<std::string>> families = {
      {"lt", "le", "gt", "ge", "eq", "ne"},
      {"add", "sub", "mul", "max", "min", "div"},
      {"and", "or", "xor"},
      {"reduce_max", "reduce_min"},
      {"reduce_and", "reduce_or"},
      {"exp", "tanh", "abs", "neg", "sign", "logistic", "floor", "square"},
      {"cummax", "cummin"},
      {"cumsum", "cumprod", "cumlogsumexp"},
      {"rsqrt", "sqrt", "log", "log1p"},
      {"argmax", "argmin"},
      {"reduce_window_max", "reduce_window_min"},
      {"lt_to", "le_to"},
      {"scatter-add", "scatter-mul", "scatter-min", "scatter-max"}};
  for (const auto& family : families) {
    if (std::find(family.begin(), family.end(), site.primitive.name()) == family.end()) continue;
    const std::string& name = site.dice.pick(family);
    if (site.primitive.is(name)) throw Unfit{};
    // Members of a family share their attributes; only add and sub have none to copy from.
    if (family[0] == "exp" && (name == "exp" || name == "tanh" || name == "logistic") != site.attrs.has("accuracy"))
      throw Unfit{};
    if (family[0] == "rsqrt") site.attrs = Attrs{{"accuracy", Attr()}};
    site.primitive = primitive(name);
    return;
  }
  if (site.primitive.is("reduce_sum")) {
    site.attrs = Attrs{{"axes", site.attrs["axes"]}};
    site.primitive = primitive(site.dice.chance(50) ? "reduce_max" : "reduce_prod");
    return;
  }
  throw Unfit{};
}

// Another axis, direction or permutation; squares and loops keep their types.
void change_attribute(Site& site) {
  std::vector<std::string> names;
  for (const auto& [name, attr] : site.attrs.entries()) {
    const bool known = name == "axes" || name == "axis" || name == "reverse" || name == "dimension" ||
                       name == "permutation" || name == "dimensions" || name == "broadcast_dimensions" ||
                       name == "dimension_numbers" || name == "is_stable" || name == "num_keys" || name == "unroll" ||
                       name == "window_dimensions" || name == "window_strides" || name == "index_dtype" ||
                       name == "new_sizes" || name == "mode";
    if (known && !attr.is_none()) names.push_back(name);
  }
  if (names.empty()) throw Unfit{};
  const std::string& name = site.dice.pick(names);
  const Attr& attr = site.attrs[name];
  const int64_t rank = site.operands.empty() ? 0 : site.operands[0].ndim();
  Attr next;
  if (const bool* flag = attr.get_if<bool>())
    next = !*flag;
  else if (attr.get_if<int64_t>() && name == "unroll")
    next = site.dice.between(1, 5);
  else if (attr.get_if<int64_t>())
    next = site.dice.below(std::max<int64_t>(1, name == "num_keys" ? 3 : rank));
  else if (const Ints* list = attr.get_if<Ints>()) {
    Ints copy = *list;
    if (copy.empty()) throw Unfit{};
    int64_t& entry = copy[static_cast<std::size_t>(site.dice.below(static_cast<int64_t>(copy.size())))];
    if (name.rfind("window", 0) == 0)
      entry = site.dice.between(1, 3);
    else if (copy.size() > 1 && site.dice.chance(60))
      std::swap(entry, copy.back());
    else
      entry = site.dice.below(std::max<int64_t>(1, rank));
    if (name == "axes") std::sort(copy.begin(), copy.end());
    next = copy;
  } else if (const auto* numbers = attr.get_if<DotDimensionNumbers>()) {
    DotDimensionNumbers copy = *numbers;
    Ints& contracting = site.dice.chance(50) ? copy.lhs_contracting : copy.rhs_contracting;
    if (contracting.empty()) throw Unfit{};
    contracting[0] = site.dice.below(std::max<int64_t>(1, rank));
    next = copy;
  } else if (const auto* text = attr.get_if<std::string>(); text && name == "mode") {
    static const std::vector<std::string> modes = {"clip", "fill_or_drop", "promise_in_bounds"};
    next = site.dice.pick(modes);
    if (*next.get_if<std::string>() == "promise_in_bounds") throw Unfit{};  // then out-of-bounds values are undefined
  } else {
    throw Unfit{};
  }
  if (next == attr) throw Unfit{};
  site.attrs = site.attrs.with(name, next);
}

using Apply = void (*)(Site&);
const std::vector<std::pair<std::string, Apply>>& operand_changes() {
  static const std::vector<std::pair<std::string, Apply>> all = {{"swap", swap_operands},
                                                                 {"repeat", repeat_operand},
                                                                 {"cast", cast},
                                                                 {"negate", negate},
                                                                 {"permute", permute},
                                                                 {"reverse", reverse},
                                                                 {"another", take_another},
                                                                 {"mix", mix},
                                                                 {"constant", change_constant},
                                                                 {"poison", poison},
                                                                 {"operation", change_operation},
                                                                 {"attribute", change_attribute}};
  return all;
}

// Retraces a program with one change.
class Tracer {
 public:
  explicit Tracer(const Change& change) : change_(change), dice_(change.seed) {}

  Arrays operator()(const Program& program, std::span<const Array> inputs, bool nested = false) {
    Arrays values(static_cast<std::size_t>(program.var_count())), pool;
    auto bind = [&](Var var, const Array& value) {
      if (var.dropped()) return;
      values[static_cast<std::size_t>(var.id)] = value;
      pool.push_back(value);
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) bind(program.invars()[i], inputs[i]);
    for (std::size_t i = 0; i < program.constants().size(); ++i) bind(program.constvars()[i], program.constants()[i]);
    auto value_of = [&](Atom atom) {
      return atom.is_literal() ? program.literal(atom) : values[static_cast<std::size_t>(atom.code)];
    };
    for (const Equation& equation : program.equations()) {
      Primitive primitive = equation.primitive;
      Arrays operands;
      std::vector<bool> literals;
      for (Atom input : equation.inputs) {
        operands.push_back(value_of(input));
        literals.push_back(input.is_literal());
      }
      Attrs attrs = equation.attrs;
      const bool here = next_++ == change_.place, loops = primitive == prim::while_();
      if (here) {
        Site site{primitive, operands, attrs, literals, pool, dice_};
        const Arrays before = operands;
        apply(site);
        // The quotient of two equal rounding errors is meaningless.
        if (primitive == prim::div() && operands[0].body() == operands[1].body()) throw Unfit{};
        // A loop that terminates must still terminate.
        for (std::size_t i = 0; loops && i < before.size(); ++i) {
          if (!is_inexact(before[i].dtype()) && before[i].body() != operands[i].body()) throw Unfit{};
        }
      }
      // The region of a named operation must agree with its name.
      const bool named = primitive->traits.monoid.has_value() || change_.keeps_regions;
      if (!loops && !named) attrs = rewrite_programs(attrs, [&](const Program& inner) { return traced(inner); });
      agree(equation, operands, literals);
      Arrays outputs = capibara::bind(primitive, operands, attrs);
      if (here) readers(outputs, nested);
      for (std::size_t i = 0; i < outputs.size(); ++i) bind(equation.outputs[i], outputs[i]);
    }
    Arrays results;
    for (Atom output : program.outputs()) results.push_back(value_of(output));
    return results;
  }

  bool done() const { return done_; }
  const Arrays& more() const { return more_; }  // results that the original program did not have

 private:
  void apply(Site& site) {
    for (const auto& [name, apply] : operand_changes()) {
      if (name != change_.name) continue;
      apply(site);
      done_ = true;
    }
  }

  // Adds a reader of an equation's outputs: a result of the program, or one more equation.
  void readers(const Arrays& outputs, bool nested) {
    const bool plain = change_.name == "result", computed = change_.name == "reader";
    if (!plain && !computed) return;
    if (nested || outputs.empty()) throw Unfit{};
    const Array& x = dice_.pick(outputs);
    if (is_key(x.dtype())) throw Unfit{};
    done_ = true;
    if (plain)
      more_.push_back(x);
    else if (is_floating(x.dtype()))
      more_.push_back(dice_.chance(50) ? lax::tanh(x) : lax::reduce_max(x, {}));
    else
      more_.push_back(lax::eq(x, x));
  }

  Program traced(const Program& inner) {
    return stage([&](std::span<const Array> in) { return (*this)(inner, in, true); }, inner.input_types(), inner.name())
        .program;
  }

  // After a change of types, converts a literal to the type of the other operands.
  static void agree(const Equation& equation, Arrays& operands, const std::vector<bool>& literals) {
    if (equation.primitive->traits.elementwise != Elementwise::any_scalar || operands.size() != 2) return;
    if (operands[0].dtype() == operands[1].dtype()) return;
    const std::size_t follows = literals[0] ? 0 : 1;
    operands[follows] = lax::convert_element_type(operands[follows], operands[1 - follows].dtype());
  }

  const Change& change_;
  Dice dice_;
  int next_ = 0;
  bool done_ = false;
  Arrays more_;
};

}  // namespace

const std::vector<std::string>& change_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"result", "reader"};
    for (const auto& [name, apply] : operand_changes()) all.push_back(name);
    return all;
  }();
  return names;
}

Program changed(const Program& program, const Types& inputs, const Change& change) {
  Tracer tracer(change);
  Program result = stage(
                       [&](std::span<const Array> in) {
                         Arrays outputs = tracer(program, in);
                         outputs.insert(outputs.end(), tracer.more().begin(), tracer.more().end());
                         return outputs;
                       },
                       inputs, program.name())
                       .program;
  if (!tracer.done() && !change.name.empty()) throw Unfit{};
  return result;
}

}  // namespace capibara::mutants
