// Batching by nested vmap, one level per batch dimension.
#include "library/numpy/linalg/linalg_vectorize.h"

#include "program/derive/derive.h"
#include "program/trace/trace.h"

namespace capibara {

namespace {

struct Batch {
  const FlatFunction& function;
  Shape sizes;
  std::vector<std::vector<bool>> mapped;  // by operand and batch dimension

  Arrays run(std::span<const Array> operands, std::size_t level) const {
    if (level == sizes.size()) return function(operands);
    Ints dims;
    for (const std::vector<bool>& own : mapped) dims.push_back(own[level] ? 0 : not_mapped);
    const FlatFunction inner = [&](std::span<const Array> in) { return run(in, level + 1); };
    return vmap_flat(inner, operands, dims, {}, {"", sizes[level]});
  }
};

}  // namespace

Arrays vectorize(const char* name, const FlatFunction& function, const Arrays& operands, const Ints& core_ranks) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].ndim() < core_ranks[i]) {
      throw ValueError(concat(name, ": operand ", i, " must have at least ", core_ranks[i], " dimensions, got ",
                              to_string(operands[i].type())));
    }
    shapes.emplace_back(operands[i].shape().begin(), operands[i].shape().end() - core_ranks[i]);
  }
  Batch batch{function, jax::lax::broadcast_shapes(shapes), {}};
  Arrays squeezed;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t rank = batch.sizes.size(), own = shapes[i].size();
    std::vector<bool> mapped(rank, false);
    Ints single;
    for (std::size_t j = 0; j < own; ++j) {
      mapped[rank - own + j] = shapes[i][j] == batch.sizes[rank - own + j];
      if (!mapped[rank - own + j]) single.push_back(static_cast<int64_t>(j));
    }
    squeezed.push_back(single.empty() ? operands[i] : jax::lax::squeeze(operands[i], single));
    batch.mapped.push_back(std::move(mapped));
  }
  return batch.run(squeezed, 0);
}

}  // namespace capibara
