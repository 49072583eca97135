// The families of the table, each defined in the file of its name.
#pragma once

#include "library/table/function.h"

namespace capibara::library {

Family numpy_fft();
Family ops_segments();
Family image_resampling();
Family lax_linalg();
Family numpy_linalg();
Family scipy_fft();
Family scipy_linalg();
Family scipy_ndimage();
Family scipy_signal();

}  // namespace capibara::library
