// Reference kernels of dot products: operands permuted to matrices, sums accumulated in a wide type and rounded once.
#include <algorithm>
#include <cstring>

#include "backends/reference/products.h"
#include "backends/reference/regions.h"
#include "lax/contract/contract.h"
#include "lax/contract/ragged_dot.h"
#include "lax/math/denormals.h"

namespace capibara::reference {

namespace {

int64_t size_of(const Shape& shape, const Ints& dims) {
  int64_t size = 1;
  for (int64_t d : dims) size *= shape[static_cast<std::size_t>(d)];
  return size;
}

Ints joined(std::initializer_list<Ints> parts) {
  Ints all;
  for (const Ints& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// out[m, n] += lhs[m, k] * rhs[k, n]; blocks of rhs stay in cache, and each result accumulates k in increasing order.
template <class A>
void multiply_add(const A* lhs, const A* rhs, A* out, int64_t rows, int64_t inner, int64_t columns) {
  constexpr int64_t column_block = 256, inner_block = 128;
  for (int64_t n0 = 0; n0 < columns; n0 += column_block) {
    int64_t n1 = std::min(n0 + column_block, columns);
    for (int64_t k0 = 0; k0 < inner; k0 += inner_block) {
      int64_t k1 = std::min(k0 + inner_block, inner);
      for (int64_t m = 0; m < rows; ++m) {
        A* target = out + m * columns;
        for (int64_t k = k0; k < k1; ++k) add_scaled(lhs[m * inner + k], rhs + k * columns + n0, target + n0, n1 - n0);
      }
    }
  }
}

Arrays dot_general(const KernelArgs& args) {
  const math::FlushDenormals flush;
  const auto& numbers = args.attrs.get<DotDimensionNumbers>("dimension_numbers");
  const ArrayType& out_type = args.output_types[0];
  auto [lhs, rhs] = product_operands(args.inputs[0], args.inputs[1], out_type.dtype, args.attrs);
  Ints lhs_free = remaining_dims(lhs.ndim(), numbers.lhs_contracting, numbers.lhs_batch);
  Ints rhs_free = remaining_dims(rhs.ndim(), numbers.rhs_contracting, numbers.rhs_batch);
  int64_t batch = size_of(lhs.shape(), numbers.lhs_batch), rows = size_of(lhs.shape(), lhs_free);
  int64_t inner = size_of(lhs.shape(), numbers.lhs_contracting), columns = size_of(rhs.shape(), rhs_free);
  Array left = permute(lhs, joined({numbers.lhs_batch, lhs_free, numbers.lhs_contracting}));
  Array right = permute(rhs, joined({numbers.rhs_batch, numbers.rhs_contracting, rhs_free}));
  Output out = allocate(out_type);
  visit_product(lhs.dtype(), rhs.dtype(), out_type.dtype, inner, [&]<class A>(Type<A>) {
    auto x = read_all<A>(left.dtype(), left.raw_data(), left.size());
    auto y = read_all<A>(right.dtype(), right.raw_data(), right.size());
    Elements<A> sums(out_type.size());
    for (int64_t b = 0; b < batch; ++b) {
      multiply_add(x.data() + b * rows * inner, y.data() + b * inner * columns, sums.data() + b * rows * columns, rows,
                   inner, columns);
    }
    store_all<A>(out_type.dtype, out.data, sums);
  });
  return {out.array};
}

// The group of each position along the ragged dimension, for every prefix; -1 after the last group.
std::vector<int64_t> group_of_positions(const Array& sizes, int64_t prefixes, int64_t length) {
  int64_t groups = sizes.shape(-1);
  std::vector<int64_t> group(static_cast<std::size_t>(prefixes * length), -1);
  for (int64_t p = 0; p < prefixes; ++p) {
    int64_t row = sizes.ndim() == 1 ? 0 : p, end = 0;
    for (int64_t g = 0; g < groups; ++g) {
      int64_t start = end;
      end = start + std::max<int64_t>(0, element_as_int64(sizes.dtype(), sizes.raw_data(), row * groups + g));
      for (int64_t i = std::min(start, length); i < std::min(end, length); ++i)
        group[static_cast<std::size_t>(p * length + i)] = g;
    }
  }
  return group;
}

// Sizes before, of and after the ragged one among dimensions in row-major order: [before, ragged, after].
struct Around {
  int64_t before = 1, length = 1, after = 1;
  Around(const Shape& shape, const Ints& dims, int64_t ragged) {
    bool passed = false;
    for (int64_t d : dims) {
      int64_t size = shape[static_cast<std::size_t>(d)];
      if (d == ragged) {
        length = size;
        passed = true;
      } else {
        (passed ? after : before) *= size;
      }
    }
  }
};

Arrays ragged_dot_general(const KernelArgs& args) {
  const math::FlushDenormals flush;
  auto numbers = args.attrs.opaque<RaggedDotDimensionNumbers>("ragged_dot_dimension_numbers");
  const DotDimensionNumbers& dot = numbers->dot;
  RaggedMode mode = ragged_mode(*numbers);
  const ArrayType& out_type = args.output_types[0];
  if (mode == RaggedMode::batch) {
    Attrs plain = args.attrs.with("dimension_numbers", dot);
    return dot_general({args.inputs.subspan(0, 2), args.output_types, plain});
  }
  auto [lhs, rhs] = product_operands(args.inputs[0], args.inputs[1], out_type.dtype, args.attrs);
  const Array& sizes = args.inputs[2];
  int64_t ragged = numbers->lhs_ragged_dimensions[0];
  const Ints& group_dims = numbers->rhs_group_dimensions;
  Ints lhs_free = remaining_dims(lhs.ndim(), dot.lhs_contracting, dot.lhs_batch);
  Ints rhs_free = remaining_dims(rhs.ndim(), dot.rhs_contracting, dot.rhs_batch, group_dims);
  int64_t batch = size_of(lhs.shape(), dot.lhs_batch), rows = size_of(lhs.shape(), lhs_free);
  int64_t inner = size_of(lhs.shape(), dot.lhs_contracting), columns = size_of(rhs.shape(), rhs_free);
  Array left = permute(lhs, joined({dot.lhs_batch, lhs_free, dot.lhs_contracting}));
  Array right = permute(rhs, joined({group_dims, dot.rhs_batch, dot.rhs_contracting, rhs_free}));
  bool contracting = mode == RaggedMode::contracting;
  Around around(lhs.shape(), contracting ? dot.lhs_contracting : lhs_free, ragged);
  std::vector<int64_t> groups = group_of_positions(sizes, batch * around.before, around.length);
  auto group_at = [&](int64_t b, int64_t position) {
    int64_t outer = position / around.after;  // (before, ragged)
    return groups[static_cast<std::size_t>((b * around.before + outer / around.length) * around.length +
                                           outer % around.length)];
  };
  Output out = allocate(out_type);
  visit_product(lhs.dtype(), rhs.dtype(), out_type.dtype, inner, [&]<class A>(Type<A>) {
    auto x = read_all<A>(left.dtype(), left.raw_data(), left.size());
    auto y = read_all<A>(right.dtype(), right.raw_data(), right.size());
    Elements<A> sums(out_type.size());
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t m = 0; m < rows; ++m) {
        int64_t row = b * rows + m;
        for (int64_t k = 0; k < inner; ++k) {
          int64_t group = group_at(b, contracting ? k : m);
          if (group < 0) continue;
          int64_t from = contracting ? b * inner + k : (group * batch + b) * inner + k;
          int64_t to = contracting ? group * batch * rows + row : row;
          add_scaled(x[row * inner + k], y.data() + from * columns, sums.data() + to * columns, columns);
        }
      }
    }
    store_all<A>(out_type.dtype, out.data, sums);
  });
  return {out.array};
}

}  // namespace

KernelList convolution_kernels();

KernelList contract_kernels() {
  KernelList kernels = {{"dot_general", dot_general}, {"ragged_dot_general", ragged_dot_general}};
  for (const KernelEntry& entry : convolution_kernels()) kernels.push_back(entry);
  return kernels;
}

std::pair<Array, Array> product_operands(const Array& lhs, const Array& rhs, DType out, const Attrs& attrs) {
  if (const std::string* algorithm = attrs["precision"].get_if<std::string>()) {
    static const std::pair<const char*, DType> rounding[] = {{"F16_F16_F16", DType::float16},
                                                             {"F16_F16_F32", DType::float16},
                                                             {"BF16_BF16_BF16", DType::bfloat16},
                                                             {"BF16_BF16_F32", DType::bfloat16}};
    for (const auto& [name, dtype] : rounding) {
      if (*algorithm == name) return {converted(lhs, dtype), converted(rhs, dtype)};
    }
  }
  auto is_float8 = [](DType dtype) { return is_floating(dtype) && bits(dtype) == 8; };
  bool mixed = lhs.dtype() != rhs.dtype() && !(is_float8(lhs.dtype()) && is_float8(rhs.dtype()));
  return mixed ? std::pair{converted(lhs, out), converted(rhs, out)} : std::pair{lhs, rhs};
}

}  // namespace capibara::reference
