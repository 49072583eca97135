// Derivatives of linear algebra against finite differences, and solvers differentiated through their equations.
#include "linalg_checks.h"

#include <capibara/solve.h>

#include <functional>

namespace capibara {
namespace {

using namespace linalg_checks;

class LinalgDerivatives : public WithX64 {};
class Solve : public WithX64 {};

// ---- derivatives ------------------------------------------------------------------------------------------------

using Function = std::function<Arrays(std::span<const Array>)>;

// jvp against central differences, and <ct, J t> against <J^T ct, t>, in double precision.
void check_derivative(const Function& f, const Arrays& inputs, double allowed = 1e-5, bool reverse = true) {
  Arrays tangents;
  std::vector<bool> differentiable;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tangents.push_back(random_matrix(inputs[i].dtype(), inputs[i].shape(), static_cast<unsigned>(50 + i)));
    differentiable.push_back(true);
  }
  JvpResult forward = jvp_flat(f, inputs, tangents);
  const double h = 1e-6;
  auto moved = [&](double by) {
    Arrays point;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      point.push_back(lax::add(inputs[i], lax::mul(tangents[i], scalar_of(inputs[i].dtype(), by))));
    return f(point);
  };
  Arrays up = moved(h), down = moved(-h);
  for (std::size_t i = 0; i < up.size(); ++i) {
    if (!is_inexact(up[i].dtype())) continue;
    SCOPED_TRACE(concat("output ", i));
    ASSERT_TRUE(forward.tangents[i].defined());
    expect_close(forward.tangents[i], lax::div(lax::sub(up[i], down[i]), scalar_of(up[i].dtype(), 2 * h)), allowed);
  }
  if (!reverse) return;
  Linearized linear = linearize_flat(f, inputs, differentiable);
  auto inner = [](const Array& a, const Array& b) {
    std::vector<C> x = a.to_vector<C>(), y = b.to_vector<C>();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::real(x[i] * y[i]);
    return sum;
  };
  Arrays cotangents;
  double left = 0, right = 0;
  for (std::size_t i = 0; i < linear.outputs.size(); ++i) {
    if (!linear.nonzero_outputs[i]) {
      cotangents.push_back(Array());
      continue;
    }
    cotangents.push_back(
        random_matrix(linear.outputs[i].dtype(), linear.outputs[i].shape(), static_cast<unsigned>(80 + i)));
    left += inner(cotangents.back(), forward.tangents[i]);
  }
  Arrays back = pull_back(linear, cotangents);
  for (std::size_t i = 0; i < inputs.size(); ++i) right += inner(back[i], tangents[i]);
  EXPECT_NEAR(left, right, 1e-8 * (1 + std::abs(left)));
}

constexpr DType wide_types[] = {DType::float64, DType::complex128};

TEST_F(LinalgDerivatives, CholeskyDerivative) {
  for (DType dtype : wide_types) {
    auto f = [](std::span<const Array> in) { return Arrays{la::cholesky(in[0])}; };
    check_derivative(f, {positive_definite(dtype, {3, 3})});
    check_derivative(f, {positive_definite(dtype, {2, 3, 3})});
  }
}

TEST_F(LinalgDerivatives, TriangularSolveDerivative) {
  for (DType dtype : wide_types) {
    for (int bits = 0; bits < 32; ++bits) {
      la::TriangularSolveOptions form = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0,
                                         (bits & 16) != 0};
      auto f = [form](std::span<const Array> in) { return Arrays{la::triangular_solve(in[0], in[1], form)}; };
      for (int64_t other : {2, 4}) {
        SCOPED_TRACE(concat(to_string(dtype), " ", bits, " ", other));
        check_derivative(f, {positive_definite(dtype, {3, 3}),
                             random_matrix(dtype, form.left_side ? Shape{3, other} : Shape{other, 3})});
      }
    }
  }
}

