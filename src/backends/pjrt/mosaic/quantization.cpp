// TPU kernels of quantization: the nearest codes of vectors, and matmuls with matrices of int8 codes.
#include <capibara/lax.h>

#include <algorithm>
#include <cmath>

#include "backends/pjrt/mosaic/kernels.h"

namespace capibara::mosaic {

namespace {

namespace lax = jax::lax;
using Order = Kernel::Order;
using Reduction = Kernel::Reduction;

bool is_taken(DType dtype) { return dtype == DType::float32 || dtype == DType::bfloat16; }

// ---- nearest codes --------------------------------------------------------------------------------------------------

// What is added to the scores of codes, or multiplies them, [codes, 1]. The result has no NaN.
Value with_metric(Kernel& kernel, const Value& scores, const Value& codes, const std::string& metric) {
  Value result = scores;
  if (metric != "dot_product") {
    const Value wide = kernel.convert(codes, Element::f32);
    const Value squares = kernel.reduce(Reduction::add, wide * wide, 1);
    if (metric == "euclidean") {
      result = scores + squares * -0.5;
    } else {
      const Value zero = like(squares, 0), none = equal(squares, zero);
      const Value inverse = rsqrt(kernel.select(none, like(squares, 1), squares));
      result = scores * kernel.select(none, zero, inverse);
    }
  }
  return kernel.select(equal(result, result), result, like(result, INFINITY));  // argmax takes the first NaN
}

// (vectors [batch..., rows, dim], codes [batch..., codes, dim]) -> indices [batch..., rows]
//
// Scores are [codes, rows]: the best code so far, its score and its index, is a row. Steps pass over blocks of codes.
Arrays vq_encode(std::span<const Array> in, const Attrs& attrs) {
  const Shape shape = in[0].shape();
  const int64_t rank = in[0].ndim(), dim = shape.back(), rows = shape[shape.size() - 2], count = in[1].shape(-2);
  constexpr int64_t max_dim = 2048, max_codes = 1 << 24;
  if (!is_taken(in[0].dtype()) || in[0].size() == 0 || dim > max_dim || count > max_codes || rank < 2) return {};
  const int64_t batch = in[0].size() / (rows * dim), limit = dim <= 512 ? 512 : dim <= 1024 ? 256 : 128;
  const int64_t row_block = std::min(rows, limit), code_block = std::min(count, limit);
  const int64_t steps = blocks_of(count, code_block);
  const Arrays operands = {in[0].reshape({batch, rows, dim}), in[1].reshape({batch, count, dim})};
  Kernel kernel("capibara_vq_encode",
                {{batch, Order::parallel}, {blocks_of(rows, row_block), Order::parallel}, {steps, Order::arbitrary}});
  const auto block_at = [](std::size_t dimension) -> BlockIndex {
    return [dimension](const Point& point) -> std::vector<Value> {
      return {point.at[0], point.at[dimension], point.kernel.constant(0)};
    };
  };
  const Ref vectors = kernel.input("vectors", operands[0].type(), {1, row_block, dim}, block_at(1));
  const Ref codes = kernel.input("codes", operands[1].type(), {1, code_block, dim}, block_at(2));
  const Ref indices = kernel.output("indices", array_type(DType::int32, {batch, 1, rows}), {1, 1, row_block},
                                    [](const Point& point) -> std::vector<Value> {
                                      return {point.at[0], point.kernel.constant(0), point.at[1]};
                                    });
  const Ref best = kernel.scratch("best", Element::f32, {1, row_block});
  const Ref found = kernel.scratch("found", Element::i32, {1, row_block});
  const Value step = kernel.point(2);
  kernel.when(equal(step, like(step, 0)), [&] {
    kernel.store(kernel.filled(-INFINITY, Element::f32, best.shape), best);
    kernel.store(kernel.filled(0, Element::i32, found.shape), found);
  });
  const Value block = kernel.load(codes);
  Value scores = kernel.matmul(block, 1, kernel.load(vectors), 1, true);
  scores = with_metric(kernel, scores, block, attrs.text("distance_metric"));
  const Value code = kernel.iota(*scores.shape, 0);
  if (count % code_block != 0) {
    const Value left = like(step, double(count)) - step * double(code_block);
    scores = kernel.select(less(code, left), scores, like(scores, -INFINITY));
  }
  // The first index of the largest score is the largest negative index.
  const Value own = kernel.reduce(Reduction::max, scores, 0);
  const Value negative = kernel.convert(like(step, 0) - code, Element::f32);
  const Value place =
      kernel.reduce(Reduction::max, kernel.select(equal(scores, own), negative, like(scores, -INFINITY)), 0);
  const Value index = step * double(code_block) - kernel.convert(place, Element::i32), before = kernel.load(best);
  const Value better = less(before, own);
  kernel.store(kernel.select(better, index, kernel.load(found)), found);
  kernel.store(kernel.select(better, own, before), best);
  kernel.when(equal(step, like(step, double(steps - 1))), [&] { kernel.store(kernel.load(found), indices); });
  kernel.cost.flops = static_cast<int64_t>(2.0 * double(in[0].size()) * double(count));
  return {call(kernel, operands)[0].reshape(Shape(shape.begin(), shape.end() - 1))};
}

// ---- matmuls with int8 codes ----------------------------------------------------------------------------------------

// (x [..., inputs], codes int8 [outputs, inputs], scale [outputs, blocks]) -> [..., outputs]: each pass multiplies by
// codes of one block of each output, whose product is multiplied by a row of scales.
// Transposed, (x [..., outputs], ...) -> [..., inputs]: x is multiplied by a row of scales first.
Arrays int8_matmul(std::span<const Array> in, const Attrs& attrs) {
  const Array &codes = in[1], &scale = in[2];
  if (in.size() != 3 || codes.dtype() != DType::int8 || !is_taken(in[0].dtype())) return {};
  if (in[0].size() == 0 || codes.size() == 0) return {};
  const bool transposed = attrs.boolean("transposed");
  const int64_t outputs = codes.shape(0), inputs = codes.shape(1), own = inputs / scale.shape(1);  // inputs of a block
  const int64_t inner = transposed ? outputs : inputs, columns = transposed ? inputs : outputs;
  const int64_t rows = in[0].size() / inner, row_block = std::min<int64_t>(rows, 256);
  // Blocks of inputs that divide those of the scales, of which one is all or a multiple of 128.
  const int64_t input_block = dividing_block(own);
  const int64_t depth = transposed ? dividing_block(outputs) : input_block;
  const int64_t width = transposed ? input_block : std::min<int64_t>(outputs, 512);
  if (depth == 0 || width == 0 || (input_block % lanes != 0 && input_block != inputs)) return {};
  const int64_t passes = inner / depth, per_scale = own / input_block;
  const Array x = in[0].reshape({rows, inner});
  const Array scales = lax::transpose(scale, {1, 0}).reshape({scale.shape(1), 1, outputs});
  Kernel kernel(transposed ? "capibara_int8_matmul_transposed" : "capibara_int8_matmul",
                {{blocks_of(rows, row_block), Order::parallel},
                 {blocks_of(columns, width), Order::parallel},
                 {passes, Order::arbitrary}});
  const Ref left = kernel.input("x", x.type(), {row_block, depth}, [](const Point& point) -> std::vector<Value> {
    return {point.at[0], point.at[2]};
  });
  const Ref matrix = kernel.input("codes", codes.type(), transposed ? Shape{depth, width} : Shape{width, depth},
                                  [transposed](const Point& point) -> std::vector<Value> {
                                    return {point.at[transposed ? 2 : 1], point.at[transposed ? 1 : 2]};
                                  });
  const Ref scale_row = kernel.input(
      "scale", scales.type(), {1, 1, transposed ? depth : width}, [=](const Point& point) -> std::vector<Value> {
        const Value &column = point.at[1], &pass = point.at[2], zero = point.kernel.constant(0);
        const Value& of_inputs = transposed ? column : pass;
        const Value block = inputs == own ? zero : per_scale == 1 ? of_inputs : of_inputs / double(per_scale);
        return {block, zero, transposed ? pass : column};
      });
  const Ref result = kernel.output("result", array_type(x.dtype(), {rows, columns}), {row_block, width},
                                   [](const Point& point) -> std::vector<Value> {
                                     return {point.at[0], point.at[1]};
                                   });
  const Ref total = kernel.scratch("total", Element::f32, {row_block, width});
  const Value pass = kernel.point(2);
  kernel.when(equal(pass, like(pass, 0)), [&] { kernel.store(kernel.filled(0, Element::f32, total.shape), total); });
  const Value own_scales = kernel.load(scale_row);
  // bfloat16 holds codes, but not x times a scale.
  const Element element = transposed ? Element::f32 : left.element;
  Value factor = kernel.convert(kernel.load(left), element);
  if (transposed) factor = factor * own_scales;
  Value product = kernel.matmul(factor, 1, kernel.convert(kernel.load(matrix), element), transposed ? 0 : 1, true);
  if (!transposed) product = product * own_scales;
  kernel.store(kernel.load(total) + product, total);
  kernel.when(equal(pass, like(pass, double(passes - 1))),
              [&] { kernel.store(kernel.convert(kernel.load(total), result.element), result); });
  kernel.cost.flops = static_cast<int64_t>(2.0 * double(rows) * double(codes.size()));
  Shape shape = in[0].shape();
  shape.back() = columns;
  return {call(kernel, {x, codes, scales})[0].reshape(shape)};
}

}  // namespace

std::vector<Entry> quantization_kernels() { return {{"vq_encode", vq_encode}, {"quantized_matmul", int8_matmul}}; }

}  // namespace capibara::mosaic
