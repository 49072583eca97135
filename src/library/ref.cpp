// Refs as values of the user's program.
#include <capibara/ref.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

namespace capibara::jax {

namespace {

// Plain numbers take the ref's dtype and shape.
Array fitted(const Array& ref, const Array& value) {
  Array converted = value.weak_type() ? lax::convert_element_type(value, ref.dtype()) : value;
  return converted.ndim() == 0 && ref.ndim() > 0 ? lax::broadcast_in_dim(converted, ref.shape(), {}) : converted;
}

}  // namespace

Array Ref::get() const { return bind1(primitive("get"), {handle_}); }
void Ref::set(const Array& value) const { swap(value); }
Array Ref::swap(const Array& value) const { return bind1(primitive("swap"), {handle_, fitted(handle_, value)}); }
void Ref::add(const Array& value) const {
  Array operands[] = {handle_, fitted(handle_, value)};
  capibara::bind(primitive("addupdate"), operands);
}

Ref new_ref(const Array& initial) {
  return Ref(bind1(primitive("new_ref"), {initial}, {{"kind", Attr()}, {"memory_space", Attr()}}));
}
Array freeze(const Ref& ref) { return bind1(primitive("freeze"), {ref.handle()}); }

}  // namespace capibara::jax
