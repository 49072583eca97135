// Derivatives: each jvp against finite differences in 64 bits, and each transpose against the jvp it reverses.
#include "properties/property.h"

#include "lax/rules.h"
#include "transforms/flat.h"

namespace capibara::properties {
namespace {

using Complexes = std::vector<std::complex<double>>;

Complexes elements(const Array& array) {
  if (!is_complex(array.dtype())) {
    std::vector<double> reals = array.to_vector<double>();
    return Complexes(reals.begin(), reals.end());
  }
  return array.to_vector<std::complex<double>>();
}

Arrays moved(const Arrays& point, const Arrays& tangents, double step) {
  Arrays result = point;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (!tangents[i].defined()) continue;
    Complexes x = elements(point[i]), t = elements(tangents[i]);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] += step * t[k];
    result[i] = Values::from(point[i].type(), x);
  }
  return result;
}

// Only 64-bit numbers have enough digits left after the subtraction.
bool is_double(DType dtype) { return dtype == DType::float64 || dtype == DType::complex128; }
bool inexact(DType dtype) { return is_inexact(dtype); }
bool only_doubles(const Call& call) {
  return std::all_of(call.sample.inputs.begin(), call.sample.inputs.end(),
                     [](const ArrayType& t) { return !is_inexact(t.dtype) || is_double(t.dtype); });
}

// Inputs, and a tangent for each inexact one.
struct Point {
  Arrays primals, tangents;
  std::vector<bool> differentiable;
};
Point point_of(const Call& call) {
  Values values(seed_of(call));
  Point point;
  point.primals = prepared(call, values.operands(call.sample));
  for (std::size_t i = 0; i < point.primals.size(); ++i) {
    bool moves = has_tangent(call, i);
    point.differentiable.push_back(moves);
    point.tangents.push_back(moves ? values.direction(point.primals[i].type()) : Array());
  }
  return point;
}

// Eigenvalues come in any order, and the phase of an eigenvector is arbitrary: LAPACK makes its largest component real,
// and there may be several. Returns the outputs of eig at a nearby point, in the order and with the phases of `here`.
Arrays aligned_with(const Arrays& here, Arrays there) {
  const int64_t n = here[0].shape(-1);
  const auto size = static_cast<std::size_t>(n);
  std::vector<Complexes> from, to;
  for (const Array& array : here) from.push_back(elements(array));
  for (const Array& array : there) to.push_back(elements(array));
  std::vector<Complexes> aligned = to;
  for (std::size_t matrix = 0; matrix < from[0].size() / size; ++matrix) {
    std::vector<bool> taken(size, false);
    for (std::size_t j = 0; j < size; ++j) {
      std::size_t nearest = size;
      auto distance = [&](std::size_t k) { return std::abs(to[0][matrix * size + k] - from[0][matrix * size + j]); };
      for (std::size_t k = 0; k < size; ++k) {
        if (!taken[k] && (nearest == size || distance(k) < distance(nearest))) nearest = k;
      }
      taken[nearest] = true;
      aligned[0][matrix * size + j] = to[0][matrix * size + nearest];
      for (std::size_t output = 1; output < from.size(); ++output) {
        auto at = [&](std::size_t row, std::size_t column) { return (matrix * size + row) * size + column; };
        std::size_t largest = 0;
        for (std::size_t row = 0; row < size; ++row) {
          if (std::abs(from[output][at(row, j)]) > std::abs(from[output][at(largest, j)])) largest = row;
        }
        const std::complex<double> was = from[output][at(largest, j)], is = to[output][at(largest, nearest)];
        const std::complex<double> turn = was / std::abs(was) * std::abs(is) / is;
        for (std::size_t row = 0; row < size; ++row) aligned[output][at(row, j)] = to[output][at(row, nearest)] * turn;
      }
    }
  }
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = Values::from(there[i].type(), aligned[i]);
  return there;
}

class Derivatives : public Property {};

