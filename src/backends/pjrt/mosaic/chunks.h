// TPU kernels that take a sequence by chunks: one step of the grid for each chunk and block of lanes, with a state from
// chunk to chunk in VMEM.
#pragma once

#include "backends/pjrt/mosaic/kernels.h"

namespace capibara::mosaic {

struct ChunkSizes {
  int64_t batch, length, state, chunk, chunks, blocks, width;  // blocks of lanes, each of `width`
  bool softplus;                                               // of the steps

  bool is_ragged() const { return length % chunk != 0; }
};

// A step is a batch entry, a block and a chunk. The forward pass goes over the chunks of a block; the backward pass
// over the chunks from the last to the first, and in each over the blocks, so that sums over blocks stay in VMEM.
class ChunkKernel {
 public:
  enum class Pass : std::uint8_t { forward, backward };

  ChunkKernel(const char* name, const ChunkSizes& sizes, DType dtype, Pass pass)
      : all_(sizes), dtype_(dtype), kernel_(name, grid_of(sizes, pass)) {
    if (pass == Pass::forward) {
      at_ = [](const Point& point) { return point.at; };
    } else {
      at_ = [last = double(sizes.chunks - 1)](const Point& point) -> std::vector<Value> {
        return {point.at[0], point.at[2], like(point.at[1], last) - point.at[1]};
      };
    }
  }

  Kernel& kernel() { return kernel_; }

  // ---- operands ----
  Ref rows(const char* name, const Array& x) {  // [batch, length, lanes]
    return add(name, x, {1, all_.chunk, all_.width}, rows_index());
  }
  Ref give_rows(const char* name) {
    return kernel_.output(name, array_type(dtype_, {all_.batch, all_.length, all_lanes()}), {1, all_.chunk, all_.width},
                          rows_index());
  }
  Ref give_states(const char* name) {  // [batch, state, lanes]
    return kernel_.output(name, array_type(DType::float32, {all_.batch, all_.state, all_lanes()}),
                          {1, all_.state, all_.width}, states_index());
  }
  Ref give_starts(const char* name) {  // [batch, chunks, state, lanes]
    return kernel_.output(name, array_type(DType::float32, {all_.batch, all_.chunks, all_.state, all_lanes()}),
                          {1, 1, all_.state, all_.width}, starts_index());
  }
  // [batch, blocks, rows, width], all blocks of a batch entry at once.
  Ref give_blocks(const char* name, int64_t rows) {
    const Shape block{1, all_.blocks, rows, all_.width};
    Shape all = block;
    all[0] = all_.batch;
    return kernel_.output(name, array_type(DType::float32, all), block, [at = at_](const Point& point) {
      const Value zero = point.kernel.constant(0);
      return std::vector<Value>{at(point)[0], zero, zero, zero};
    });
  }

  // ---- the body ----
  Value wide(const Ref& ref) { return kernel_.convert(kernel_.load(ref), Element::f32); }
  // Zeros beyond the length.
  Value inside(const Value& value, const Value& chunk) {
    if (!all_.is_ragged()) return value;
    const Value left = like(chunk, double(all_.length)) - chunk * double(all_.chunk);
    return kernel_.select(less(kernel_.iota(*value.shape, 0), left), value, like(value, 0));
  }
  Value read(const Ref& ref, const Value& chunk) { return inside(wide(ref), chunk); }
  void write(const Value& value, const Ref& ref) { kernel_.store(kernel_.convert(value, ref.element), ref); }
  Value step(const Value& raw) { return all_.softplus ? softplus(raw) : raw; }

 protected:
  using At = std::function<std::vector<Value>(const Point&)>;  // batch entry, block, chunk

  int64_t all_lanes() const { return all_.blocks * all_.width; }
  Ref add(const char* name, const Array& x, Shape block, BlockIndex index) {
    operands_.push_back(x);
    return kernel_.input(name, x.type(), std::move(block), std::move(index));
  }
  Ref states_of(const char* name, const Array& x) {  // [batch, state, lanes]
    return add(name, x, {1, all_.state, all_.width}, states_index());
  }
  Ref starts_of(const char* name, const Array& x) {  // [batch, chunks, state, lanes]
    return add(name, x, {1, 1, all_.state, all_.width}, starts_index());
  }
  Arrays call(double flops, double transcendentals) {
    kernel_.cost.flops = static_cast<int64_t>(flops);
    kernel_.cost.transcendentals = static_cast<int64_t>(transcendentals);
    return mosaic::call(kernel_, operands_);
  }

  ChunkSizes all_;
  DType dtype_;
  Kernel kernel_;
  At at_;
  Arrays operands_;

 private:
  static std::vector<Kernel::Dimension> grid_of(const ChunkSizes& sizes, Pass pass) {
    using Order = Kernel::Order;
    if (pass == Pass::forward)
      return {{sizes.batch, Order::parallel}, {sizes.blocks, Order::parallel}, {sizes.chunks, Order::arbitrary}};
    return {{sizes.batch, Order::parallel}, {sizes.chunks, Order::arbitrary}, {sizes.blocks, Order::arbitrary}};
  }
  BlockIndex rows_index() const {
    return [at = at_](const Point& point) {
      const std::vector<Value> own = at(point);
      return std::vector<Value>{own[0], own[2], own[1]};
    };
  }
  BlockIndex states_index() const {
    return [at = at_](const Point& point) {
      const std::vector<Value> own = at(point);
      return std::vector<Value>{own[0], point.kernel.constant(0), own[1]};
    };
  }
  BlockIndex starts_index() const {
    return [at = at_](const Point& point) {
      const std::vector<Value> own = at(point);
      return std::vector<Value>{own[0], own[2], point.kernel.constant(0), own[1]};
    };
  }
};

}  // namespace capibara::mosaic