TEST_F(LinalgDerivatives, LuDerivative) {
  for (DType dtype : wide_types) {
    for (Shape shape : {Shape{3, 3}, Shape{4, 3}, Shape{3, 4}, Shape{2, 3, 3}}) {
      check_derivative([](std::span<const Array> in) { return Arrays{std::get<0>(la::lu(in[0]))}; },
                       {random_matrix(dtype, shape)});
    }
  }
}

TEST_F(LinalgDerivatives, QrDerivative) {
  for (DType dtype : wide_types) {
    for (Shape shape : {Shape{3, 3}, Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 2}}) {
      for (bool full : {false, true}) {
        SCOPED_TRACE(concat(to_string(dtype), " rows ", shape[0], full ? " full" : ""));
        auto f = [full](std::span<const Array> in) {
          auto [q, r] = la::qr(in[0], full);
          return Arrays{q, r};
        };
        check_derivative(f, {random_matrix(dtype, shape)});
        auto pivoted = [full](std::span<const Array> in) {
          auto [q, r, p] = la::qr_with_pivoting(in[0], full);
          return Arrays{q, r};
        };
        check_derivative(pivoted, {random_matrix(dtype, shape)});
      }
    }
  }
}

TEST_F(LinalgDerivatives, EighDerivative) {
  check_derivative(
      [](std::span<const Array> in) {
        auto [v, w] = la::eigh(in[0]);
        return Arrays{v, w};
      },
      {random_matrix(DType::float64, {4, 4})});
  check_derivative([](std::span<const Array> in) { return Arrays{la::eigh(in[0]).second}; },
                   {random_matrix(DType::float64, {2, 3, 3})});
  // Complex eigenvectors are unique only up to a phase, but their projections are unique.
  check_derivative(
      [](std::span<const Array> in) {
        auto [v, w] = la::eigh(in[0]);
        Array first = linalg::cols(v, 0, 1);
        return Arrays{w, times(first, linalg::adjoint(first))};
      },
      {random_matrix(DType::complex128, {3, 3})}, 1e-5, false);
}

TEST_F(LinalgDerivatives, SvdDerivative) {
  for (Shape shape : {Shape{3, 3}, Shape{4, 3}, Shape{3, 4}, Shape{2, 3, 2}}) {
    check_derivative(
        [](std::span<const Array> in) {
          auto [u, s, vh] = la::svd(in[0], {.full_matrices = false});
          return Arrays{u, s, vh};
        },
        {random_matrix(DType::float64, shape)});
    check_derivative([](std::span<const Array> in) { return Arrays{la::singular_values(in[0])}; },
                     {random_matrix(DType::complex128, shape)});
  }
  EXPECT_THROW(jvp_flat([](std::span<const Array> in) { return Arrays{std::get<0>(la::svd(in[0]))}; },
                        Arrays{random_matrix(DType::float64, {3, 2})}, Arrays{random_matrix(DType::float64, {3, 2})}),
               NotImplementedError);
}

TEST_F(LinalgDerivatives, EigDerivative) {
  for (DType dtype : wide_types) {
    for (Shape shape : {Shape{3, 3}, Shape{2, 3, 3}}) {
      la::EigOptions values = {.compute_left_eigenvectors = false, .compute_right_eigenvectors = false};
      check_derivative([values](std::span<const Array> in) { return la::eig(in[0], values); },
                       {random_matrix(dtype, shape)});
      check_derivative([](std::span<const Array> in) { return la::eig(in[0], {.enable_eigvec_derivs = true}); },
                       {random_matrix(dtype, shape)}, 1e-5, false);
    }
  }
  Array a = random_matrix(DType::float64, {2, 2});
  EXPECT_THROW(jvp_flat([](std::span<const Array> in) { return la::eig(in[0]); }, Arrays{a}, Arrays{a}),
               NotImplementedError);
}

TEST_F(LinalgDerivatives, TridiagonalSolveDerivative) {
  for (DType dtype : wide_types) {
    Arrays inputs = {random_matrix(dtype, {4}, 1), random_matrix(dtype, {4}, 2), random_matrix(dtype, {4}, 3),
                     random_matrix(dtype, {4, 2}, 4)};
    check_derivative(
        [](std::span<const Array> in) { return Arrays{la::tridiagonal_solve(in[0], in[1], in[2], in[3])}; }, inputs);
  }
}

