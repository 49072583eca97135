// Helpers shared by the bindings of named models: value conversions, and the parts of the submodule.
#pragma once

#include <capibara/models.h>

#include "bindings.h"

namespace capibara::python {

namespace ml = capibara::models;

ml::Value model_value(nb::handle object);
nb::object python_value(const ml::Value& value);
ml::Entries entries_of(nb::handle dictionary);
ml::ElementTypes types_of(const std::vector<std::string>& names);  // of 'float', 'int', 'bool'
std::vector<std::pair<std::string, ml::ShapeTemplate>> shapes_of(nb::handle dictionary);
std::string key_text(nb::handle key);  // of a name or a connection

void bind_models(nb::module_& core);
void bind_compiled(nb::module_& m);
void bind_train_model(nb::module_& m);

}  // namespace capibara::python
