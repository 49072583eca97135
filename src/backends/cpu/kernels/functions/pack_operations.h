// Packs as abstract values of lax/math, for formulas that loop until every lane has converged.
//
// Read under the target of the processor (code_*.cpp); a function that inlines all that it calls (`flatten`) has the
// loop.
#pragma once

#include <cstring>
#include <utility>

#include "backends/cpu/kernels/functions/pack.h"
#include "lax/math/lanes_circular.h"
#include "lax/math/lanes_power.h"
#include "lax/math/math.h"

namespace capibara::math {

template <class T, int Bytes>
struct Operations<cpu::Pack<T, Bytes>> : cpu::PackBits<T, Bytes> {
  using Bits = cpu::PackBits<T, Bytes>;
  using Bits::abs;
  using Bits::any;
  using Bits::copysign;
  using Bits::count;
  using Bits::digits;
  using Bits::large;
  using typename Bits::Condition;
  using typename Bits::Int;
  using typename Bits::P;
  using typename Bits::V;

  static constexpr bool is_double(const P&) { return sizeof(T) == 8; }
  static P constant(double value, const P&) { return {V{} + static_cast<T>(value)}; }

  static P exp(P x) {
    const P power = elementary::exp(x);
    return select(lt(power, constant(std::numeric_limits<T>::min(), x)), constant(0, x), power);
  }
  static P log(P x) { return elementary::log(x); }
  static P log1p(P x) { return elementary::log1p(x); }
  static P log_double(P x) { return in_lanes::log(x); }
  // Beyond 2^digits every number is an integer.
  static P round_nearest_even(P x) {
    const T shift = static_cast<T>(Int{1} << digits);
    const P size = abs(x), whole{(size.v + shift) - shift};
    return select(lt(size, constant(static_cast<double>(shift), x)), copysign(whole, x), x);
  }
  static P floor(P x) {
    const P whole = round_nearest_even(x);
    return select(gt(whole, x), whole - constant(1, x), whole);
  }
  static P truncate(P x) { return copysign(floor(abs(x)), x); }
  static P sqrt(P x) {
    alignas(Bytes) T lanes[count];
    std::memcpy(lanes, &x, sizeof lanes);
    for (T& lane : lanes) lane = std::sqrt(lane);
    std::memcpy(&x, lanes, sizeof lanes);
    return x;
  }
  // Of double precision.
  static P pow(P x, P y) { return in_lanes::pow(x, y); }
  using Wide = P;
  static P widen(P x) { return x; }
  static P narrow(P x, P) { return x; }
  // Of angles up to a few turns: lgamma and digamma need no others.
  static P sin(P x) { return quarter(x, false); }
  static P cos(P x) { return quarter(x, true); }

  static Condition lt(P x, P y) { return {x.v < y.v}; }
  static Condition le(P x, P y) { return {x.v <= y.v}; }
  static Condition gt(P x, P y) { return {x.v > y.v}; }
  static Condition ge(P x, P y) { return {x.v >= y.v}; }
  static Condition eq(P x, P y) { return {x.v == y.v}; }
  static Condition ne(P x, P y) { return {x.v != y.v}; }
  static Condition is_finite(P x) { return lt(abs(x), constant(infinity, x)); }
  static P select(Condition condition, P yes, P no) { return {condition.bits ? yes.v : no.v}; }

  template <class Other>
  static P rarely(Condition condition, P value, Other&& other) {
    return any(condition) ? select(condition, other(), value) : value;
  }

  // While any lane goes on; a lane that has stopped keeps its state.
  template <class... S, class While, class Body>
  static std::tuple<S...> iterate(std::tuple<S...> state, While&& goes_on, Body&& body) {
    Condition here = std::apply(goes_on, state);
    while (any(here)) {
      for (int step = 0; step < 2; ++step) {
        const std::tuple<S...> next = std::apply(body, state);
        keep_each(here, next, state, std::make_index_sequence<sizeof...(S)>());
        here = logical_and(here, std::apply(goes_on, state));
      }
    }
    return state;
  }

 private:
  static P keep(Condition goes_on, P next, P old) { return select(goes_on, next, old); }
  static Condition keep(Condition goes_on, Condition next, Condition old) {
    return {(goes_on.bits & next.bits) | (~goes_on.bits & old.bits)};
  }
  template <class State, std::size_t... i>
  static void keep_each(Condition goes_on, const State& next, State& state, std::index_sequence<i...>) {
    ((std::get<i>(state) = keep(goes_on, std::get<i>(next), std::get<i>(state))), ...);
  }
  static P quarter(P x, bool ahead) {
    namespace circle = in_lanes::detail;
    if constexpr (sizeof(T) == 8) {
      auto [turns, r, low] = circle::reduce(x);
      return circle::by_quarter(turns, circle::sine(r, low), circle::cosine(r, low), ahead);
    } else {
      const P turns{x.v * 0.636619772f + large};
      const V k = large - turns.v;
      const P r{k * -4.37113883e-8f + (k * 1.57079637f + x.v)};
      return circle::by_quarter(turns, circle::short_sine(r), circle::short_cosine(r), ahead);
    }
  }
};

}  // namespace capibara::math
