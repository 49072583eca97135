// Programs seen from Python as jaxprs, and attributes as equation parameters.
#pragma once

#include <capibara/program.h>

#include "bindings.h"

namespace capibara::python {

// Python's view of an opaque attribute, and an opaque attribute around a Python object.
struct OpaqueView {
  std::shared_ptr<const Opaque> opaque;
};
class PythonOpaque final : public Opaque {
 public:
  explicit PythonOpaque(nb::handle object) : object_(object) {}
  bool equals(const Opaque& other) const override;
  std::size_t hash() const override;
  std::string print() const override;
  nb::handle get() const { return object_.get(); }

 private:
  KeptObject object_;
};

nb::object from_attr(const Attr& attr);
Attr to_attr(nb::handle object);
nb::dict params_of(const Attrs& attrs);
Attrs attrs_of(nb::handle params);  // a dict

}  // namespace capibara::python
