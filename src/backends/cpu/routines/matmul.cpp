// dot_general as loops: tiles of several rows and one vector of columns, with their sums in registers.
//
//   for j in vectors of n:            vectors of k if that is the last dimension of both operands
//     for i in tiles of m:
//       sums[rows of the tile] = 0
//       for k: sums += a[i, k] * b[k, j]
//       out[i, j] = sums
// Nothing is packed: one vector of columns of b, read by every tile, stays in the L1 or L2 cache. For large
// floats a strip of b's columns is copied to scratch memory, a block of k at a time, where all tiles read it in order.
#include <algorithm>

#include "backends/cpu/routines/routine.h"
#include "core/array/byte_count.h"

namespace capibara::cpu::routines {

namespace {

constexpr int64_t tile_rows = 6;     // with two registers of columns: 12 sums, which is what 16 registers allow
constexpr int64_t tile_columns = 2;  // where lanes run along k, of three rows
constexpr int64_t min_lanes_of_k = 8;
constexpr int64_t strip_bytes = 128;          // of one row of packed columns: two registers of the widest vectors
constexpr int64_t max_block = 256;            // rows of a packed strip
constexpr int64_t max_block_bytes = 1 << 20;  // of a, which is multiplied with all strips before the next block
constexpr int64_t min_packed_rows = 24, min_packed_bytes = 32 << 10;

// One loop: strides of its operands and the result, in elements.
struct Dim {
  int64_t size = 1, a = 0, b = 0, out = 0;
};

// Merges adjacent dimensions that all arrays traverse with one stride.
std::vector<Dim> collapsed(const std::vector<Dim>& dims) {
  std::vector<Dim> result;
  for (const Dim& dim : dims) {
    if (dim.size == 1) continue;
    if (!result.empty()) {
      Dim& last = result.back();
      if (last.a == dim.a * dim.size && last.b == dim.b * dim.size && last.out == dim.out * dim.size) {
        last = {last.size * dim.size, dim.a, dim.b, dim.out};
        continue;
      }
    }
    result.push_back(dim);
  }
  return result;
}

// Removes and returns the last dimension of a list; one of a single element if it is empty.
Dim taken(std::vector<Dim>& dims) {
  if (dims.empty()) return {};
  const Dim last = dims.back();
  dims.pop_back();
  return last;
}

std::vector<int64_t> extents(const std::vector<Dim>& dims) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : dims) sizes.push_back(dim.size);
  return sizes;
}

class Matmul {
 public:
  Matmul(const Types& inputs, const ArrayType& output, const DotDimensionNumbers& dims)
      : b_(function_), left_(inputs[0]), right_(inputs[1]), output_(output) {
    left_buffer_ = b_.parameter(static_cast<int64_t>(byte_count(left_)), false);
    right_buffer_ = b_.parameter(static_cast<int64_t>(byte_count(right_)), false);
    out_buffer_ = b_.parameter(static_cast<int64_t>(byte_count(output_)), true);
    plan(dims);
  }

  Function write() {
    if (output_.size() == 0) return std::move(function_);
    const Dim m = taken(rows_), n = taken(columns_), k = taken(summed_);
    m_ = m, n_ = n, k_ = k;
    if (packs()) scratch_ = b_.parameter(block() * strip_bytes, true);
    std::vector<Dim> around = batch_;
    around.insert(around.end(), rows_.begin(), rows_.end());
    around.insert(around.end(), columns_.begin(), columns_.end());
    nest(b_, extents(around), false, [&](std::span<const Value> at) {
      for (std::size_t i = 0; i < at.size(); ++i) add(base_, at[i], around[i]);
      scratch_ >= 0 ? packed_tiles() : write_tiles();
    });
    return std::move(function_);
  }

 private:
  struct Place {
    std::vector<Term> a, b, out;
    int64_t a_offset = 0, b_offset = 0, out_offset = 0;
  };

