// Finds the kernel of a primitive outside generated code; reference kernels are the fallback.
#include "backends/cpu/kernels/host.h"

#include <cstring>
#include <memory>

#include "backends/cpu/kernels/exchange.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/foreign.h"
#include "backends/reference/backend.h"
#include "backends/reference/kernels.h"
#include "core/array/byte_count.h"
#include "lax/collective/process_exchange.h"
#include "lax/linalg/lapack_calls.h"
#include "lax/math/denormals.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

// Programs and foreign code may keep their operands: callbacks hand arrays to the user.
bool may_keep_operands(const Primitive& primitive, const Attrs& attrs) {
  if (!reference::find_kernel(primitive)) return true;
  for (const auto& [name, attr] : attrs.entries()) {
    if (attr.get_if<std::shared_ptr<const Program>>() || attr.get_if<std::shared_ptr<const Opaque>>() ||
        attr.get_if<std::shared_ptr<const Attr::List>>()) {
      return true;
    }
  }
  return false;
}

// An equation for the reference backend: arrays over raw memory.
struct Reference {
  Primitive primitive;
  Types inputs, outputs;
  Attrs attrs;
  reference::Kernel kernel;
  bool copies;
  ForeignCall foreign;  // a registered function, called instead of the kernel

  Array operand(const ArrayType& type, std::byte* data) const {
    std::size_t bytes = byte_count(type);
    if (!copies) return Array::from_buffer(type, Buffer::borrow(data, bytes, {}));
    Buffer buffer = Buffer::allocate(bytes);
    if (bytes != 0) std::memcpy(buffer.mutable_data(), data, bytes);
    return Array::from_buffer(type, std::move(buffer));
  }

  // Reference kernels flush denormals themselves; callbacks use the floating-point mode of their caller.
  void operator()(std::byte* const* buffers) const {
    const math::KeepDenormals keep;
    Arrays operands;
    operands.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) operands.push_back(operand(inputs[i], buffers[i]));
    Arrays results = foreign  ? foreign(operands)
                     : kernel ? kernel({operands, outputs, attrs})
                              : reference::backend().run(primitive, operands, attrs);
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::size_t bytes = byte_count(outputs[i]);
      const std::byte* data = bytes == 0 ? nullptr : results[i].raw_data();
      if (bytes != 0 && data != buffers[inputs.size() + i]) std::memcpy(buffers[inputs.size() + i], data, bytes);
    }
  }
};

}  // namespace

HostKernel reference_kernel(const Primitive& primitive, const Types& inputs, const Types& outputs, const Attrs& attrs) {
  if (!reference::backend().supports(primitive)) {
    throw NotImplementedError(concat("primitive '", primitive.name(), "' has no evaluation rule on the CPU backend"));
  }
  if (primitive == prim::custom_call() && !is_known_call(attrs.text("call_target_name"))) {
    ForeignCall foreign = make_foreign_call ? make_foreign_call(attrs, inputs, outputs) : ForeignCall();
    if (!foreign) refuse_native_call(attrs.text("call_target_name"));  // before anything runs
    return Reference{primitive, inputs, outputs, attrs, nullptr, false, std::move(foreign)};
  }
  for (const Types* types : {&inputs, &outputs}) {
    for (const ArrayType& type : *types) {
      if (type.ref)
        throw InternalError(concat("host_kernel: a reference ", to_string(type), " reached '", primitive.name(),
                                   "'; references are discharged first"));
    }
  }
  return Reference{
      primitive, inputs, outputs, attrs, reference::find_kernel(primitive), may_keep_operands(primitive, attrs), {}};
}

const Primitive* reference_primitive(const HostKernel& kernel) {
  const Reference* reference = kernel.target<Reference>();
  return reference ? &reference->primitive : nullptr;
}

HostKernel host_kernel(const Primitive& primitive, const Types& inputs, const Types& outputs, const Attrs& attrs,
                       const std::vector<bool>& constants) {
  if (is_process_exchange(primitive)) return make_exchange(primitive, {inputs, outputs, attrs, constants});
  if (KernelMaker make = find_kernel_maker(primitive)) {
    if (HostKernel kernel = make({inputs, outputs, attrs, constants})) return kernel;
  }
  return reference_kernel(primitive, inputs, outputs, attrs);
}

}  // namespace capibara::cpu
