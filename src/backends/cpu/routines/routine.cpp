// Which operations are written as loops of their own, and the loops that they share.
#include "backends/cpu/routines/routine.h"

#include <string_view>

namespace capibara::cpu {

std::optional<Function> write_routine(const Primitive& primitive, const Types& inputs, const Types& outputs,
                                      const Attrs& attrs, bool in_place) {
  const std::string_view name = primitive.name();
  if (name == "dot_general") return routines::dot_general(inputs, outputs, attrs);
  if (name == "gather") return routines::gather(inputs, outputs, attrs);
  if (name.substr(0, 7) == "scatter") return routines::scatter(inputs, outputs, attrs, in_place);
  return std::nullopt;
}

namespace routines {

void nest(Builder& builder, std::span<const int64_t> extents, bool lanes,
          const std::function<void(std::span<const Value>)>& body) {
  std::vector<Value> indices;
  const std::function<void()> inner = [&] {
    if (indices.size() == extents.size()) return body(indices);
    const bool last = indices.size() + 1 == extents.size();
    builder.loop(extents[indices.size()], {.lanes = lanes && last}, {}, [&](Value index, std::span<const Value>) {
      indices.push_back(index);
      inner();
      indices.pop_back();
      return std::vector<Value>();
    });
  };
  inner();
}

Ints strides_of(const Shape& shape) {
  Ints strides(shape.size());
  int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
  return strides;
}

}  // namespace routines

}  // namespace capibara::cpu
