// Type names of the table's dynamically typed values.
#include "library/table/value.h"

namespace capibara::library {

bool Value::is_number() const {
  return get_if<bool>() || get_if<int64_t>() || get_if<double>() || get_if<std::complex<double>>();
}

std::string Value::type_name() const {
  struct Namer {
    std::string operator()(std::monostate) const { return "NoneType"; }
    std::string operator()(bool) const { return "bool"; }
    std::string operator()(int64_t) const { return "int"; }
    std::string operator()(double) const { return "float"; }
    std::string operator()(std::complex<double>) const { return "complex"; }
    std::string operator()(const std::string&) const { return "str"; }
    std::string operator()(DType) const { return "dtype"; }
    std::string operator()(const Array&) const { return "Array"; }
    std::string operator()(const std::shared_ptr<const Sequence>& s) const {
      return s->is_list ? "list" : s->type_name.empty() ? "tuple" : s->type_name;
    }
    std::string operator()(const Callable&) const { return "function"; }
    std::string operator()(const std::shared_ptr<const Foreign>& object) const { return object->type_name(); }
  };
  return std::visit(Namer(), content_);
}

std::string hint_of(const Value& value) {
  const auto* foreign = value.get_if<std::shared_ptr<const Foreign>>();
  const std::string hint = foreign ? (*foreign)->hint() : "";
  return hint.empty() ? hint : " " + hint;
}

}  // namespace capibara::library
