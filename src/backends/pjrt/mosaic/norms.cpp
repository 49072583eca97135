// TPU kernels of RMS norm and layer norm and of their reverse derivatives: blocks of whole rows.
#include <capibara/lax.h>

#include <algorithm>

#include "backends/pjrt/mosaic/kernels.h"

namespace capibara::mosaic {

namespace {

namespace lax = jax::lax;
using Order = Kernel::Order;
using Reduction = Kernel::Reduction;

struct Rows {
  int64_t rows, columns, block;
  int64_t blocks() const { return blocks_of(rows, block); }
};

// nullopt: the kernels do not take such rows.
std::optional<Rows> rows_of(const ArrayType& x) {
  constexpr int64_t block_elements = 1 << 17, min_rows = 16, max_rows = 512, max_columns = 1 << 14;
  if (x.dtype != DType::float32 && x.dtype != DType::bfloat16) return std::nullopt;
  if (x.size() == 0 || x.rank() == 0 || x.shape.back() > max_columns) return std::nullopt;
  Rows rows{x.size() / x.shape.back(), x.shape.back(), 0};
  const int64_t fitting = block_elements / ((rows.columns + 127) / 128 * 128) / min_rows * min_rows;
  rows.block = std::min(rows.rows, std::clamp(fitting, min_rows, max_rows));
  return rows;
}

std::vector<Value> block_of_rows(const Point& point) { return {point.at[0], point.kernel.constant(0)}; }
std::vector<Value> whole(const Point& point) { return {point.kernel.constant(0), point.kernel.constant(0)}; }

// The parts of a kernel on blocks of rows.
class RowKernel {
 public:
  RowKernel(const char* name, const Rows& rows, DType dtype, Order order)
      : rows_(rows), dtype_(dtype), kernel_(name, {{rows.blocks(), order}}) {}

  Kernel& kernel() { return kernel_; }
  void take_matrix(const char* name, const Array& x) {
    operands_.push_back(x.reshape({rows_.rows, rows_.columns}));
    refs_.push_back(kernel_.input(name, operands_.back().type(), {rows_.block, rows_.columns}, block_of_rows));
  }
  void take_row(const char* name, const Array& x) {  // one number per column
    operands_.push_back(x.reshape({1, rows_.columns}));
    refs_.push_back(kernel_.input(name, operands_.back().type(), {1, rows_.columns}, whole));
  }
  void take_column(const char* name, const Array& x) {  // one number per row
    operands_.push_back(x.reshape({rows_.rows, 1}));
    refs_.push_back(kernel_.input(name, operands_.back().type(), {rows_.block, 1}, block_of_rows));
  }
  Ref give_matrix(const char* name) {
    return kernel_.output(name, array_type(dtype_, {rows_.rows, rows_.columns}), {rows_.block, rows_.columns},
                          block_of_rows);
  }
  Ref give_column(const char* name) {
    return kernel_.output(name, array_type(DType::float32, {rows_.rows, 1}), {rows_.block, 1}, block_of_rows);
  }
  Ref give_sums(const char* name) {  // over all rows
    return kernel_.output(name, array_type(DType::float32, {1, rows_.columns}), {1, rows_.columns}, whole);
  }
  Value read(std::size_t i) { return kernel_.convert(kernel_.load(refs_[i]), Element::f32); }
  void write(const Value& value, const Ref& ref) { kernel_.store(kernel_.convert(value, ref.element), ref); }
  Value mean(const Value& x) {
    return kernel_.reduce(Reduction::add, x, 1) * (1.0 / static_cast<double>(rows_.columns));
  }

  // Adds the sums over a block's rows to an output that stays in VMEM. The last block may reach beyond the rows, where
  // nothing is known of the values.
  void add_sums(const Value& x, const Ref& ref) {
    Value own = x;
    if (rows_.rows % rows_.block != 0) {
      const Value first = kernel_.point(0) * static_cast<double>(rows_.block);
      const Value row = kernel_.iota(*x.shape, 0) + first;
      const Value inside = less(row, like(row, static_cast<double>(rows_.rows)));
      own = kernel_.select(inside, x, like(x, 0));
    }
    kernel_.store(kernel_.load(ref) + kernel_.reduce(Reduction::add, own, 0), ref);
  }
  void clear_at_start(const std::vector<Ref>& refs) {
    kernel_.when(equal(kernel_.point(0), kernel_.constant(0)), [&] {
      for (const Ref& ref : refs) kernel_.store(kernel_.filled(0, Element::f32, ref.shape), ref);
    });
  }

  Arrays call(double flops_per_element) {
    const int64_t elements = rows_.rows * rows_.columns;
    kernel_.cost.flops = static_cast<int64_t>(flops_per_element * static_cast<double>(elements));
    kernel_.cost.transcendentals = rows_.rows;
    return mosaic::call(kernel_, operands_);
  }