TEST_P(Derivatives, AreFiniteDifferences) {
  int tried = 0;
  for_each_call("jvp = finite differences", GetParam(), [&](const Call& call) -> std::string {
    if (!call.takes(is_double) || !only_doubles(call)) return not_applicable;
    ++tried;
    FlatFunction f = call.function();
    Point point = point_of(call);
    JvpResult jvp = jvp_flat(f, point.primals, point.tangents);
    std::string primal = difference(jvp.primals, f(point.primals), 64);
    if (!primal.empty()) return "primal: " + primal;
    // Fourth order: (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h.
    const double h = 1e-4;
    auto at = [&](double step) {
      Arrays there = f(moved(point.primals, point.tangents, step));
      return call.primitive.is("eig") && !call.body ? aligned_with(jvp.primals, there) : there;
    };
    Arrays near_up = at(h), near_down = at(-h), far_up = at(2 * h), far_down = at(-2 * h);
    for (std::size_t i = 0; i < near_up.size(); ++i) {
      if (!is_double(near_up[i].dtype())) continue;
      Complexes a = elements(near_up[i]), b = elements(near_down[i]), c = elements(far_up[i]),
                d = elements(far_down[i]);
      Complexes got = jvp.tangents[i].defined() ? elements(jvp.tangents[i]) : Complexes(a.size());
      if (jvp.tangents[i].defined() && jvp.tangents[i].shape() != near_up[i].shape()) {
        return concat("output ", i, ": the tangent is ", to_string(jvp.tangents[i].type()), ", the output ",
                      to_string(near_up[i].type()));
      }
      for (std::size_t k = 0; k < a.size(); ++k) {
        if (!std::isfinite(std::abs(a[k]))) continue;
        std::complex<double> want = (8.0 * (a[k] - b[k]) - (c[k] - d[k])) / (12 * h);
        double allowed = 1e-6 * (1 + std::abs(want)) + 1e-10 * std::abs(a[k]) / h;
        if (!(std::abs(got[k] - want) <= allowed)) {
          return concat("output ", i, ", element ", k, ": jvp gives ", got[k], ", differences ", want);
        }
      }
    }
    return "";
  });
  Primitive p = primitive(GetParam());
  if (tried == 0 && p->jvp && p->differentiable)
    Tally::of("jvp = finite differences").note(p.name() + ": no call of 64-bit floats to try");
}

// Each operand alone, so that rules see symbolic zeros; also type-checks the programs.
TEST_P(Derivatives, WithSomeTangentsZeroAddUp) {
  for_each_call("jvp is linear in each tangent", GetParam(), [](const Call& call) -> std::string {
    // float8_e8m0fnu has neither zero nor a sign.
    if (!call.takes(inexact) || call.dtype == DType::float8_e8m0fnu) return not_applicable;
    FlatFunction f = call.function();
    Point point = point_of(call);
    verify(jvp_program(stage(f, call.sample.inputs, "f").program, point.differentiable).program);
    std::size_t moving =
        static_cast<std::size_t>(std::count(point.differentiable.begin(), point.differentiable.end(), true));
    if (moving < 2) return "";
    JvpResult all = jvp_flat(f, point.primals, point.tangents);
    std::vector<Complexes> sums(all.tangents.size());
    for (std::size_t i = 0; i < point.primals.size(); ++i) {
      if (!point.differentiable[i]) continue;
      std::vector<bool> one(point.primals.size(), false);
      one[i] = true;
      verify(jvp_program(stage(f, call.sample.inputs, "f").program, one).program);
      Arrays tangents(point.primals.size());
      tangents[i] = point.tangents[i];
      JvpResult part = jvp_flat(f, point.primals, tangents);
      for (std::size_t o = 0; o < sums.size(); ++o) {
        if (!part.tangents[o].defined()) continue;
        Complexes t = elements(part.tangents[o]);
        if (sums[o].empty()) sums[o].resize(t.size());
        for (std::size_t k = 0; k < t.size(); ++k) sums[o][k] += t[k];
      }
    }
    for (std::size_t o = 0; o < sums.size(); ++o) {
      if (!all.tangents[o].defined()) continue;
      Complexes want = elements(all.tangents[o]);
      sums[o].resize(want.size());
      double units = 64 * precision(all.tangents[o].dtype());
      for (std::size_t k = 0; k < want.size(); ++k) {
        if (std::isnan(std::abs(want[k])) || std::isinf(std::abs(want[k]))) continue;
        if (!(std::abs(sums[o][k] - want[k]) <= units * (4 + std::abs(want[k])))) {
          return concat("output ", o, ", element ", k, ": all tangents give ", want[k], ", the sum of single ones ",
                        sums[o][k]);
        }
      }
    }
    return "";
  });
}