  static void add(Place& place, Value index, const Dim& dim, int64_t factor = 1) {
    if (dim.a != 0) place.a.push_back({index, dim.a * factor});
    if (dim.b != 0) place.b.push_back({index, dim.b * factor});
    if (dim.out != 0) place.out.push_back({index, dim.out * factor});
  }
  static void shift(Place& place, int64_t count, const Dim& dim) {
    place.a_offset += count * dim.a;
    place.b_offset += count * dim.b;
    place.out_offset += count * dim.out;
  }

  void plan(const DotDimensionNumbers& dims) {
    const Ints left = strides_of(left_.shape), right = strides_of(right_.shape), out = strides_of(output_.shape);
    const auto list = [](const Ints& which, std::size_t i) { return static_cast<std::size_t>(which[i]); };
    std::size_t next = 0;
    for (std::size_t i = 0; i < dims.lhs_batch.size(); ++i, ++next) {
      const std::size_t l = list(dims.lhs_batch, i), r = list(dims.rhs_batch, i);
      batch_.push_back({left_.shape[l], left[l], right[r], out[next]});
    }
    const auto is_free = [](std::size_t d, const Ints& batch, const Ints& contracting) {
      const auto dimension = static_cast<int64_t>(d);
      return !std::count(batch.begin(), batch.end(), dimension) &&
             !std::count(contracting.begin(), contracting.end(), dimension);
    };
    for (std::size_t d = 0; d < left_.shape.size(); ++d) {
      if (is_free(d, dims.lhs_batch, dims.lhs_contracting)) rows_.push_back({left_.shape[d], left[d], 0, out[next++]});
    }
    for (std::size_t d = 0; d < right_.shape.size(); ++d) {
      if (is_free(d, dims.rhs_batch, dims.rhs_contracting))
        columns_.push_back({right_.shape[d], 0, right[d], out[next++]});
    }
    for (std::size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
      const std::size_t l = list(dims.lhs_contracting, i), r = list(dims.rhs_contracting, i);
      summed_.push_back({left_.shape[l], left[l], right[r], 0});
    }
    for (std::vector<Dim>* each : {&batch_, &rows_, &columns_, &summed_}) *each = collapsed(*each);
  }

  // Chooses the dimension of vectors: one that is contiguous in what is loaded and stored.
  void write_tiles() {
    const bool lanes_of_k = k_.a == 1 && k_.b == 1 && k_.size >= min_lanes_of_k && summed_.empty() && sums_in_lanes();
    if (n_.size > 1 && n_.b == 1) return tiles(n_, m_);
    if (m_.size > 1 && m_.a == 1 && m_.out == 1) return tiles(m_, n_);
    if (lanes_of_k) return tiles_along_k();
    if (n_.size > 1) return tiles(n_, m_);
    return tiles(m_, n_);
  }

  // Lanes along `lanes`, tiles along `rows`.
  void tiles(const Dim& lanes, const Dim& rows) {
    b_.loop(lanes.size, {.lanes = true}, {}, [&](Value j, std::span<const Value>) {
      Place place = base_;
      add(place, j, lanes);
      in_groups(rows, tile_rows, place, [&](const Place& first, int64_t count) {
        std::vector<Place> sums(static_cast<std::size_t>(count), first);
        for (int64_t i = 0; i < count; ++i) shift(sums[static_cast<std::size_t>(i)], i, rows);
        accumulate(sums, {});
      });
      return std::vector<Value>();
    });
  }

  // ---- with packed columns ----------------------------------------------------------------------------------------

