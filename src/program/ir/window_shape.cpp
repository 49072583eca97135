// Sliding windows over arrays: their attributes, and the shapes they give.
#include "program/ir/window_shape.h"

#include <algorithm>

namespace capibara {

using jax::lax::Padding;

Attr padding_attr(const Padding& padding) {
  Attr::List list;
  for (auto [low, high] : padding) list.push_back(Ints{low, high});
  return list;
}

Padding padding_of(const Attr& attr) {
  Padding padding;
  if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
    for (const Attr& entry : **list) {
      const Ints* pair = entry.get_if<Ints>();
      if (!pair || pair->size() != 2) throw InternalError("padding: entries must be pairs of integers");
      padding.emplace_back((*pair)[0], (*pair)[1]);
    }
  } else if (const Ints* ints = attr.get_if<Ints>(); !ints || !ints->empty()) {
    throw InternalError("padding: a list of pairs is expected");
  }
  return padding;
}

Window Window::of(const Attrs& attrs) {
  Window window;
  window.dimensions = attrs.ints("window_dimensions");
  window.strides = attrs.ints("window_strides");
  window.padding = padding_of(attrs["padding"]);
  Ints ones(window.dimensions.size(), 1);
  window.base_dilation = attrs.has("base_dilation") ? attrs.ints("base_dilation") : ones;
  window.window_dilation = attrs.has("window_dilation") ? attrs.ints("window_dilation") : ones;
  return window;
}

Window Window::with_batch(int64_t dim) const {
  Window window = *this;
  auto insert_one = [dim](Ints& ints) { ints.insert(ints.begin() + dim, 1); };
  insert_one(window.dimensions);
  insert_one(window.strides);
  insert_one(window.base_dilation);
  insert_one(window.window_dilation);
  window.padding.insert(window.padding.begin() + dim, {0, 0});
  return window;
}

Attrs Window::attrs() const {
  return {{"window_dimensions", dimensions},
          {"window_strides", strides},
          {"padding", padding_attr(padding)},
          {"base_dilation", base_dilation},
          {"window_dilation", window_dilation}};
}

Attrs Window::attrs_without_dilation() const {
  return {{"window_dimensions", dimensions}, {"window_strides", strides}, {"padding", padding_attr(padding)}};
}

int64_t dilated(int64_t size, int64_t dilation) {
  return dilation == 1 ? size : std::max<int64_t>(0, 1 + dilation * (size - 1));
}

int64_t window_count(int64_t size, int64_t window, int64_t stride) {
  return size < window ? 0 : (size - window) / stride + 1;
}

Shape window_output_shape(const std::string& op, const ArrayType& operand, const Window& window) {
  auto rank = static_cast<std::size_t>(operand.rank());
  auto check = [&](const Ints& values, const char* argument) {
    if (values.size() != rank) {
      throw TypeError(concat(op, ": ", argument, " must have one entry per dimension of ", to_string(operand), ", got ",
                             values.size(), " (argument '", argument, "')"));
    }
    for (int64_t value : values) {
      if (value < 1) throw TypeError(concat(op, ": ", argument, " must have every element be positive, got ", value));
    }
  };
  check(window.dimensions, "window_dimensions");
  check(window.strides, "window_strides");
  check(window.base_dilation, "base_dilation");
  check(window.window_dilation, "window_dilation");
  if (window.padding.size() != rank) {
    throw TypeError(concat(op, ": padding must have one (low, high) pair per dimension of ", to_string(operand),
                           ", got ", window.padding.size(), " (argument 'padding')"));
  }
  Shape out;
  for (std::size_t d = 0; d < rank; ++d) {
    int64_t size =
        dilated(operand.shape[d], window.base_dilation[d]) + window.padding[d].first + window.padding[d].second;
    out.push_back(window_count(size, dilated(window.dimensions[d], window.window_dilation[d]), window.strides[d]));
  }
  return out;
}

Padding transposed_padding(const Shape& in, const Shape& window, const Ints& strides, const Shape& out,
                           const Padding& padding, const Ints& base_dilation, const Ints& window_dilation) {
  Padding result;
  for (std::size_t d = 0; d < in.size(); ++d) {
    int64_t in_size = dilated(in[d], base_dilation[d]), window_size = dilated(window[d], window_dilation[d]);
    int64_t before = window_size - padding[d].first - 1;
    int64_t after = in_size + window_size - 1 - dilated(out[d], strides[d]) - before;
    result.emplace_back(before, after);
  }
  return result;
}

}  // namespace capibara
