// Attributes in the form that handlers take.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/pjrt/calls/ffi.h"
#include "compiler/stablehlo/syntax/syntax.h"

namespace capibara::ffi {

namespace abi = pjrt::ffi;
using stablehlo::Attribute;
using stablehlo::Dictionary;

// XLA's code of an element type. Raises NotImplementedError, naming the target and the type, for types that cannot be
// passed to handlers.
int32_t required_number(const std::string& target, std::optional<DType> dtype, const std::string& name);

// A dictionary of attributes, and the memory that it points to.
class AttributeFrame {
 public:
  AttributeFrame(const std::string& target, const Dictionary& dictionary) : target_(target) {
    fill(attributes_, dictionary);
  }
  const abi::Attributes& attributes() const { return attributes_; }

 private:
  struct Lists {
    std::vector<int32_t> types;
    std::vector<const abi::ByteSpan*> names;
    std::vector<void*> values;
  };

  template <class T>
  T* keep(T value) {
    auto held = std::make_shared<T>(std::move(value));
    memory_.push_back(held);
    return held.get();
  }
  abi::ByteSpan* span(const std::string& text) {
    const std::string* own = keep(text);
    return keep(abi::ByteSpan{own->data(), own->size()});
  }
  void* scalar(int32_t type, const void* value, std::size_t size);
  void* array(int32_t type, std::size_t count, std::vector<std::byte> bytes);

  // The kind of an attribute and the structure that holds it.
  std::pair<int32_t, void*> value_of(const Attribute& attribute);
  std::pair<int32_t, void*> number(const std::string& type, int64_t integer, double real);
  void fill(abi::Attributes& into, const Dictionary& dictionary);

  std::string target_;
  abi::Attributes attributes_{};
  std::deque<std::shared_ptr<void>> memory_;
};

}  // namespace capibara::ffi
