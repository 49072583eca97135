// XLA FFI handlers as a user writes them, using only jaxlib's headers.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

ffi::Error rms_norm(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.dimensions().size() == 0) return ffi::Error::InvalidArgument("rms_norm: the operand must have a dimension");
  const auto size = static_cast<int64_t>(x.dimensions().back());
  for (int64_t at = 0; at < static_cast<int64_t>(x.element_count()); at += size) {
    float squares = 0;
    for (int64_t i = at; i < at + size; ++i) squares += x.typed_data()[i] * x.typed_data()[i];
    for (int64_t i = at; i < at + size; ++i)
      y->typed_data()[i] = x.typed_data()[i] / std::sqrt(squares / static_cast<float>(size) + eps);
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    RmsNorm, rms_norm, ffi::Ffi::Bind().Attr<float>("eps").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

ffi::Error attributes(std::string_view text, int64_t whole, int32_t narrow, double real, bool flag,
                      ffi::Span<const int64_t> list, ffi::Dictionary inner, ffi::Result<ffi::Buffer<ffi::F64>> out) {
  const ffi::ErrorOr<int64_t> number = inner.get<int64_t>("number");
  if (number.has_error()) return number.error();
  const double values[] = {static_cast<double>(text.size()),
                           static_cast<double>(whole),
                           static_cast<double>(narrow),
                           real,
                           flag ? 1.0 : 0.0,
                           static_cast<double>(list.size()),
                           static_cast<double>(list[list.size() - 1]),
                           static_cast<double>(*number)};
  for (int i = 0; i < 8; ++i) out->typed_data()[i] = values[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Attributes, attributes,
                              ffi::Ffi::Bind()
                                  .Attr<std::string_view>("text")
                                  .Attr<int64_t>("whole")
                                  .Attr<int32_t>("narrow")
                                  .Attr<double>("real")
                                  .Attr<bool>("flag")
                                  .Attr<ffi::Span<const int64_t>>("list")
                                  .Attr<ffi::Dictionary>("inner")
                                  .Ret<ffi::Buffer<ffi::F64>>());

// Adds in place: the result aliases the operand's memory.
ffi::Error accumulate(ffi::Buffer<ffi::S32> step, ffi::Buffer<ffi::S32> sum, ffi::ResultBuffer<ffi::S32> out) {
  if (sum.untyped_data() != out->untyped_data()) return ffi::Error::Internal("accumulate: the sum is not in place");
  for (std::size_t i = 0; i < step.element_count(); ++i) out->typed_data()[i] += step.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Accumulate, accumulate,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S32>>().Arg<ffi::Buffer<ffi::S32>>().Ret<ffi::Buffer<ffi::S32>>());

// A state that is created when a program is compiled, counts its calls, and is deleted with the program.
struct Counter {
  int32_t calls = 0;
  static inline int32_t alive = 0;
  Counter() { ++alive; }
  ~Counter() { --alive; }
  static ffi::TypeId id;
};
ffi::TypeId Counter::id = {};
ffi::ErrorOr<std::unique_ptr<Counter>> make_counter() { return std::make_unique<Counter>(); }
ffi::Error count(Counter* counter, ffi::Result<ffi::BufferR0<ffi::S32>> out) {
  *out->typed_data() = ++counter->calls;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakeCounter, make_counter, ffi::Ffi::BindInstantiate());
XLA_FFI_DEFINE_HANDLER_SYMBOL(Count, count, ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::BufferR0<ffi::S32>>());

extern "C" void* counter_type() { return &Counter::id; }
extern "C" void* counter_info() {
  static const auto info = ffi::MakeTypeInfo<Counter>();
  return const_cast<void*>(static_cast<const void*>(&info));
}
extern "C" int32_t counters_alive() { return Counter::alive; }
