// The regions of a group: one nest, or one per operand if operands are written piece by piece.
#include "backends/cpu/regions/region.h"

#include <algorithm>

#include "backends/cpu/regions/nest.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

std::vector<Part> parts_of(const Program& program, const Equation& self, bool in_place) {
  std::vector<Part> parts;
  const Shape& whole = program.type(self.outputs[0]).shape;
  const Ints zeros(whole.size(), 0), ones(whole.size(), 1);
  if (self.primitive == prim::concatenate()) {
    Ints offsets = zeros;
    const auto dimension = static_cast<std::size_t>(self.attrs.integer("dimension"));
    for (Atom input : self.inputs) {
      parts.push_back({input, program.type(input).shape, zeros, offsets, ones, {}});
      offsets[dimension] += program.type(input).shape[dimension];
    }
  } else if (self.primitive == prim::dynamic_update_slice()) {
    if (!in_place) parts.push_back({self.inputs[0], whole, zeros, zeros, ones, {}});
    parts.push_back(
        {self.inputs[1], program.type(self.inputs[1]).shape, zeros, zeros, ones, std::span(self.inputs).subspan(2)});
  } else {  // pad
    parts.push_back({self.inputs[1], whole, zeros, zeros, ones, {}});
    Part inner{self.inputs[0], program.type(self.inputs[0]).shape, zeros, zeros, ones, {}};
    const Attr::List& config = self.attrs.list("padding_config");
    for (std::size_t d = 0; d < whole.size(); ++d) {
      const Ints& padding = *config[d].get_if<Ints>();
      const int64_t low = padding[0], stride = padding[2] + 1;
      const int64_t begin = std::max<int64_t>(0, ceil_div(-low, stride));
      const int64_t end = std::min(inner.shape[d], whole[d] > low ? (whole[d] - 1 - low) / stride + 1 : 0);
      inner.first[d] = begin;
      inner.shape[d] = std::max<int64_t>(0, end - begin);
      inner.offsets[d] = low + begin * stride;
      inner.strides[d] = stride;
    }
    parts.push_back(std::move(inner));
  }
  return parts;
}

}  // namespace

std::vector<Region> write_regions(const Program& program, const Fusion& fusion, const Group& group,
                                  const Aliases& aliases, bool in_place) {
  if (group.work == Work::loops && !group.row.empty()) return write_row_nest(program, fusion, group, aliases);
  std::vector<Region> regions;
  if (group.work == Work::loops) {
    regions = write_table_nest(program, fusion, group, aliases);
    if (regions.empty()) regions.push_back(write_flat_nest(program, fusion, group, aliases));
    return regions;
  }
  const Equation& self = program.equations()[static_cast<std::size_t>(group.results[0])];
  for (const Part& part : parts_of(program, self, in_place)) {
    if (element_count(part.shape) > 0)
      regions.push_back(write_piece(program, fusion, group, aliases, self.outputs[0], part));
  }
  return regions;
}

}  // namespace capibara::cpu