TEST_F(LinalgDerivatives, SolveDerivative) {
  for (DType dtype : wide_types) {
    auto f = [](std::span<const Array> in) { return Arrays{linalg::solve(in[0], in[1])}; };
    check_derivative(f, {random_matrix(dtype, {3, 3}), random_matrix(dtype, {3}, 2)});
    check_derivative(f, {random_matrix(dtype, {3, 3}), random_matrix(dtype, {3, 2}, 2)});
    check_derivative(f, {random_matrix(dtype, {2, 3, 3}), random_matrix(dtype, {2, 3, 2}, 2)});
  }
}

// ---- custom_linear_solve and custom_root ------------------------------------------------------------------------

// Conjugate gradients in a while loop, which reverse mode alone could not differentiate.
template <class Matvec>
Array conjugate_gradients(Matvec matvec, const Array& b) {
  using State = std::tuple<Array, Array, Array, Array>;
  auto dot = [](const Array& x, const Array& y) { return lax::reduce_sum(lax::mul(x, y), {.axes = {0}}); };
  State start(lax::zeros_like(b), b, b, dot(b, b));
  auto unfinished = [](const State& s) { return lax::gt(std::get<3>(s), scalar_of(DType::float64, 1e-28)); };
  auto step = [&](const State& s) {
    const auto& [x, r, p, size] = s;
    Array ap = matvec(p);
    Array alpha = lax::div(size, dot(p, ap));
    Array next = lax::sub(r, lax::mul(alpha, ap));
    Array next_size = dot(next, next);
    return State(lax::add(x, lax::mul(alpha, p)), next, lax::add(next, lax::mul(lax::div(next_size, size), p)),
                 next_size);
  };
  return std::get<0>(lax::while_loop(unfinished, step, start));
}

Array solve_by_gradients(const Array& a, const Array& b) {
  auto matvec = [a](const Array& x) { return lax::dot(a, x); };
  auto solve = [](const std::function<Array(const Array&)>& f, const Array& y) { return conjugate_gradients(f, y); };
  return lax::custom_linear_solve(matvec, b, solve, true);
}

TEST_F(Solve, CustomLinearSolveDifferentiatesImplicitly) {
  Array a = positive_definite(DType::float64, {4, 4}), b = random_matrix(DType::float64, {4}, 2);
  Array x = solve_by_gradients(a, b);
  expect_close(lax::dot(a, x), b, 1e-8);
  auto f = [](std::span<const Array> in) { return Arrays{solve_by_gradients(linalg::symmetrized(in[0]), in[1])}; };
  check_derivative(f, {a, b}, 1e-4);
}

TEST_F(Solve, CustomLinearSolveBatchesItsSystems) {
  Array a = positive_definite(DType::float64, {3, 4, 4}), b = random_matrix(DType::float64, {3, 4}, 2);
  FlatFunction f = [](std::span<const Array> in) { return Arrays{solve_by_gradients(in[0], in[1])}; };
  auto row = [](const Array& x, int64_t i) { return lax::index_in_dim(x, i, 0, false); };
  Array both = vmap_flat(f, Arrays{a, b}, std::vector<int64_t>{0, 0}, {0}, {"", 3})[0];
  Array only_b = vmap_flat(f, Arrays{row(a, 0), b}, std::vector<int64_t>{not_mapped, 0}, {0}, {"", 3})[0];
  Array only_a = vmap_flat(f, Arrays{a, row(b, 0)}, std::vector<int64_t>{0, not_mapped}, {0}, {"", 3})[0];
  for (int64_t i = 0; i < 3; ++i) {
    expect_close(row(both, i), solve_by_gradients(row(a, i), row(b, i)), 1e-8);
    expect_close(row(only_b, i), solve_by_gradients(row(a, 0), row(b, i)), 1e-8);
    expect_close(row(only_a, i), solve_by_gradients(row(a, i), row(b, 0)), 1e-8);
  }
}