  int64_t element_bytes() const { return byte_size(stored_type(output_.dtype)); }
  int64_t strip() const { return strip_bytes / element_bytes(); }
  // All blocks of k except the last have the same size.
  int64_t block() const {
    const int64_t blocks = (k_.size + max_block - 1) / max_block;
    return (k_.size + blocks - 1) / blocks;
  }
  // All blocks of rows except the last have the same size, in whole tiles.
  int64_t block_rows() const {
    const int64_t most = std::max(tile_rows, max_block_bytes / (block() * element_bytes()));
    const int64_t blocks = (m_.size + most - 1) / most, rows = (m_.size + blocks - 1) / blocks;
    return (rows + tile_rows - 1) / tile_rows * tile_rows;
  }
  bool packs() const {
    const bool plain = (output_.dtype == DType::float32 || output_.dtype == DType::float64) &&
                       left_.dtype == output_.dtype && right_.dtype == output_.dtype;
    return plain && summed_.empty() && n_.out == 1 && n_.size >= 2 * strip() && m_.size >= min_packed_rows &&
           k_.size * n_.size * element_bytes() >= min_packed_bytes;
  }

  void packed_tiles() {
    const Scalar type = computed_type(output_.dtype);
    const int64_t width = strip(), strips = n_.size / width, rest = n_.size % width;
    const int64_t blocks = (k_.size + block() - 1) / block();
    b_.loop(m_.size, {}, {}, [&](Value i, std::span<const Value>) {
      Place row = base_;
      add(row, i, m_);
      b_.loop(strips * width, {.lanes = true}, {}, [&](Value j, std::span<const Value>) {
        Place place = row;
        add(place, j, n_);
        b_.store(b_.constant(type, 0), {out_buffer_, place.out_offset, place.out});
        return std::vector<Value>();
      });
      return std::vector<Value>();
    });
    // A block of a stays in the L2 cache while all strips of b stream by.
    const int64_t whole = m_.size / block_rows(), remaining = m_.size % block_rows();
    b_.loop(blocks, {}, {}, [&](Value number, std::span<const Value>) {
      const Value begin = b_.compute(Op::mul, number, b_.index(block()));
      const Value left = b_.compute(Op::sub, b_.index(k_.size), begin);
      const Value is_last = b_.compute(Op::lt, left, b_.index(block()));
      const Value count = k_.size % block() == 0 ? no_value : b_.compute(Op::select, is_last, left, b_.index(block()));
      const auto all_strips = [&](const Place& rows, int64_t height) {
        Dim tall = m_;
        tall.size = height;
        b_.loop(strips, {}, {}, [&](Value column, std::span<const Value>) {
          Place place = rows;
          add(place, column, n_, width);
          pack(place, count);
          in_groups(tall, tile_rows, place, [&](const Place& first, int64_t few) { packed_tile(first, few, count); });
          return std::vector<Value>();
        });
      };
      Place place = base_;
      add(place, begin, k_);
      if (whole > 0) {
        b_.loop(whole, {}, {}, [&](Value group, std::span<const Value>) {
          Place rows = place;
          add(rows, group, m_, block_rows());
          all_strips(rows, block_rows());
          return std::vector<Value>();
        });
      }
      if (remaining > 0) {
        shift(place, whole * block_rows(), m_);
        all_strips(place, remaining);
      }
      return std::vector<Value>();
    });
    if (rest == 0) return;
    const Place before = base_;
    shift(base_, strips * width, n_);
    const Dim columns = n_;
    n_.size = rest;
    write_tiles();
    n_ = columns;
    base_ = before;
  }

  // scratch[k, j] = b[k, j] for a block and a strip.
  void pack(const Place& place, Value count) {
    const Scalar type = computed_type(output_.dtype);
    b_.loop(block(), {.extent_value = count}, {}, [&](Value k, std::span<const Value>) {
      Place row = place;
      add(row, k, k_);
      b_.loop(strip(), {.lanes = true}, {}, [&](Value j, std::span<const Value>) {
        Place from = row;
        add(from, j, n_);
        b_.store(b_.load(type, {right_buffer_, from.b_offset, from.b}), {scratch_, 0, {{k, strip()}, {j, 1}}});
        return std::vector<Value>();
      });
      return std::vector<Value>();
    });
  }

