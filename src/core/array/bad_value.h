// The search for NaN and infinity in values, for the settings jax_debug_nans and jax_debug_infs.
#pragma once

#include <capibara/array.h>

namespace capibara {

enum class BadValue { none, nan, inf };
// The first NaN (if `nans`) or infinity (if `infs`) of a concrete array.
BadValue find_bad_value(const Array& array, bool nans, bool infs);
// Raises FloatingPointError if a concrete array has a value that these settings report; `where` names what computed it.
void require_good_values(const Array& array, const std::string& where);

}  // namespace capibara
