// dot_general: sorts dimensions into batch, rows, columns and inner, then runs matmuls.
#include "lax/contract/contract.h"

#include <atomic>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm/amx/amx_product.h"
#include "backends/cpu/kernels/gemm/gemm_parts.h"
#include "backends/cpu/kernels/gemm/gemm_tile.h"
#include "backends/cpu/kernels/gemm/gemm_unpacked.h"
#include "backends/cpu/kernels/gemm/gemv.h"
#include "backends/cpu/kernels/gemm/product.h"
#include "backends/reference/kernels.h"
#include "core/runtime/once.h"

namespace capibara::cpu {

ProductTypes product_types(const KernelRequest& request) {
  ProductTypes types{request.inputs[0].dtype, request.inputs[1].dtype, request.inputs[0].dtype, request.inputs[1].dtype,
                     request.outputs[0].dtype};
  if (const std::string* algorithm = request.attrs["precision"].get_if<std::string>()) {
    static constexpr std::pair<std::string_view, DType> rounding[] = {{"F16_F16_F16", DType::float16},
                                                                      {"F16_F16_F32", DType::float16},
                                                                      {"BF16_BF16_BF16", DType::bfloat16},
                                                                      {"BF16_BF16_F32", DType::bfloat16}};
    for (const auto& [name, dtype] : rounding) {
      if (*algorithm == name) {
        types.lhs_rounded = types.rhs_rounded = dtype;
        return types;
      }
    }
  }
  auto is_float8 = [](DType dtype) { return is_floating(dtype) && bits(dtype) == 8; };
  if (types.lhs != types.rhs && !(is_float8(types.lhs) && is_float8(types.rhs)))
    types.lhs_rounded = types.rhs_rounded = types.out;
  return types;
}

namespace {

// `parts` 2: complex numbers as two adjacent real ones each.
Axis axis_of(const ArrayType& type, const Ints& dims, int64_t parts = 1, bool both_parts = false) {
  Ints strides = reference::row_major_strides(type.shape), sizes, steps;
  for (int64_t d : dims) {
    sizes.push_back(type.shape[static_cast<std::size_t>(d)]);
    steps.push_back(strides[static_cast<std::size_t>(d)] * parts);
  }
  if (both_parts) {
    sizes.push_back(2);
    steps.push_back(1);
  }
  return Axis(sizes, steps);
}

// Operands that never change, packed by the first run.
struct PackedConstants {
  Once left_once, right_once;
  Scratch<std::byte> left, right;
};
// Packing them pays if they are large and meet few rows or columns; otherwise it is a small part of the matmul.
constexpr int64_t constant_bytes = 8 * 1024, constant_rows = 1024;

constexpr double small_product = 4096;    // multiplications: plain loops
constexpr double small_vector = 64;       // the same for a vector of floats by a matrix, which has loops of its own
constexpr double max_unpacked = 1 << 21;  // multiplications: operands are not packed
constexpr int64_t in_place_bytes = 64 * 1024;           // a right operand that stays in the L1 cache is not packed
constexpr int64_t narrow_rows = 96, narrow_inner = 16;  // of matmuls with few columns that are not packed

struct DotPlan {
  ProductTypes types;
  int64_t lhs_size, rhs_size, out_size;
  Axis lhs_batch, lhs_free, lhs_inner, rhs_batch, rhs_free, rhs_inner;
  Axis out_rows, out_columns;
  std::shared_ptr<PackedConstants> packed;  // null: no operand is constant
  bool left_constant = false, right_constant = false;
  Axis real_free, real_inner, real_rows, real_columns;  // of a complex left operand and result

  int64_t rows() const { return out_rows.extent(); }
  int64_t columns() const { return out_columns.extent(); }
  int64_t inner() const { return lhs_inner.extent(); }

