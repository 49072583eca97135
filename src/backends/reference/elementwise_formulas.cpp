// Kernels of the primitives defined by formulas: generated from the lists in math/.
#include "backends/reference/elementwise.h"
#include "lax/math/math.h"

namespace capibara::reference {

namespace {

// Evaluates a formula on C++ numbers.
template <class Formula>
struct Evaluated {
  using Function = typename Formula::Function;

  template <std::floating_point... T>
  requires(sizeof...(T) == Formula::operands) auto operator()(T... x) const { return Function{}(x...); }
  template <class... T>
  requires(Formula::is_complex && sizeof...(T) == Formula::operands) auto operator()(std::complex<T>... x) const {
    return drop(Function{}(lift(x)...));
  }
};

template <class Formula>
Arrays apply_formula(const KernelArgs& args) {
  if constexpr (Formula::operands == 1) {
    return apply_unary(args, Evaluated<Formula>{});
  } else if constexpr (Formula::operands == 2) {
    return apply_binary(args, Evaluated<Formula>{});
  } else {
    return apply_ternary(args, Evaluated<Formula>{});
  }
}

template <class... Formulas>
KernelList kernels_of(const std::tuple<Formulas...>& formulas) {
  return {{std::get<Formulas>(formulas).primitive, apply_formula<Formulas>}...};
}

}  // namespace

KernelList formula_kernels() {
  KernelList kernels = kernels_of(math::formulas);
  for (const KernelEntry& entry : kernels_of(math::iterative_formulas)) kernels.push_back(entry);
  return kernels;
}

}  // namespace capibara::reference
