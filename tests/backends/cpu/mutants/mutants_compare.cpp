// Computes how far the results of a mutant may differ from the reference backend's, and compares them.
#include "backends/cpu/mutants/mutants.h"

#include "backends/backend.h"
#include "core/array/element.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/trace/stage.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include <cmath>
#include <cstring>
#include <set>

namespace capibara::mutants {

namespace lax = jax::lax;

namespace {

std::size_t at(int64_t position) { return static_cast<std::size_t>(position); }

// False for operations whose results are exact, or come from nested programs.
bool is_rounded(const Primitive& primitive) {
  static const std::set<std::string> exact = {"neg",
                                              "abs",
                                              "sign",
                                              "max",
                                              "min",
                                              "select_n",
                                              "clamp",
                                              "copy",
                                              "stop_gradient",
                                              "convert_element_type",
                                              "real",
                                              "imag",
                                              "complex",
                                              "conj",
                                              "floor",
                                              "ceil",
                                              "round",
                                              "reduce_max",
                                              "reduce_min",
                                              "cummax",
                                              "cummin",
                                              "reduce_window_max",
                                              "reduce_window_min",
                                              "sort",
                                              "gather",
                                              "scatter",
                                              "iota",
                                              "top_k",
                                              "dynamic_slice",
                                              "dynamic_update_slice",
                                              "bitcast_convert_type",
                                              "select_and_gather_add",
                                              "reduce_precision",
                                              "optimization_barrier",
                                              "random_bits",
                                              "squeeze",
                                              "expand_dims",
                                              "scatter-min",
                                              "scatter-max",
                                              "reduce",
                                              "reduce_window",
                                              "sort_general",
                                              "select_and_scatter",
                                              "nextafter",
                                              "split",
                                              "tile",
                                              "rev",
                                              "empty"};
  const Traits& traits = primitive->traits;
  return traits.moves == Moves::no && traits.control == Control::none && exact.count(primitive.name()) == 0;
}

// True for sums, which may fuse unrounded products and may sum in another order.
bool takes_in(const Primitive& primitive) {
  const Combines combines = primitive->traits.combines;
  return primitive == prim::add() || primitive == prim::sub() || primitive == prim::add_any() ||
         primitive == prim::dot_general() || primitive == prim::conv_general_dilated() ||
         (combines != Combines::nothing && combines != Combines::operands && is_rounded(primitive));
}

// The approximate number of terms in a sum.
int64_t terms(const Equation& equation, const Arrays& operands, const Arrays& outputs) {
  if (operands.empty() || outputs.empty()) return 1;
  const int64_t size = operands[0].size();
  switch (equation.primitive->traits.combines) {
    case Combines::axes:
      return size / std::max<int64_t>(1, outputs[0].size());
    case Combines::prefixes:
      return operands[0].shape(equation.attrs.integer("axis"));
    case Combines::updates:
      return operands.back().size();
    case Combines::windows:
      return 64;
    default:
      break;
  }
  if (equation.primitive == prim::conv_general_dilated()) return operands[1].size();
  if (equation.primitive != prim::dot_general()) return 1;
  int64_t count = 1;
  for (int64_t d : equation.attrs.get<DotDimensionNumbers>("dimension_numbers").lhs_contracting)
    count *= operands[0].shape(d);
  return count;
}

class Shaker {
 public:
  explicit Shaker(uint64_t seed) : dice_(seed), snaps_(seed % 3 == 0) {}

  Program operator()(const Program& program) {
    return stage([&](std::span<const Array> in) { return run(program, in); }, program.input_types(), program.name())
        .program;
  }

 private:
  // 16-bit numbers accumulate in 32 bits: a sum of many terms has the uncertainty of those.
  Array moved(const Array& x, int64_t terms = 1) {
    if (is_complex(x.dtype())) return lax::complex(moved(lax::real(x), terms), moved(lax::imag(x), terms));
    if (!is_floating(x.dtype()) || x.size() == 0) return x;
    const double own = finfo(x.dtype()).eps,
                 eps = std::max(own, std::min(own, 0x1p-23) * static_cast<double>(terms) / 8);
    std::vector<double> factors(at(x.size()));
    for (double& factor : factors) factor = 1 + eps * static_cast<double>(dice_.between(-1, 1));
    return lax::mul(x, random_programs::array_of(ArrayType{x.shape(), x.dtype(), false, false, {}}, factors));
  }