  // True if the rows of both operands are contiguous in memory.
  bool in_rows() const {
    auto contiguous = [](const Axis& rows, const Axis& elements) {
      return rows.is_regular() && elements.is_regular() && (elements.extent() == 1 || elements.stride() == 1);
    };
    return contiguous(lhs_free, lhs_inner) && contiguous(rhs_inner, rhs_free);
  }
  // True if both operands are read in place: they stay in the L1 cache, and few tiles read each of them.
  bool stays_unpacked(std::size_t size) const {
    const auto m = static_cast<double>(rows()), n = static_cast<double>(columns()), k = static_cast<double>(inner());
    return rows() > 1 && inner() > 0 && columns() <= 256 && k * n * static_cast<double>(size) <= in_place_bytes &&
           m * n * k <= max_unpacked && in_rows();
  }
  // True if many rows meet few columns.
  bool is_narrow() const { return rows() >= narrow_rows && inner() >= narrow_inner && in_rows(); }

  // True if a matmul rounds its sums to bfloat16 itself, while they are in the cache.
  template <class K>
  bool rounds() const {
    if constexpr (IsAmxKind<K> && std::is_same_v<typename K::Sum, float>) {
      const bool vector = rows() == 1 || columns() == 1;
      return types.out == DType::bfloat16 && !vector && inner() > 0 && inner_parts(rows(), columns(), inner()) == 1;
    }
    return false;
  }

  // `bfloat16s`: destination of rounded sums; null if the matmul does not round. `next_lhs`, `next_rhs`: operands of
  // the next matmul of a batch; may be null.
  template <class K, class S>
  void multiply(const S* lhs, const S* rhs, typename K::Sum* out, const Finish* finish, Bfloat16Bits* bfloat16s,
                const S* next_lhs, const S* next_rhs) const {
    using P = typename K::Packed;
    const int64_t m = rows(), n = columns(), k = inner();
    const Matrix<S> left{lhs, lhs_free, lhs_inner}, right{rhs, rhs_free, rhs_inner};
    constexpr bool floats = std::is_same_v<S, float> || std::is_same_v<S, double>;
    const bool vector = floats && (m == 1 || n == 1);
    const double products = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    if constexpr (floats) {
      if (!vector && stays_unpacked(sizeof(S)) &&
          multiply_unpacked<S>({m, k, n, lhs, lhs_free.stride(), rhs, rhs_inner.stride(), out, next_lhs, next_rhs}))
        return done(finish);
      if (!vector && is_narrow() &&
          multiply_narrow<S>({m, k, n, lhs, lhs_free.stride(), rhs, rhs_inner.stride(), out}, finish))
        return;
    }
    if constexpr (std::is_same_v<S, typename K::Sum>) {
      if (k == 0 || products <= (vector ? small_vector : small_product)) {
        multiply_small<S>(left, right, out, out_rows, out_columns);
        return done(finish);
      }
    } else if (k == 0) {
      std::fill_n(out, m * n, typename K::Sum(0));
      return done(finish);
    }
    if constexpr (std::is_same_v<S, typename K::Sum> || std::is_same_v<typename K::Sum, float>) {
      if (multiply_vector<S, typename K::Sum>(left, right, out, out_rows, out_columns)) return done(finish);
    }
    if constexpr (std::is_same_v<S, typename K::Sum>) {
      if (products <= small_product) {
        multiply_small<S>(left, right, out, out_rows, out_columns);
        return done(finish);
      }
    }
    auto pack_left = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, P* block) {
      pack_operand<K, S>(left, AmxSide::left, first, count, k0, some, width, block);
    };
    auto pack_right = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, P* block) {
      pack_operand<K, S>(right, AmxSide::right, first, count, k0, some, width, block);
    };
    Product<K> product{k, pack_left, pack_right, out, out_rows, out_columns, finish};
    read_in_place<K, S>(left, right, product);
    product.bfloat16s = bfloat16s;
    if constexpr (std::is_same_v<S, P> && K::together == 1) {
      const bool close =
          rhs_free.is_regular() && rhs_free.contiguous(0, n) && rhs_inner.is_regular() && n % best_tile<K>().lanes == 0;
      if (close && k * n * static_cast<int64_t>(sizeof(S)) <= in_place_bytes) {
        product.right_in_place = rhs;
        product.right_stride = rhs_inner.stride();
      }
    }
    if (packed) use_packed<K>(product);
    product.run();
  }