struct Product {
  double value = 0, magnitude = 0;
  // The real part of the bilinear product, which transposes of complex linear maps preserve.
  void add(const Array& a, const Array& b) {
    Complexes x = elements(a), y = elements(b);
    for (std::size_t k = 0; k < x.size(); ++k) {
      value += (x[k] * y[k]).real();
      magnitude += std::abs(x[k]) * std::abs(y[k]);
    }
  }
};

TEST_P(Derivatives, TransposeKeepsProducts) {
  for_each_call("<ct, J t> = <J' ct, t>", GetParam(), [](const Call& call) -> std::string {
    // Fewer than eight bits are too few for a product.
    if (!call.takes(inexact) || precision(call.dtype) > 0.01) return not_applicable;
    Point point = point_of(call);
    Linearized linear = linearize_flat(call.function(), point.primals, point.differentiable);
    verify(linear.linear);
    Arrays operands = linear.residuals;
    for (std::size_t i = 0; i < point.primals.size(); ++i) {
      if (point.differentiable[i]) operands.push_back(point.tangents[i]);
    }
    Arrays pushed = evaluate_program(linear.linear, operands);
    Values values(seed_of(call) + 1);
    Product left, right;
    Arrays cotangents(linear.outputs.size());
    double coarsest = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < linear.outputs.size(); ++i) {
      if (!linear.nonzero_outputs[i]) continue;
      const Array& tangent = pushed[next++];
      cotangents[i] = values.direction(tangent.type());
      coarsest = std::max(coarsest, precision(tangent.dtype()));
      left.add(cotangents[i], tangent);
    }
    if (next == 0) return not_applicable;
    Arrays back = pull_back(linear, cotangents);
    next = 0;
    for (std::size_t i = 0; i < point.primals.size(); ++i) {
      if (!point.differentiable[i]) continue;
      const Array& cotangent = back[next++];
      if (!cotangent.defined()) continue;
      const Array& input = point.primals[i];
      if (cotangent.shape() != input.shape() || cotangent.dtype() != input.dtype()) {
        return concat("the cotangent of input ", i, " is ", to_string(cotangent.type()), ", the input ",
                      to_string(input.type()));
      }
      coarsest = std::max(coarsest, precision(cotangent.dtype()));
      right.add(cotangent, point.tangents[i]);
    }
    // The same as a program.
    std::vector<bool> is_linear(linear.linear.invars().size(), true);
    std::fill_n(is_linear.begin(), linear.residuals.size(), false);
    TransposedProgram transposed =
        transpose_program(linear.linear, is_linear, std::vector<bool>(linear.linear.outputs().size(), true));
    verify(transposed.program);
    double allowed = 64 * coarsest * (left.magnitude + right.magnitude + 1e-3);
    if (!std::isfinite(left.value) && !std::isfinite(right.value)) return "";
    if (!(std::abs(left.value - right.value) <= allowed))
      return concat("<ct, J t> = ", left.value, ", <J' ct, t> = ", right.value);
    return "";
  });
}

INSTANTIATE_TEST_SUITE_P(Catalog, Derivatives, testing::ValuesIn(primitive_names()), test_name);

}  // namespace
}  // namespace capibara::properties
