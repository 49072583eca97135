// Wrapping integers have the same bits signed and unsigned: adds and multiplies are compiled for unsigned types only.
#pragma once

#include <type_traits>

#include "core/array/element.h"

namespace capibara::cpu {

template <class C>
using WithoutSign =
    typename std::conditional_t<std::is_integral_v<C> && std::is_signed_v<C>, std::make_unsigned<C>, Type<C>>::type;

}  // namespace capibara::cpu