  // A sum that consists only of rounding errors may be zero as well.
  Array snapped(const Equation& equation, const Arrays& operands, const Array& sum) {
    if (!snaps_ || !is_floating(sum.dtype()) || sum.size() == 0) return sum;
    Array sizes;
    if (equation.primitive == prim::reduce_sum()) {
      sizes = capibara::bind(equation.primitive, Arrays{lax::abs(operands[0])}, equation.attrs)[0];
    } else if ((equation.primitive == prim::add() || equation.primitive == prim::sub()) &&
               operands[0].shape() == operands[1].shape()) {
      sizes = lax::add(lax::abs(operands[0]), lax::abs(operands[1]));
    } else {
      return sum;
    }
    const double eps = 8 * finfo(sum.dtype()).eps;
    const Array least = random_programs::array_of(ArrayType{{}, sum.dtype(), false, false, {}}, {eps});
    const Array is_nothing = lax::lt(lax::abs(sum), lax::mul(sizes, lax::broadcast(least, sum.shape())));
    return lax::select(is_nothing, lax::zeros_like(sum), sum);
  }

  Arrays run(const Program& program, std::span<const Array> inputs) {
    Arrays values(at(program.var_count()));
    std::vector<bool> is_computed(values.size(), false);
    for (std::size_t i = 0; i < inputs.size(); ++i) values[at(program.invars()[i].id)] = inputs[i];
    for (std::size_t i = 0; i < program.constants().size(); ++i)
      values[at(program.constvars()[i].id)] = program.constants()[i];
    auto value_of = [&](Atom atom) { return atom.is_literal() ? program.literal(atom) : values[at(atom.code)]; };
    for (const Equation& equation : program.equations()) {
      Arrays operands;
      const bool sums = takes_in(equation.primitive),
                 elementwise = equation.primitive->traits.elementwise != Elementwise::no;
      for (Atom input : equation.inputs) {
        const bool shakes = sums && !input.is_literal() && (!elementwise || is_computed[at(input.code)]);
        operands.push_back(shakes ? moved(value_of(input)) : value_of(input));
      }
      const Attrs attrs = rewrite_programs(equation.attrs, [&](const Program& inner) { return (*this)(inner); });
      Arrays outputs = capibara::bind(equation.primitive, operands, attrs);
      if (sums && outputs.size() == 1) outputs[0] = snapped(equation, operands, outputs[0]);
      const bool rounds = is_rounded(equation.primitive);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (equation.outputs[i].dropped()) continue;
        values[at(equation.outputs[i].id)] =
            rounds ? moved(outputs[i], terms(equation, operands, outputs)) : outputs[i];
        is_computed[at(equation.outputs[i].id)] = true;
      }
    }
    Arrays results;
    for (Atom output : program.outputs()) results.push_back(value_of(output));
    return results;
  }

