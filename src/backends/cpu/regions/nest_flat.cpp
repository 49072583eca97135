// Flat nests: all results have the shape of the loops, and the innermost loop runs in lanes.
//
// An operand that the innermost loop traverses in large steps while another loop traverses it contiguously (a
// transpose) would touch a cache line per element. Such nests run in square tiles: each tile of the operand is first
// transposed into the frame, and the lanes read it there.
//
//   for i, j: y[i, j] = x[j, i] + 1      becomes      for each tile: for j, i: t[i, j] = x[j, i]
//                                                                    for i, j: y[i, j] = t[i, j] + 1
#include <algorithm>

#include "backends/cpu/regions/nest.h"

namespace capibara::cpu {

namespace {

constexpr std::size_t max_cuts = 8;            // of one loop
constexpr int64_t tile_side = 64;              // elements per side
constexpr int64_t min_tiled = 8;               // shorter loops are not tiled
constexpr int64_t max_tile_bytes = 96 * 1024;  // bytes of all tiles of a nest
constexpr int64_t rows_together = 4;           // of a tile: their stores become whole vectors

class FlatNest : public NestWriter {
 public:
  using NestWriter::NestWriter;

  Region group() {
    const std::size_t rank = group_.space.size();
    open_space(rank);
    for (std::size_t d = 0; d < rank; ++d) index_.push_back(Affine::of(static_cast<Symbol>(d)));
    Strides strides;
    for (int e : members()) {
      for (const Access& access : accesses(program_, fusion_, equation(e), index_, stops_, static_cast<Symbol>(rank))) {
        if (access.var.dropped() || own_result(access.var) == -1) add_access(access, rank, strides);
      }
    }
    strides.push_back(factors(linear(index_, group_.space), rank));
    const std::vector<Loop> nest = joined(group_.space, {}, strides);
    if (group_.guarded && !nest.empty()) find_cuts(nest.back());
    if (const std::optional<std::size_t> other = tiled_loop(nest))
      run_tiles(nest, *other);
    else
      run(nest, [&] { write_results(); });
    return finish();
  }

  Region piece(Var target, const Part& part) {
    const std::size_t rank = part.shape.size();
    open_space(rank);
    Index read;
    for (std::size_t d = 0; d < rank; ++d) {
      index_.push_back(Affine::of(static_cast<Symbol>(d)));
      read.push_back(index_.back());
      read.back().constant = part.first[d];
    }
    if (program_.type(part.value).shape.empty()) read.clear();
    const Shape& whole = program_.type(target).shape;
    Strides strides;
    for (const Access& access : reads_of(part.value, read, static_cast<Symbol>(rank)))
      add_access(access, rank, strides);
    Index stored = index_;
    for (std::size_t d = 0; d < rank; ++d) {
      stored[d] = Affine(part.offsets[d]);
      stored[d].add(index_[d], part.strides[d]);
    }
    strides.push_back(factors(linear(stored, whole), rank));
    const std::vector<Loop> nest = joined(part.shape, {}, strides);
    for (std::size_t d = 0; d < part.starts.size(); ++d) {
      const int64_t last = whole[d] - part.shape[d];
      if (last > 0) stored[d].add(Affine::of(symbol(start_value(part.starts[d], last))));
    }
    run(nest, [&] {
      const Element value = element(part.value, read);
      store_element(builder_, program_.type(target).dtype, address(target, linear(stored, whole)), value);
    });
    return finish();
  }

 private:
  // All reads precede all writes: a result may reuse the memory of an operand.
  void write_results() {
    std::vector<std::pair<Var, Element>> values;
    for (int e : members()) {
      const Element value = computed(e, index_);
      if (listed(group_.results, e)) values.emplace_back(equation(e).outputs[0], value);
    }
    for (const auto& [output, value] : values) {
      store_element(builder_, type(output).dtype, address(output, linear(index_, group_.space)), value);
    }
  }