  // out[rows, strip] += a[rows, block] scratch[block, strip]
  void packed_tile(const Place& first, int64_t rows, Value count) {
    const Scalar type = computed_type(output_.dtype);
    b_.loop(strip(), {.lanes = true}, {}, [&](Value j, std::span<const Value>) {
      std::vector<Place> places(static_cast<std::size_t>(rows), first);
      std::vector<Builder::Initial> initial;
      for (int64_t i = 0; i < rows; ++i) {
        Place& place = places[static_cast<std::size_t>(i)];
        shift(place, i, m_);
        add(place, j, n_);
        initial.push_back({b_.load(type, {out_buffer_, place.out_offset, place.out})});
      }
      const std::vector<Value> sums =
          b_.loop(block(), {.extent_value = count}, initial, [&](Value k, std::span<const Value> carried) {
            const Value column = b_.load(type, {scratch_, 0, {{k, strip()}, {j, 1}}});
            std::vector<Value> next;
            for (std::size_t i = 0; i < places.size(); ++i) {
              Place place = places[i];
              add(place, k, k_);
              const Value a = b_.load(type, {left_buffer_, place.a_offset, place.a});
              next.push_back(b_.compute(Op::fma, a, column, carried[i]));
            }
            return next;
          });
      for (std::size_t i = 0; i < places.size(); ++i)
        b_.store(sums[i], {out_buffer_, places[i].out_offset, places[i].out});
      return std::vector<Value>();
    });
  }