TEST_F(Solve, CustomLinearSolveReturnsAux) {
  Array a = positive_definite(DType::float64, {3, 3}), b = random_matrix(DType::float64, {3}, 2);
  auto f = [](std::span<const Array> in) {
    Array m = in[0];
    auto matvec = [m](const Array& x) { return lax::dot(m, x); };
    auto solve = [m](const std::function<Array(const Array&)>&, const Array& y) {
      return std::pair(linalg::solve(lax::stop_gradient(m), y), Array(7));
    };
    auto [x, aux] = lax::custom_linear_solve_with_aux<Array>(matvec, in[1], solve);
    EXPECT_EQ(aux.shape(), Shape{});
    return Arrays{x};
  };
  check_derivative(f, {a, b}, 1e-5, false);
  EXPECT_THROW(check_derivative(f, {a, b}), TypeError);  // no transpose_solve
}

TEST_F(Solve, CustomLinearSolvePrintsItsPrograms) {
  auto f = [](std::span<const Array> in) {
    Array m = in[0];
    auto matvec = [m](const Array& x) { return lax::dot(m, x); };
    auto solve = [](const std::function<Array(const Array&)>&, const Array& y) {
      return lax::div(y, scalar_of(DType::float64, 2));
    };
    return Arrays{lax::custom_linear_solve(matvec, in[1], solve)};
  };
  Types types = {random_matrix(DType::float64, {3, 3}).type(), random_matrix(DType::float64, {3}).type()};
  std::string text = stage(f, types, "f").program.to_string();
  EXPECT_NE(text.find("const_lengths=_LinearSolveTuple(matvec=1, vecmat=0, solve=0, transpose_solve=0)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("vecmat=None, solve={ lambda"), std::string::npos) << text;
}

// The square root by Newton's method.
Array root_of(const Array& a) {
  auto f = [a](const Array& x) { return lax::sub(lax::mul(x, x), a); };
  auto solve = [](const std::function<Array(const Array&)>& g, const Array& start) {
    using State = std::pair<Array, Array>;
    auto unfinished = [](const State& s) { return lax::lt(s.second, scalar_of(DType::int32, 30)); };
    auto step = [&](const State& s) {
      Array slope = lax::mul(scalar_of(DType::float64, 2), s.first);
      return State(lax::sub(s.first, lax::div(g(s.first), slope)), lax::add(s.second, scalar_of(DType::int32, 1)));
    };
    return lax::while_loop(unfinished, step, State(start, scalar_of(DType::int32, 0))).first;
  };
  auto tangent_solve = [](const std::function<Array(const Array&)>& g, const Array& y) {
    return lax::div(y, g(lax::ones(y.type())));
  };
  return lax::custom_root(f, lax::ones(a.type()), solve, tangent_solve);
}

TEST_F(Solve, CustomRootDifferentiatesImplicitly) {
  Array a = scalar_of(DType::float64, 3);
  EXPECT_NEAR(root_of(a).item<double>(), std::sqrt(3.0), 1e-12);
  FlatFunction f = [](std::span<const Array> in) { return Arrays{root_of(in[0])}; };
  check_derivative(f, {a}, 1e-6);
  Array many = array<double>({1, 2, 3});
  Array roots = vmap_flat(f, Arrays{many}, std::vector<int64_t>{0}, {0}, {"", 3})[0];
  expect_close(roots, lax::sqrt(many), 1e-12);
  FlatFunction slope = [&](std::span<const Array> in) {
    return jvp_flat(f, in, Arrays{lax::ones(in[0].type())}).tangents;
  };
  expect_close(slope(Arrays{a})[0], scalar_of(DType::float64, 0.5 / std::sqrt(3.0)), 1e-9);
  expect_close(jvp_flat(slope, Arrays{a}, Arrays{lax::ones(a.type())}).tangents[0],
               scalar_of(DType::float64, -0.25 * std::pow(3.0, -1.5)), 1e-8);
}

}  // namespace
}  // namespace capibara
