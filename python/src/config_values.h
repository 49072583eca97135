// A configuration as Python sees it.
#pragma once

#include <capibara/config.h>

#include <nanobind/nanobind.h>

namespace capibara::python {

nanobind::dict config_dict(const Config& settings);  // every setting of the core by its name

}  // namespace capibara::python