  template <class K>
  void use_packed(Product<K>& product) const {
    using P = typename K::Packed;
    const int64_t max_extent = constant_rows * 4 / static_cast<int64_t>(sizeof(P));
    auto kept = [&](Once& once, Scratch<std::byte>& hold, int64_t size, auto&& pack) -> const P* {
      const int64_t bytes = size * static_cast<int64_t>(sizeof(P));
      if (bytes < constant_bytes) return nullptr;
      once.run([&] {
        Scratch<std::byte> all(bytes, "packing of a constant matrix");
        pack(reinterpret_cast<P*>(all.data()));
        hold = std::move(all);
      });
      return reinterpret_cast<const P*>(hold.data());
    };
    if (right_constant && !product.right_in_place && rows() <= max_extent) {
      product.packed_right =
          kept(packed->right_once, packed->right, product.packed_right_size(), [&](P* to) { product.pack_right(to); });
    }
    if (left_constant && columns() <= max_extent) {
      product.packed_left =
          kept(packed->left_once, packed->left, product.packed_left_size(), [&](P* to) { product.pack_left(to); });
    }
  }

  template <class R>
  void multiply_complex(const std::complex<R>* lhs, const std::complex<R>* rhs, std::complex<R>* out) const {
    using T = std::complex<R>;
    using K = typename KindOf<R>::type;
    const int64_t m = rows(), n = columns(), k = inner();
    const Matrix<T> left{lhs, lhs_free, lhs_inner}, right{rhs, rhs_free, rhs_inner};
    if (k == 0 || static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <= small_product / 4) {
      return multiply_small<T>(left, right, out, out_rows, out_columns);
    }
    if (multiply_vector<T, T>(left, right, out, out_rows, out_columns)) return;
    auto pack_left = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, R* block) {
      pack_matrix<K, R>(reinterpret_cast<const R*>(lhs), real_free, real_inner, first, count, k0, some, width, block);
    };
    auto pack_right = [&](int64_t first, int64_t count, int64_t k0, int64_t some, int64_t width, R* block) {
      for (int64_t i = 0; i < count; i += width) {
        pack_spread<R>(rhs, rhs_free, rhs_inner, first + i, std::min(width, count - i), k0, some, width,
                       block + i * some);
      }
    };
    Product<K>{2 * k, pack_left, pack_right, reinterpret_cast<R*>(out), real_rows, real_columns}.run();
  }

  void done(const Finish* finish) const {
    if (finish) (*finish)(0, rows(), 0, columns());
  }

  // Calls one(b) for every batch entry: a few large matmuls are each split among threads, many are distributed whole.
  template <class F>
  void each(double cost, F&& one) const {
    const int64_t batch = lhs_batch.extent();
    if (batch == 1 || (batch < 8 && cost > 1e5)) {
      for (int64_t b = 0; b < batch; ++b) one(b);
      return;
    }
    parallel_for_cost(batch, 100 + cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) one(b);
      return 0;
    });
  }

  // True if rows of the result are complete long before all of it is, and are read faster then: blocks of many rows of
  // a result that does not stay in the cache, or matrices of a batch that are converted. (Reading each f32 matrix of a
  // batch at once gained nothing: it disturbs the matmul's own prefetching.)
  bool finishes_in_blocks() const {
    constexpr int64_t few_rows = 160, many_columns = 2048, narrow = 16;
    if (is_complex(types.out) || columns() < narrow) return false;
    const int64_t bytes = out_size * storage_size(types.out);
    if (lhs_batch.extent() > 1) return lhs_batch.extent() >= 8 && bits(types.out) == 16 && bytes >= 1 << 20;
    return rows() > few_rows && columns() <= many_columns && bytes >= 4 << 20;
  }

  template <class K, class S>
  void run_as(const S* lhs, const S* rhs, ProductResult<typename K::Sum>& result, const RowsDone* rows_done) const {
    const int64_t n = columns(), step = rows() * n;
    typename K::Sum* out = result.values();
    if constexpr (std::is_same_v<S, float> || std::is_same_v<S, double>) {
      if (!rows_done && run_tiny<S>(lhs, rhs, out)) return result.convert_all();
    }
    Bfloat16Bits* bfloat16s = rounds<K>() ? reinterpret_cast<Bfloat16Bits*>(result.data()) : nullptr;
    const bool converts = result.converts() && !bfloat16s;
    std::vector<std::atomic<int64_t>> finished(rows_done ? static_cast<std::size_t>(lhs_batch.extent() * rows())
                                                         : 0);  // columns done, at the first row of a block
    each(multiply_cost<K>(static_cast<double>(step) * static_cast<double>(inner())), [&](int64_t b) {
      auto complete = [&](int64_t row, int64_t count, int64_t column, int64_t width) {
        if (converts) {
          if (width == n)
            result.convert(b * step + row * n, count * n);
          else
            for (int64_t i = row; i < row + count; ++i) result.convert(b * step + i * n + column, width);
        }
        if (!rows_done) return;
        const int64_t first = b * rows() + row;
        if (width < n &&
            finished[static_cast<std::size_t>(first)].fetch_add(width, std::memory_order_acq_rel) + width < n)
          return;
        (*rows_done)(first, count);
      };
      const Finish finish = complete;
      const bool more = b + 1 < lhs_batch.extent();
      multiply<K, S>(lhs + lhs_batch.at(b), rhs + rhs_batch.at(b), out + b * step,
                     converts || rows_done ? &finish : nullptr, bfloat16s ? bfloat16s + b * step : nullptr,
                     more ? lhs + lhs_batch.at(b + 1) : nullptr, more ? rhs + rhs_batch.at(b + 1) : nullptr);
    });
  }

  // Matrices of a few elements, with rows stored back to back.
  template <class T>
  bool run_tiny(const T* lhs, const T* rhs, T* out) const {
    const int64_t m = rows(), n = columns(), k = inner(), batch = lhs_batch.extent();
    auto step_is = [](const Axis& axis, int64_t step) {
      return axis.is_regular() && (axis.extent() == 1 || axis.stride() == step);
    };
    if (k > 4 || n > 4 || (batch == 1 && m < 64) || !lhs_batch.is_regular() || !rhs_batch.is_regular()) return false;
    if (!step_is(lhs_inner, 1) || !step_is(lhs_free, k) || !step_is(rhs_free, 1) || !step_is(rhs_inner, n))
      return false;
    return multiply_tiny<T>(batch, m, k, n, lhs, lhs_batch.stride(), rhs, rhs_batch.stride(), out);
  }

  // True if the right operand is bytes by which a few rows of floats are multiplied unconverted: 8-bit weights.
  bool by_bytes() const {
    const bool floats = types.lhs == DType::float32 || types.lhs == DType::bfloat16;
    return floats && types.rhs == DType::int8 && (types.out == types.lhs || types.out == DType::float32) &&
           lhs_batch.extent() == 1 && inner() > 0;
  }

  bool run_by_bytes(std::byte* const* buffers) const {
    Scratch<float> hold;
    const float* lhs = product_operand<float>(types.lhs, types.lhs, buffers[0], lhs_size, hold);
    ProductResult<float> result(types.out, buffers[2], out_size);
    const Matrix<float> left{lhs, lhs_free, lhs_inner};
    const Matrix<std::int8_t> right{reinterpret_cast<const std::int8_t*>(buffers[1]), rhs_free, rhs_inner};
    if (!multiply_by_bytes(left, right, result.values(), out_rows, out_columns)) return false;
    result.convert_all();
    return true;
  }

  template <class T>
  void run(std::byte* const* buffers, const RowsDone* rows_done) const {
    Scratch<T> lhs_hold, rhs_hold;
    const T* lhs = product_operand<T>(types.lhs, types.lhs_rounded, buffers[0], lhs_size, lhs_hold);
    const T* rhs = product_operand<T>(types.rhs, types.rhs_rounded, buffers[1], rhs_size, rhs_hold);
    ProductResult<T> result(types.out, buffers[2], out_size);
    if constexpr (Parts<T>::count == 2) {
      using K = typename KindOf<Real<T>>::type;
      const int64_t step = rows() * columns();
      each(4 * multiply_cost<K>(static_cast<double>(step) * static_cast<double>(inner())), [&](int64_t b) {
        multiply_complex(lhs + lhs_batch.at(b), rhs + rhs_batch.at(b), result.values() + b * step);
      });
      result.convert_all();
    } else {
      run_as<typename KindOf<T>::type, T>(lhs, rhs, result, rows_done);
    }
  }
};

