// Borders of windows: elements that parts take from their neighbours.
//
//   parts of x  [0 1 2 3] [4 5 6 7]      a window of 3, one apart, padded by one on each side
//   bordered    [. 0 1 2 3 4] [3 4 5 6 7 .]
#include "compiler/partition/windows.h"

#include <capibara/collective.h>
#include <capibara/lax.h>

#include <algorithm>

#include "compiler/partition/reshard.h"
#include "program/ir/handles.h"
#include "program/ir/window_shape.h"

namespace capibara::sharding {

namespace lax = jax::lax;

namespace {

// How a window slides along one dimension.
struct Slide {
  int64_t window, stride, dilation;
  std::pair<int64_t, int64_t> padding;
};

void add_slid(std::vector<SlidDimension>& slid, const EquationTypes& equation, std::size_t operand, std::size_t result,
              std::size_t place, const Slide& slide) {
  const int64_t size = equation.operands[0].shape[operand], count = equation.results[0].shape[result];
  if (count <= 1 || size != count * slide.stride) return;
  const int64_t reach = dilated(slide.window, slide.dilation);
  const int64_t before = slide.padding.first, after = std::max<int64_t>(0, reach - slide.stride - before);
  if (before < 0 || before >= reach) return;
  slid.push_back({operand, result, place, slide.stride, before, after});
}

bool is_one(const Ints& dilation, std::size_t d) { return dilation.empty() || dilation[d] == 1; }

void add_convolution(std::vector<SlidDimension>& slid, const EquationTypes& equation) {
  const auto& numbers = equation.attrs.get<ConvDimensionNumbers>("dimension_numbers");
  const Ints strides = equation.attrs.ints("window_strides"), around = equation.attrs.ints("rhs_dilation");
  const Ints base = equation.attrs.ints("lhs_dilation");
  const lax::Padding padding = padding_of(equation.attrs["padding"]);
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (!is_one(base, d)) continue;
    const auto window = static_cast<std::size_t>(numbers.rhs_spec[d + 2]);
    add_slid(slid, equation, static_cast<std::size_t>(numbers.lhs_spec[d + 2]),
             static_cast<std::size_t>(numbers.out_spec[d + 2]), d,
             {equation.operands[1].shape[window], strides[d], around.empty() ? 1 : around[d], padding[d]});
  }
}

// The array of the device `distance` positions before this one; `nothing` if there is none.
Array from_neighbour(const Mesh& mesh, const Axes& axes, int64_t distance, const Array& x, const Array& nothing,
                     std::vector<InsertedCollective>& noted) {
  const int64_t parts = parts_of(mesh, axes);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t to = 0; to < parts; ++to) {
    if (to - distance >= 0 && to - distance < parts) pairs.emplace_back(to - distance, to);
  }
  const Array fill = lax::broadcast(nothing, x.shape());
  if (pairs.empty()) return fill;
  const double bytes = static_cast<double>(x.size()) * bits(x.dtype()) / 8;
  noted.push_back({"ppermute", names_of(mesh, axes), x.type(), bytes, 1, {}, {}});
  const Array received = lax::ppermute(x, names_of(mesh, axes), pairs);
  const Array position = position_along(mesh, axes);
  const Array edge = Array(static_cast<int32_t>(distance > 0 ? distance : parts + distance));
  const Array is_inside = distance > 0 ? lax::ge(position, edge) : lax::lt(position, edge);
  return lax::select(lax::broadcast(is_inside, x.shape()), received, fill);
}

}  // namespace

std::vector<SlidDimension> slid_dimensions(const EquationTypes& equation) {
  std::vector<SlidDimension> slid;
  const Primitive& primitive = equation.primitive;
  if (primitive == prim::conv_general_dilated()) add_convolution(slid, equation);
  if (primitive == prim::reduce_window_sum() || primitive == prim::reduce_window_max() ||
      primitive == prim::reduce_window_min()) {
    const Window window = Window::of(equation.attrs);
    for (std::size_t d = 0; d < window.dimensions.size(); ++d) {
      const bool sees_one = window.dimensions[d] == 1 && window.strides[d] == 1;
      if (sees_one || !is_one(window.base_dilation, d)) continue;
      add_slid(slid, equation, d, d, d,
               {window.dimensions[d], window.strides[d], window.window_dilation.empty() ? 1 : window.window_dilation[d],
                window.padding[d]});
    }
  }
  return slid;
}

std::vector<int> join_slid_dimensions(const std::vector<SlidDimension>& slid, const EquationTypes& equation,
                                      Factors& factors) {
  std::vector<int> numbers;
  for (const SlidDimension& one : slid) {
    const int joined = factors.add(equation.results[0].shape[one.result]);
    factors.results[0][one.result] = {joined};
    factors.operands[0][one.operand] = {joined};
    if (one.stride > 1) factors.operands[0][one.operand].push_back(factors.add(one.stride, FactorUse::whole));
    numbers.push_back(joined);
  }
  return numbers;
}

Array with_borders(const Mesh& mesh, const Axes& axes, const SlidDimension& slid, const Array& x, const Array& nothing,
                   std::vector<InsertedCollective>& noted) {
  const auto dim = static_cast<int64_t>(slid.operand);
  const int64_t size = x.shape(dim);
  Arrays pieces{x};
  // A border may reach beyond the next device.
  for (int64_t taken = 0, distance = 1; taken < slid.before; taken += size, ++distance) {
    const Array last = lax::slice_in_dim(x, size - std::min(size, slid.before - taken), size, 1, dim);
    pieces.insert(pieces.begin(), from_neighbour(mesh, axes, distance, last, nothing, noted));
  }
  for (int64_t taken = 0, distance = 1; taken < slid.after; taken += size, ++distance) {
    const Array first = lax::slice_in_dim(x, 0, std::min(size, slid.after - taken), 1, dim);
    pieces.push_back(from_neighbour(mesh, axes, -distance, first, nothing, noted));
  }
  return pieces.size() == 1 ? x : lax::concatenate(pieces, dim);
}

Attrs without_padding(const Attrs& attrs, const std::vector<SlidDimension>& bordered) {
  lax::Padding padding = padding_of(attrs["padding"]);
  for (const SlidDimension& one : bordered) padding[one.place] = {0, 0};
  return attrs.with("padding", padding_attr(padding));
}

}  // namespace capibara::sharding
