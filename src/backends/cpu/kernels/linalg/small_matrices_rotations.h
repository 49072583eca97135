// Rotations of two numbers, and of symmetric matrices of order two, one in each lane.
#pragma once

#include "backends/cpu/kernels/linalg/small_matrices_reflectors.h"

namespace capibara::cpu::small_matrices {

template <class R, int Bytes>
struct Rotations : Reflectors<R, Bytes> {
  using Own = Reflectors<R, Bytes>;
  using V = typename Own::V;
  using M = typename Own::M;
  using Own::root;
  using Own::signed_as;
  using Own::size_of;

  // cosine * x + sine * y = length and cosine * y = sine * x.
  static CAPIBARA_FFT_INLINE void rotation(const V& x, const V& y, V& cosine, V& sine, V& length) {
    constexpr R small = sizeof(R) == 4 ? R(0x1p-50) : R(0x1p-400), large = sizeof(R) == 4 ? R(0x1p60) : R(0x1p500);
    const V size = size_of(x) > size_of(y) ? size_of(x) : size_of(y);
    const V scale = size < small ? V{} + large : V{} + R(1);
    const V a = x * scale, b = y * scale;
    const V norm = root(a * a + b * b);
    const M usable = norm > V{};
    const V inverse = R(1) / norm, directed = signed_as(inverse, x);
    cosine = usable ? size_of(a) * inverse : V{} + R(1);
    sine = usable ? b * directed : V{};
    length = usable ? signed_as(size < small ? norm * (R(1) / large) : norm, x) : V{};
  }

  // The greater eigenvalue of ((a, b), (b, c)) by size, the other one, and the unit vector of the first.
  static CAPIBARA_FFT_INLINE void pair(const V& a, const V& b, const V& c, V& first, V& second, V& cosine, V& sine) {
    const V one = V{} + R(1);
    const V sum = a + c, difference = a - c, twice = b + b, off = size_of(twice);
    const M is_first = size_of(a) > size_of(c);
    const V greater = is_first ? a : c, lesser = is_first ? c : a;
    const V distance = root(difference * difference + twice * twice);
    const M negative = sum < V{}, vanishes = sum == V{};
    first = R(0.5) * (negative ? sum - distance : sum + distance);
    const V quotient = one / first;
    second = vanishes ? R(-0.5) * distance : (greater * quotient) * lesser - (b * quotient) * b;
    const M ahead = difference >= V{};
    const V leg = ahead ? difference + distance : difference - distance;
    const M steep = size_of(leg) > off;
    const V tangent = steep ? -twice / leg : -leg / twice;
    const V part = one / root(one + tangent * tangent), rest = tangent * part;
    const M diagonal = off == V{};
    const V x = steep ? rest : (diagonal ? one : part), y = steep ? part : (diagonal ? V{} : rest);
    const M turned = negative ^ ahead;  // both signs are those of LAPACK's laev2
    cosine = turned ? -y : x;
    sine = turned ? x : y;
  }
};

}  // namespace capibara::cpu::small_matrices
