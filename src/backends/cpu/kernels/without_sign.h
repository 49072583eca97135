// Integers that wrap are the same bits with and without a sign: what adds or multiplies is compiled for those without.
#pragma once

#include <type_traits>

#include "core/array/element.h"

namespace capibara::cpu {

template <class C>
using WithoutSign =
    typename std::conditional_t<std::is_integral_v<C> && std::is_signed_v<C>, std::make_unsigned<C>, Type<C>>::type;

}  // namespace capibara::cpu