  Dice dice_;
  const bool snaps_;
};

std::vector<double> parts_of(const Array& array) {
  const DType part = real_dtype(array.dtype());
  std::vector<double> parts(at(array.size()) * (is_complex(array.dtype()) ? 2 : 1));
  convert_elements(part, array.raw_data(), DType::float64, parts.data(), static_cast<int64_t>(parts.size()));
  return parts;
}

// True if both are NaN, the same infinity, or finite.
bool same_kind(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

std::string shown(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

std::string difference(const Array& got, const Array& want, const Arrays& shaken, bool& informative) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return concat("got ", to_string(got.type()), ", want ", to_string(want.type()));
  if (is_key(got.dtype())) return "";
  const std::vector<double> a = parts_of(got), b = parts_of(want);
  std::vector<std::vector<double>> others;
  for (const Array& each : shaken) others.push_back(parts_of(each));
  const bool inexact = is_inexact(want.dtype());
  double unit = 0, least = 0;
  if (inexact) {
    const FloatInfo info = finfo(real_dtype(want.dtype()));
    unit = info.eps;
    least = info.bits < 32 ? info.smallest_subnormal : info.tiny;
  }
  std::vector<double> spread(b.size(), 0);
  std::vector<bool> sure(b.size(), true);
  double widest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (const auto& other : others) {
      if (!same_kind(b[i], other[i]))
        sure[i] = false;
      else if (std::isfinite(b[i]))
        spread[i] = std::max(spread[i], std::abs(b[i] - other[i]));
    }
    if (sure[i]) widest = std::max(widest, spread[i]);
  }
  // Near the largest finite number, the order of a sum determines which infinity it becomes.
  double greatest = 0;
  for (double x : b) greatest = std::max(greatest, std::isfinite(x) ? std::abs(x) : 0);
  const bool overflows =
      inexact && finfo(real_dtype(want.dtype())).bits >= 32 && greatest > finfo(real_dtype(want.dtype())).max * unit;
  int64_t wrong = 0, first = -1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!sure[i] || (overflows && !std::isfinite(b[i]))) continue;
    informative = true;
    if (a[i] == b[i] && (a[i] != 0 || std::signbit(a[i]) == std::signbit(b[i]) || !inexact)) continue;
    bool agrees = same_kind(a[i], b[i]);
    if (agrees && std::isfinite(b[i])) {
      const double allowed = 16 * spread[i] + 2 * widest + 8 * unit * std::abs(b[i]) + (inexact ? 4 * least : 0);
      agrees = std::abs(a[i] - b[i]) <= allowed;
      // A zero with the same sign under every rounding must have that sign.
      bool zero = inexact && !is_complex(want.dtype()) && a[i] == 0 && b[i] == 0 && widest == 0;
      for (const auto& other : others) zero = zero && other[i] == 0 && std::signbit(other[i]) == std::signbit(b[i]);
      if (zero) agrees = std::signbit(a[i]) == std::signbit(b[i]);
    }
    if (agrees) continue;
    ++wrong;
    if (first < 0) first = static_cast<int64_t>(i);
  }
  if (wrong == 0) return "";
  const auto f = at(first);
  return concat(to_string(got.type()), ": ", wrong, " of ", b.size(), " numbers differ, first number ", first, ": got ",
                shown(a[f]), ", want ", shown(b[f]), "; other roundings are within ", shown(spread[f]), " here and ",
                shown(widest), " anywhere");
}

Array copy_of(const Array& array) {
  Buffer buffer = Buffer::allocate(array.buffer().size());
  if (array.buffer().size() > 0) std::memcpy(buffer.mutable_data(), array.raw_data(), array.buffer().size());
  return Array::from_buffer(array.type(), std::move(buffer));
}

// Inputs that are the same array stay the same array.
Arrays copies(const Arrays& arrays) {
  Arrays result;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::size_t same = 0;
    while (!arrays[same].buffer().same_as(arrays[i].buffer())) ++same;
    result.push_back(same < i ? result[same] : copy_of(arrays[i]));
  }
  return result;
}

Arrays run_plainly(const Program& program, const Arrays& inputs) {
  return backend("reference").compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
}

}  // namespace

Program shaken(const Program& program, uint64_t seed) { return Shaker(seed)(program); }

Comparison compare(const Mutant& mutant) {
  const ConfigScope x64 = jax::enable_x64();
  constexpr uint64_t roundings = 3;
  Arrays want;
  std::vector<Arrays> others;
  try {
    want = run_plainly(mutant.trusted, mutant.inputs);
    for (uint64_t i = 0; i < roundings; ++i)
      others.push_back(run_plainly(shaken(mutant.trusted, mutant.seed * roundings + i), mutant.inputs));
  } catch (const Error&) {
    throw Unfit{};  // the reference backend cannot run it
  }
  Comparison result;
  try {
    const Arrays given = copies(mutant.inputs);
    const Arrays got = backend("cpu").compile_donating(mutant.tried, mutant.donated)->execute(given, mutant.donated);
    if (got.size() != want.size()) return {concat("got ", got.size(), " outputs, want ", want.size()), true};
    for (std::size_t i = 0; i < got.size(); ++i) {
      Arrays shaken_outputs;
      for (const Arrays& other : others) shaken_outputs.push_back(other[i]);
      const std::string text = difference(got[i], want[i], shaken_outputs, result.informative);
      if (!text.empty() && result.text.empty()) result.text = concat("output ", i, ", ", text);
    }
  } catch (const std::exception& error) {
    return {concat("it throws: ", error.what()), true};
  }
  return result;
}

}  // namespace capibara::mutants