std::shared_ptr<const DotPlan> plan_of(const KernelRequest& request) {
  const auto& numbers = request.attrs.get<DotDimensionNumbers>("dimension_numbers");
  const ArrayType &lhs = request.inputs[0], &rhs = request.inputs[1], &out = request.outputs[0];
  DotPlan plan;
  plan.types = product_types(request);
  plan.lhs_size = lhs.size();
  plan.rhs_size = rhs.size();
  plan.out_size = out.size();
  const Ints lhs_free = remaining_dims(lhs.rank(), numbers.lhs_contracting, numbers.lhs_batch);
  plan.lhs_batch = axis_of(lhs, numbers.lhs_batch);
  plan.rhs_batch = axis_of(rhs, numbers.rhs_batch);
  plan.lhs_inner = axis_of(lhs, numbers.lhs_contracting);
  plan.rhs_inner = axis_of(rhs, numbers.rhs_contracting);
  plan.lhs_free = axis_of(lhs, lhs_free);
  plan.rhs_free = axis_of(rhs, remaining_dims(rhs.rank(), numbers.rhs_contracting, numbers.rhs_batch));
  const int64_t m = plan.lhs_free.extent(), n = plan.rhs_free.extent();
  plan.out_rows = Axis::regular(m, n);
  plan.out_columns = Axis::regular(n, 1);
  if (is_complex(plan.types.out)) {
    plan.real_free = axis_of(lhs, lhs_free, 2);
    plan.real_inner = axis_of(lhs, numbers.lhs_contracting, 2, true);
    plan.real_rows = Axis::regular(m, 2 * n);
    plan.real_columns = Axis::regular(2 * n, 1);
  } else if (plan.lhs_batch.extent() == 1) {
    plan.left_constant = request.is_constant(0);
    plan.right_constant = request.is_constant(1);
    if (plan.left_constant || plan.right_constant) plan.packed = std::make_shared<PackedConstants>();
  }
  return std::make_shared<const DotPlan>(std::move(plan));
}