  // Finds where the inner loop crosses from one part of a pad or concatenation to the next.
  void find_cuts(const Loop& inner) {
    const Symbol lane = static_cast<Symbol>(inner.last);
    for (int e : members()) {
      for (const Access& access :
           accesses(program_, fusion_, equation(e), index_, stops_, static_cast<Symbol>(index_.size()))) {
        if (!access.var.dropped() || access.index.size() != 2) continue;
        const Affine& place = access.index[0];
        if (place.terms.size() != 1 || place.terms[0].first != lane || place.terms[0].second != 1) continue;
        for (int64_t cut : {-place.constant, access.index[1].constant - place.constant}) {
          if (cut > 0 && cut < inner.extent) cuts_.push_back(cut);
        }
      }
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    if (cuts_.size() > max_cuts) cuts_.clear();
  }

  template <class Write>
  void run(const std::vector<Loop>& nest, Write&& write) {
    offsets_.assign(symbols_.size(), 0);
    extents_.assign(symbols_.size(), 1);
    for (const Loop& loop : nest) extents_[loop.last] = loop.extent;
    if (nest.empty()) {
      zero_unset();
      write();
      return;
    }
    const Loop& inner = nest.back();
    auto run_inner = [&](bool parallel, int64_t begin, int64_t end) {
      offsets_[inner.last] = begin;
      extents_[inner.last] = end - begin;
      loop(end - begin, {.lanes = true, .parallel = parallel}, [&](Value position) {
        enter(inner, position);
        zero_unset();
        write();
      });
    };
    if (nest.size() == 1 && cuts_.empty()) {
      run_inner(true, 0, inner.extent);
      return;
    }
    inner_size_ = static_cast<double>(inner.extent);
    const std::span<const Loop> outer = std::span(nest).first(nest.size() - 1);
    loop(size_of(outer), {.parallel = true}, [&](Value position) {
      enter_all(outer, position);
      int64_t begin = 0;
      for (int64_t cut : cuts_) {
        run_inner(false, begin, cut);
        begin = cut;
      }
      run_inner(false, begin, inner.extent);
    });
  }

  // ---- tiles ------------------------------------------------------------------------------------------------------

  struct Tile {
    int32_t buffer;
    Var var;
    Index index;
  };

  // The loop along which far operands are contiguous, the same for all of them.
  std::optional<std::size_t> tiled_loop(const std::vector<Loop>& nest) const {
    if (nest.size() < 2 || group_.guarded || !aliases_.empty() || nest.back().extent < min_tiled) return std::nullopt;
    std::optional<std::size_t> found;
    for (int e : members()) {
      for (const Access& access :
           accesses(program_, fusion_, equation(e), index_, stops_, static_cast<Symbol>(index_.size()))) {
        if (access.var.dropped() || own_result(access.var) != -1) continue;
        const std::vector<int64_t> factor = factors(linear(access.index, type(access.var).shape), index_.size());
        if (!is_far(factor[nest.back().last])) continue;
        for (std::size_t k = 0; k + 1 < nest.size(); ++k) {
          if (factor[nest[k].last] == 1 && nest[k].extent >= min_tiled && (!found || *found == k)) found = k;
        }
      }
    }
    return found;
  }

  static bool is_far(int64_t step) { return step > 2 || step < -2; }

  // The last tile of a loop ends where the loop ends, so that all tiles are full: some elements are computed twice.
  struct Cut {
    int64_t width, count;
  };
  static Cut cut(const Loop& loop) {
    const int64_t width = std::min(loop.extent, tile_side);
    return {width, (loop.extent + width - 1) / width};
  }
  Value tile_start(const Loop& loop, const Cut& cut, Value tile) {
    const Value start = builder_.compute(Op::mul, tile, builder_.index(cut.width));
    if (loop.extent % cut.width == 0) return start;
    const Value last = builder_.index(loop.extent - cut.width);
    return builder_.compute(Op::select, builder_.compute(Op::lt, start, last), start, last);
  }

  void run_tiles(const std::vector<Loop>& nest, std::size_t tiled) {
    other_ = nest[tiled];
    inner_ = nest.back();
    std::vector<Loop> outer;
    for (std::size_t k = 0; k + 1 < nest.size(); ++k) {
      if (k != tiled) outer.push_back(nest[k]);
    }
    const Cut across = cut(other_), along = cut(inner_);
    // The tiles are loops of their own around those of the space.
    const Loop tile_loops[] = {{0, 0, across.count}, {0, 0, along.count}};
    inner_size_ = static_cast<double>(across.width * along.width);
    std::vector<Tile> tiles;
    loop(size_of(outer) * size_of(tile_loops), {.parallel = true}, [&](Value position) {
      const Value in_row = builder_.index(along.count), in_column = builder_.index(across.count);
      const Value column = builder_.compute(Op::remainder_unsigned, position, in_row);
      const Value rest = builder_.compute(Op::divide_unsigned, position, in_row);
      const Value row = outer.empty() ? rest : builder_.compute(Op::remainder_unsigned, rest, in_column);
      if (!outer.empty()) enter_all(outer, builder_.compute(Op::divide_unsigned, rest, in_column));
      shift(other_, tile_start(other_, across, row));
      shift(inner_, tile_start(inner_, along, column));
      tiles_ = far_reads(across.width, along.width);
      for (const Tile& tile : tiles_) transpose(tile, across.width, along.width);
      loop(across.width, {}, [&](Value i) {
        enter(other_, i);
        loop(along.width, {.lanes = true}, [&](Value j) {
          enter(inner_, j);
          zero_unset();
          write_results();
        });
      });
    });
  }

  void shift(const Loop& loop, Value start) {
    symbols_.push_back(start);
    index_[loop.last].add(Affine::of(static_cast<Symbol>(symbols_.size()) - 1));
  }

  // The operands to transpose, each with its buffer in the frame.
  std::vector<Tile> far_reads(int64_t height, int64_t width) {
    std::vector<Tile> tiles;
    std::map<Key, bool> seen;
    int64_t room = max_tile_bytes;
    for (int e : members()) {
      for (Access& access :
           accesses(program_, fusion_, equation(e), index_, stops_, static_cast<Symbol>(symbols_.size()))) {
        if (access.var.dropped() || own_result(access.var) != -1) continue;
        const Affine place = linear(access.index, type(access.var).shape);
        const bool known = place.terms.empty() || at(place.terms.back().first) < symbols_.size();
        if (!known || !is_far(place.factor(static_cast<Symbol>(inner_.last))) ||
            place.factor(static_cast<Symbol>(other_.last)) != 1)
          continue;
        const int64_t bytes = height * tile_step(width) * storage_size(type(access.var).dtype);
        if (bytes > room || !seen.emplace(key_of(access.var, access.index), true).second) continue;
        room -= bytes;
        tiles.push_back({builder_.local(bytes), access.var, std::move(access.index)});
      }
    }
    return tiles;
  }

  // Rows of a tile begin in different cache sets.
  static int64_t tile_step(int64_t width) { return width + rows_together; }
  Address tile_address(const Tile& tile, Value i, Value j, int64_t offset) const {
    return {tile.buffer, offset, {{i, tile_step(std::min(inner_.extent, tile_side))}, {j, 1}}};
  }

  void transpose(const Tile& tile, int64_t height, int64_t width) {
    const Var var = tile.var;
    auto rows = [&](Value first, int64_t count) {
      loop(height, {.lanes = true}, [&](Value i) {
        enter(other_, i);
        enter(inner_, first);
        zero_unset();
        const Affine place = linear(tile.index, type(var).shape);
        const int64_t step = place.factor(static_cast<Symbol>(inner_.last));
        std::vector<Element> elements;
        for (int64_t k = 0; k < count; ++k) {
          Affine next = place;
          next.constant += k * step;
          elements.push_back(load_element(builder_, type(var).dtype, address(var, next)));
        }
        for (int64_t k = 0; k < count; ++k)
          store_element(builder_, type(var).dtype, tile_address(tile, i, first, k), elements[at(k)]);
      });
    };
    const int64_t groups = width / rows_together;
    if (groups > 0) {
      loop(groups, {},
           [&](Value group) { rows(builder_.compute(Op::mul, group, builder_.index(rows_together)), rows_together); });
    }
    if (width % rows_together > 0) rows(builder_.index(groups * rows_together), width % rows_together);
  }

  std::optional<Element> held(Var var, int own, const Index& index) override {
    if (own >= 0) return std::nullopt;
    for (const Tile& tile : tiles_) {
      if (tile.var != var || tile.index != index) continue;
      return load_element(builder_, type(var).dtype,
                          tile_address(tile, symbols_[other_.last], symbols_[inner_.last], 0));
    }
    return std::nullopt;
  }

  Index index_;
  std::vector<int64_t> cuts_;  // of the inner loop
  Loop other_{}, inner_{};     // the sides of a tile: the second runs in lanes
  std::vector<Tile> tiles_;
};

}  // namespace

Region write_flat_nest(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases) {
  return FlatNest(program, fusion, group, aliases).group();
}

Region write_piece(const Program& program, const Fusion& fusion, const Group& group, const Aliases& aliases, Var target,
                   const Part& part) {
  return FlatNest(program, fusion, group, aliases).piece(target, part);
}

}  // namespace capibara::cpu