  void tiles_along_k() {
    in_groups(m_, tile_rows / tile_columns, base_, [&](const Place& row, int64_t rows) {
      in_groups(n_, tile_columns, row, [&](const Place& first, int64_t columns) {
        std::vector<Place> sums;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            sums.push_back(first);
            shift(sums.back(), i, m_);
            shift(sums.back(), j, n_);
          }
        }
        accumulate(sums, {.lanes = true});
      });
    });
  }

  // Calls write(place, count) for `most` iterations at a time, and once for the remaining ones.
  template <class Write>
  void in_groups(const Dim& dim, int64_t most, const Place& place, const Write& write) {
    const int64_t whole = dim.size / most;
    if (whole == 1) {
      write(place, most);
    } else if (whole > 1) {
      b_.loop(whole, {}, {}, [&](Value group, std::span<const Value>) {
        Place here = place;
        add(here, group, dim, most);
        write(here, most);
        return std::vector<Value>();
      });
    }
    if (dim.size % most == 0) return;
    Place rest = place;
    shift(rest, whole * most, dim);
    write(rest, dim.size % most);
  }

  // Accumulates products over all of k, for operands that start at these places.
  void accumulate(const std::vector<Place>& places, Builder::LoopOptions options) {
    const Element zero = identity_element(b_, Monoid::add, dtype());
    std::vector<Builder::Initial> initial;
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (int part = 0; part < zero.count; ++part)
        initial.push_back(
            {zero.parts[part], options.lanes ? sum_op() : Op::constant, options.lanes ? zero.parts[part] : no_value});
    }
    std::vector<Dim> around = summed_;
    std::vector<Value> at;
    const std::function<std::vector<Value>(std::vector<Builder::Initial>)> over = [&](auto carried) {
      const bool last = at.size() == around.size();
      const Dim& dim = last ? k_ : around[at.size()];
      return b_.loop(dim.size, last ? options : Builder::LoopOptions{}, carried,
                     [&](Value index, std::span<const Value> sums) {
                       at.push_back(index);
                       std::vector<Value> next;
                       if (last) {
                         next = add_products(places, at, sums);
                       } else {
                         std::vector<Builder::Initial> inner;
                         for (Value sum : sums) inner.push_back({sum});
                         next = over(inner);
                       }
                       at.pop_back();
                       return next;
                     });
    };
    const std::vector<Value> sums = over(initial);
    for (std::size_t i = 0; i < places.size(); ++i) {
      Element element = zero;
      for (int part = 0; part < zero.count; ++part)
        element.parts[part] = sums[i * static_cast<std::size_t>(zero.count) + static_cast<std::size_t>(part)];
      element.stored = no_value;
      store_element(b_, output_.dtype, {out_buffer_, places[i].out_offset, places[i].out},
                    rounded_element(b_, output_.dtype, element));
    }
  }

  std::vector<Value> add_products(const std::vector<Place>& places, std::span<const Value> at,
                                  std::span<const Value> sums) {
    loaded_.clear();
    std::vector<Value> next;
    std::size_t sum = 0;
    for (const Place& start : places) {
      Place place = start;
      for (std::size_t i = 0; i < at.size(); ++i) add(place, at[i], i < summed_.size() ? summed_[i] : k_);
      const Element a = loaded(left_buffer_, left_.dtype, place.a_offset, place.a);
      const Element b = loaded(right_buffer_, right_.dtype, place.b_offset, place.b);
      if (!is_complex(dtype())) {
        next.push_back(plus(sums[sum++], a.parts[0], b.parts[0]));
        continue;
      }
      const Value real = sums[sum++], imaginary = sums[sum++], minus = b_.compute(Op::neg, a.parts[1]);
      next.push_back(plus(plus(real, a.parts[0], b.parts[0]), minus, b.parts[1]));
      next.push_back(plus(plus(imaginary, a.parts[0], b.parts[1]), a.parts[1], b.parts[0]));
    }
    return next;
  }

  Value plus(Value sum, Value a, Value b) {
    if (is_float(b_.type(sum))) return b_.compute(Op::fma, a, b, sum);
    const bool logical = b_.type(sum) == Scalar::i1;
    return b_.compute(logical ? Op::bit_or : Op::add, sum, b_.compute(logical ? Op::bit_and : Op::mul, a, b));
  }

  // Loads shared by several rows or columns of a tile are emitted once.
  Element loaded(int32_t buffer, DType dtype, int64_t offset, const std::vector<Term>& terms) {
    for (const Loaded& known : loaded_) {
      if (known.buffer == buffer && known.offset == offset && same(known.terms, terms)) return known.element;
    }
    const Element element = load_element(b_, dtype, {buffer, offset, terms});
    loaded_.push_back({buffer, offset, terms, wide(dtype, element)});
    return loaded_.back().element;
  }
  Element wide(DType from, const Element& element) {
    if (computed_type(from) == computed_type(dtype()) && part_count(from) == part_count(dtype())) return element;
    return convert_element(b_, from, dtype(), element);
  }
  static bool same(const std::vector<Term>& a, const std::vector<Term>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Term& x, const Term& y) { return x.index == y.index && x.factor == y.factor; });
  }

  // The accumulator type: float32 for narrower floats.
  DType dtype() const {
    return is_floating(output_.dtype) && computed_type(output_.dtype) == Scalar::f32 ? DType::float32 : output_.dtype;
  }
  bool sums_in_lanes() const { return combine_op(Monoid::add, dtype()).has_value(); }
  Op sum_op() const { return *combine_op(Monoid::add, dtype()); }

  struct Loaded {
    int32_t buffer;
    int64_t offset;
    std::vector<Term> terms;
    Element element;
  };

  Function function_;
  Builder b_;
  const ArrayType &left_, &right_, &output_;
  int32_t left_buffer_, right_buffer_, out_buffer_;
  int32_t scratch_ = -1;  // packed columns
  std::vector<Dim> batch_, rows_, columns_, summed_;
  Dim m_, n_, k_;
  Place base_;
  std::vector<Loaded> loaded_;
};

}  // namespace

Function dot_general(const Types& inputs, const Types& outputs, const Attrs& attrs) {
  return Matmul(inputs, outputs[0], attrs.get<DotDimensionNumbers>("dimension_numbers")).write();
}

}  // namespace capibara::cpu::routines
