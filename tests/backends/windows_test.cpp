// Windows, argmax and argmin, transposes and random bits of the CPU backend against the reference kernels: bitwise.
#include "backends/kernel_cases.h"
#include "lax/reduce/monoid.h"
#include "program/ir/window_shape.h"

namespace capibara::cpu {
namespace {

class Windows : public KernelTest {
 protected:
  void check_fold(const std::string& name, DType dtype, Shape shape, const Window& window) {
    check_kernel({name,
                  {type_of(dtype, std::move(shape))},
                  window.attrs(),
                  {is_floating(dtype) ? Values::awkward : Values::plain}});
  }
};

const Window pooling{{1, 3, 2, 1}, {1, 2, 2, 1}, {{0, 0}, {1, 1}, {0, 1}, {0, 0}}, {1, 1, 1, 1}, {1, 1, 1, 1}};
const Window planes{{1, 1, 3, 3}, {1, 1, 1, 2}, {{0, 0}, {0, 0}, {1, 1}, {2, 0}}, {1, 1, 1, 1}, {1, 1, 2, 1}};
const Window spread{{1, 2, 3, 2}, {1, 1, 2, 1}, {{0, 0}, {0, 1}, {-1, 1}, {0, 0}}, {1, 2, 1, 3}, {1, 1, 1, 2}};

TEST_F(Windows, FoldWithKnownMonoids) {
  for (const char* name : {"reduce_window_sum", "reduce_window_max", "reduce_window_min"}) {
    for (DType dtype :
         {DType::int8, DType::int32, DType::uint64, DType::bfloat16, DType::float16, DType::float32, DType::float64}) {
      check_fold(name, dtype, {2, 11, 9, 5}, pooling);
      check_fold(name, dtype, {3, 4, 10, 13}, planes);
      check_fold(name, dtype, {2, 5, 6, 4}, spread);
    }
    check_fold(name, DType::float32, {4, 40, 40, 33}, pooling);
  }
  check_fold("reduce_window_sum", DType::complex64, {2, 11, 9, 5}, pooling);
}

TEST_F(Windows, FoldAlongLongRows) {
  for (const char* name : {"reduce_window_sum", "reduce_window_max", "reduce_window_min"}) {
    for (DType dtype :
         {DType::int8, DType::uint16, DType::int32, DType::uint64, DType::bfloat16, DType::float32, DType::float64}) {
      for (int64_t stride : {1, 2, 3}) {
        for (int64_t size : {1, 2, 3, 7}) {
          // channels first and last, with and without padding; holes in the input and in the window.
          check_fold(name, dtype, {3, 9, 67},
                     Window{{1, size, size}, {1, 1, stride}, {{0, 0}, {1, 0}, {size / 2, 2}}, {1, 1, 1}, {1, 1, 1}});
          check_fold(name, dtype, {3, 9, 67},
                     Window{{1, 2, size}, {1, 2, stride}, {{0, 0}, {0, 0}, {-2, 1}}, {1, 1, 1}, {1, 1, 2}});
          check_fold(name, dtype, {7, 12, 37},
                     Window{{2, size, 1}, {1, stride, 1}, {{0, 0}, {size - 1, 1}, {0, 0}}, {1, 1, 1}, {1, 1, 1}});
          check_fold(name, dtype, {2, 8, 41},
                     Window{{1, 3, size}, {1, 1, 1}, {{0, 0}, {1, 1}, {size - 1, stride}}, {1, 2, stride}, {1, 1, 1}});
        }
      }
    }
  }
}

TEST_F(Windows, FoldWithARegionAndAnInitialValue) {
  for (Monoid monoid : {Monoid::add, Monoid::mul, Monoid::max, Monoid::bit_or}) {
    for (DType dtype : {DType::int32, DType::float32}) {
      if (monoid == Monoid::bit_or && dtype == DType::float32) continue;
      Attrs attrs = pooling.attrs().with("jaxpr", monoid_region(monoid, dtype)).with("consts", Attr::List{});
      check_kernel({"reduce_window", {type_of(dtype, {2, 11, 9, 5}), type_of(dtype, {})}, attrs});
    }
  }
}

TEST_F(Windows, ScatterToTheSelectedElement) {
  for (DType dtype : {DType::int32, DType::bfloat16, DType::float32, DType::float64}) {
    Types types = {scalar_type(dtype), scalar_type(dtype)};
    Program select = stage_region(
        "select", [](std::span<const Array> xs) { return Arrays{xs[0] >= xs[1]}; }, types);
    Attrs attrs = {{"window_dimensions", pooling.dimensions},
                   {"window_strides", pooling.strides},
                   {"padding", padding_attr(pooling.padding)},
                   {"select_jaxpr", select},
                   {"scatter_jaxpr", monoid_region(Monoid::add, dtype)},
                   {"select_consts", Attr::List{}},
                   {"scatter_consts", Attr::List{}}};
    check_kernel({"select_and_scatter",
                  {type_of(dtype, {4, 11, 9, 5}), type_of(dtype, {4, 6, 5, 5}), type_of(dtype, {})},
                  attrs});
  }
}

TEST_F(Windows, ScatterAlongLongRows) {
  for (DType dtype : {DType::int8, DType::int32, DType::bfloat16, DType::float32, DType::float64}) {
    Types types = {scalar_type(dtype), scalar_type(dtype)};
    for (bool lowest : {false, true}) {
      Program select = stage_region(
          "select", [lowest](std::span<const Array> xs) { return Arrays{lowest ? xs[0] < xs[1] : xs[0] >= xs[1]}; },
          types);
      for (int64_t stride : {1, 2, 3}) {
        for (int64_t size : {2, 3}) {
          auto check = [&](const Shape& shape, const Ints& dimensions, const Ints& strides, int64_t pad) {
            Shape places;
            std::vector<std::pair<int64_t, int64_t>> padding;
            for (std::size_t d = 0; d < shape.size(); ++d) {
              padding.push_back(dimensions[d] > 1 ? std::pair{pad, pad} : std::pair<int64_t, int64_t>{0, 0});
              places.push_back((shape[d] + 2 * padding.back().first - dimensions[d]) / strides[d] + 1);
            }
            Attrs attrs = {{"window_dimensions", dimensions},
                           {"window_strides", strides},
                           {"padding", padding_attr(padding)},
                           {"select_jaxpr", select},
                           {"scatter_jaxpr", monoid_region(Monoid::add, dtype)},
                           {"select_consts", Attr::List{}},
                           {"scatter_consts", Attr::List{}}};
            check_kernel({"select_and_scatter",
                          {type_of(dtype, shape), type_of(dtype, places), type_of(dtype, {})},
                          attrs,
                          {is_floating(dtype) ? Values::awkward : Values::plain}});
          };
          check({3, 10, 67}, {1, size, size}, {1, stride, stride}, size / 2);
          check({3, 10, 67}, {1, 1, size}, {1, 1, stride}, 0);
          check({3, 11, 9, 21}, {1, size, size, 1}, {1, stride, stride, 1}, size / 2);
        }
      }
    }
  }
}

TEST_F(Windows, AddToTheSelectedElementOfPlanes) {
  for (DType dtype : {DType::float32, DType::float64}) {
    for (const char* select : {"ge", "le"}) {
      auto check = [&](const Shape& shape, const Window& window) {
        const Shape places = window_output_shape("window", type_of(dtype, shape), window);
        check_kernel({"select_and_scatter_add",
                      {type_of(dtype, places), type_of(dtype, shape)},
                      window.attrs_without_dilation().with("select_prim", select),
                      {Values::plain, Values::awkward}});
      };
      for (int64_t stride : {1, 2, 3, 5}) {
        for (int64_t size : {2, 3, 4}) {
          check({2, 3, 29, 37}, {{1, 1, size, size},
                                 {1, 1, stride, stride},
                                 {{0, 0}, {0, 0}, {size / 2, 1}, {1, size / 2}},
                                 {1, 1, 1, 1},
                                 {1, 1, 1, 1}});
          check({3, 211}, {{1, size}, {1, stride}, {{0, 0}, {0, 1}}, {1, 1}, {1, 1}});
        }
      }
      check({1, 201, 131}, {{1, 3, 3}, {1, 2, 2}, {{0, 0}, {1, 1}, {1, 1}}, {1, 1, 1}, {1, 1, 1}});  // several bands
      check({2, 9, 8},
            {{1, 1, 2}, {1, 4, 1}, {{0, 0}, {3, 2}, {0, 0}}, {1, 1, 1}, {1, 1, 1}});  // rows without a window
    }
  }
}

class Positions : public KernelTest {};

TEST_F(Positions, OfExtremes) {
  for (const char* name : {"argmax", "argmin"}) {
    for (DType dtype :
         {DType::bool_, DType::int8, DType::uint32, DType::int64, DType::bfloat16, DType::float32, DType::float64}) {
      for (int64_t axis : {0, 1, 2}) {
        for (DType index : {DType::int32, DType::int64, DType::uint8}) {
          check_kernel({name,
                        {type_of(dtype, {5, 67, 130})},
                        {{"axes", Ints{axis}}, {"index_dtype", index}},
                        {Values::awkward}});
        }
      }
    }
    check_kernel({name,
                  {type_of(DType::float32, {20000})},
                  {{"axes", Ints{0}}, {"index_dtype", DType::int32}},
                  {Values::plain}});
  }
}

class Transpose : public KernelTest {};

TEST_F(Transpose, OfEverySizeOfElement) {
  for (DType dtype :
       {DType::int8, DType::bfloat16, DType::float32, DType::complex64, DType::complex128, DType::key_fry}) {
    for (const Ints& order : {Ints{1, 0}, Ints{0, 1}})
      check_kernel({"transpose", {type_of(dtype, {67, 131})}, {{"permutation", order}}});
    for (const Ints& order : {Ints{2, 0, 1}, Ints{1, 2, 0}, Ints{0, 2, 1}, Ints{2, 1, 0}, Ints{1, 0, 2}}) {
      check_kernel({"transpose", {type_of(dtype, {13, 1, 7})}, {{"permutation", order}}});
      check_kernel({"transpose", {type_of(dtype, {33, 65, 9})}, {{"permutation", order}}});
      check_kernel({"transpose", {type_of(dtype, {3, 0, 9})}, {{"permutation", order}}});
    }
    check_kernel({"transpose", {type_of(dtype, {2, 12, 5, 8})}, {{"permutation", Ints{0, 2, 1, 3}}}});
    check_kernel({"transpose", {type_of(dtype, {})}, {{"permutation", Ints{}}}});
  }
}

class RandomBits : public KernelTest {};

TEST_F(RandomBits, OfEveryWidth) {
  for (int64_t width : {8, 16, 32, 64}) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5001}, Shape{0}}) {
      check_kernel({"random_bits", {type_of(DType::key_fry, {3})}, {{"bit_width", width}, {"shape", shape}}});
    }
  }
}

}  // namespace
}  // namespace capibara::cpu