using PlannedProduct = std::function<void(std::byte* const* buffers, const RowsDone* rows_done)>;

PlannedProduct planned(const std::shared_ptr<const DotPlan>& plan) {
  PlannedProduct product;
  auto in_place = [&]<class K, class S>(K, Type<S>) {
    product = [plan](std::byte* const* buffers, const RowsDone* rows_done) {
      if (plan->out_size == 0) return;
      ProductResult<typename K::Sum> result(plan->types.out, buffers[2], plan->out_size);
      const S *lhs = reinterpret_cast<const S*>(buffers[0]), *rhs = reinterpret_cast<const S*>(buffers[1]);
      plan->run_as<K, S>(lhs, rhs, result, rows_done);
    };
  };
  if (visit_amx_product(plan->types, in_place)) return product;
  if (visit_narrow_product(plan->types, in_place) || visit_mixed_product(plan->types, in_place)) return product;
  visit_product_type(plan->types, [&]<class T>(Type<T>) {
    product = [plan](std::byte* const* buffers, const RowsDone* rows_done) {
      if (plan->out_size == 0 || (!rows_done && plan->by_bytes() && plan->run_by_bytes(buffers))) return;
      plan->run<T>(buffers, rows_done);
    };
  });
  return product;
}

HostKernel make_dot_general(const KernelRequest& request) {
  PlannedProduct product = planned(plan_of(request));
  if (!product) return {};
  return [product = std::move(product)](std::byte* const* buffers) { product(buffers, nullptr); };
}

}  // namespace

ProductKernel product_kernel(const Types& inputs, const Types& outputs, const Attrs& attrs,
                             const std::vector<bool>& constants) {
  const std::shared_ptr<const DotPlan> plan = plan_of({inputs, outputs, attrs, constants});
  PlannedProduct product = plan->finishes_in_blocks() ? planned(plan) : PlannedProduct();
  if (!product) return {};
  return {plan->lhs_batch.extent() * plan->rows(),
          [product = std::move(product)](std::byte* const* buffers, const RowsDone& done) { product(buffers, &done); }};
}

KernelMakers dot_makers() { return {{"dot_general", make_dot_general}}; }

}  // namespace capibara::cpu