 private:
  Rows rows_;
  DType dtype_;
  Kernel kernel_;
  Arrays operands_;
  std::vector<Ref> refs_;
};

Shape row_shape(const Array& x) { return Shape(x.shape().begin(), x.shape().end() - 1); }

// (x, scale) -> (y, 1 / root mean square)
Arrays rms_norm(std::span<const Array> in, const Attrs& attrs) {
  const Array& x = in[0];
  const std::optional<Rows> rows = rows_of(x.type());
  if (!rows) return {};
  RowKernel own("capibara_rms_norm", *rows, x.dtype(), Order::parallel);
  own.take_matrix("x", x);
  own.take_row("scale", in[1]);
  const Ref y = own.give_matrix("y"), inverse = own.give_column("inverse");
  const Value value = own.read(0), root = rsqrt(own.mean(value * value) + attrs.real("epsilon"));
  const Value normal = value * root;
  own.write(normal * own.read(1), y);
  own.write(root, inverse);
  const Arrays results = own.call(4);
  return {results[0].reshape(x.shape()), results[1].reshape(row_shape(x))};
}

// (dy, x, scale, 1 / root mean square) -> (dx, dscale)
Arrays rms_norm_grad(std::span<const Array> in, const Attrs&) {
  const Array& x = in[1];
  const std::optional<Rows> rows = rows_of(x.type());
  if (!rows) return {};
  RowKernel own("capibara_rms_norm_grad", *rows, x.dtype(), Order::arbitrary);
  own.take_matrix("dy", in[0]);
  own.take_matrix("x", x);
  own.take_row("scale", in[2]);
  own.take_column("inverse", in[3]);
  const Ref dx = own.give_matrix("dx"), dscale = own.give_sums("dscale");
  own.clear_at_start({dscale});
  const Value dy = own.read(0), inverse = own.read(3), normal = own.read(1) * inverse;
  const Value weighted = dy * own.read(2), mean = own.mean(weighted * normal);
  own.write((weighted - normal * mean) * inverse, dx);
  own.add_sums(dy * normal, dscale);
  const Arrays results = own.call(10);
  return {results[0].reshape(x.shape()), results[1].reshape(in[2].shape()).astype(in[2].dtype())};
}

// (x, scale, bias) -> (y, mean, 1 / deviation)
Arrays layer_norm(std::span<const Array> in, const Attrs& attrs) {
  const Array& x = in[0];
  const std::optional<Rows> rows = rows_of(x.type());
  if (!rows) return {};
  RowKernel own("capibara_layer_norm", *rows, x.dtype(), Order::parallel);
  own.take_matrix("x", x);
  own.take_row("scale", in[1]);
  own.take_row("bias", in[2]);
  const Ref y = own.give_matrix("y"), means = own.give_column("mean"), inverses = own.give_column("inverse");
  const Value value = own.read(0), mean = own.mean(value), centered = value - mean;
  const Value inverse = rsqrt(own.mean(centered * centered) + attrs.real("epsilon"));
  const Value normal = centered * inverse, scaled = normal * own.read(1);
  own.write(scaled + own.read(2), y);
  own.write(mean, means);
  own.write(inverse, inverses);
  const Arrays results = own.call(8);
  return {results[0].reshape(x.shape()), results[1].reshape(row_shape(x)), results[2].reshape(row_shape(x))};
}

// (dy, x, scale, mean, 1 / deviation) -> (dx, dscale, dbias)
Arrays layer_norm_grad(std::span<const Array> in, const Attrs&) {
  const Array& x = in[1];
  const std::optional<Rows> rows = rows_of(x.type());
  if (!rows) return {};
  RowKernel own("capibara_layer_norm_grad", *rows, x.dtype(), Order::arbitrary);
  own.take_matrix("dy", in[0]);
  own.take_matrix("x", x);
  own.take_row("scale", in[2]);
  own.take_column("mean", in[3]);
  own.take_column("inverse", in[4]);
  const Ref dx = own.give_matrix("dx"), dscale = own.give_sums("dscale"), dbias = own.give_sums("dbias");
  own.clear_at_start({dscale, dbias});
  const Value dy = own.read(0), value = own.read(1), mean = own.read(3), inverse = own.read(4);
  const Value normal = (value - mean) * inverse, weighted = dy * own.read(2);
  const Value difference = weighted - own.mean(weighted), share = own.mean(weighted * normal);
  own.write((difference - normal * share) * inverse, dx);
  own.add_sums(dy * normal, dscale);
  own.add_sums(dy, dbias);
  const Arrays results = own.call(16);
  const Array& scale = in[2];
  return {results[0].reshape(x.shape()), results[1].reshape(scale.shape()).astype(scale.dtype()),
          results[2].reshape(scale.shape()).astype(scale.dtype())};
}

}  // namespace

std::vector<Entry> norm_kernels() {
  return {{"rms_norm", rms_norm},
          {"rms_norm_grad", rms_norm_grad},
          {"layer_norm", layer_norm},
          {"layer_norm_grad", layer_norm_grad}};
}

}  // namespace capibara::mosaic
