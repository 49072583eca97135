// The search for NaN and infinity in values.
#include "core/array/bad_value.h"

#include <capibara/config.h>
#include <capibara/error.h>

#include "core/array/element.h"

namespace capibara {

BadValue find_bad_value(const Array& array, bool nans, bool infs) {
  if (!is_inexact(array.dtype())) return BadValue::none;
  int64_t parts = is_complex(array.dtype()) ? 2 : 1;
  DType part = real_dtype(array.dtype());
  const std::byte* data = array.raw_data();
  for (int64_t i = 0; i < array.size() * parts; ++i) {
    double value = load_as<double>(part, data, i);
    if (nans && value != value) return BadValue::nan;
    if (infs && value - value != 0 && value == value) return BadValue::inf;
  }
  return BadValue::none;
}

void require_good_values(const Array& array, const std::string& where) {
  const Config& settings = config();
  if (!(settings.debug_nans || settings.debug_infs)) return;
  const BadValue bad = find_bad_value(array, settings.debug_nans, settings.debug_infs);
  if (bad == BadValue::none) return;
  throw FloatingPointError(concat("invalid value (", bad == BadValue::nan ? "nan" : "inf", ") encountered in ", where));
}

}  // namespace capibara
