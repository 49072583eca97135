// Table rows for jax.numpy: window functions.
#include <capibara/numpy/windows.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

// Python's int() also accepts a float.
int64_t points(const Arguments& a) { return static_cast<int64_t>(a.real("M")); }

const Function numpy_windows_functions[] = {
    {"bartlett", "M", [](const Arguments& a) -> Value { return numpy::bartlett(points(a)); }, "A triangular window."},
    {"blackman", "M", [](const Arguments& a) -> Value { return numpy::blackman(points(a)); }, "The Blackman window."},
    {"hamming", "M", [](const Arguments& a) -> Value { return numpy::hamming(points(a)); }, "The Hamming window."},
    {"hanning", "M", [](const Arguments& a) -> Value { return numpy::hanning(points(a)); }, "The Hann window."},
    {"kaiser", "M, beta", [](const Arguments& a) -> Value { return numpy::kaiser(points(a), a.array("beta")); },
     "The Kaiser window; beta sets its width."},
};

}  // namespace

Family numpy_windows() { return numpy_windows_functions; }

}  // namespace capibara::library
