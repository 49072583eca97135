// The model protocol from Python: models made of Python functions, which are called only while programs are
// traced.
#pragma once

#include <capibara/model.h>

#include "bindings.h"

namespace capibara::python {

Parameters parameters_of(nb::handle object, const char* operation);
nb::dict wrap_parameters(const Parameters& parameters);
ModelSizes model_sizes(const nb::dict& given);
Arrays batch_of(nb::handle object, const char* operation);

void bind_training_models(nb::module_& m);

}  // namespace capibara::python
