// Convolutions of the CPU backend against the reference kernels.
#include <capibara/lax.h>

#include "backends/sum_tolerance.h"
#include "program/ir/window_shape.h"

namespace capibara::cpu {
namespace {

struct ConvolutionCase {
  Shape lhs, rhs;
  ConvDimensionNumbers numbers;
  Ints strides = {}, lhs_dilation = {}, rhs_dilation = {};
  jax::lax::Padding padding = {};
  int64_t feature_groups = 1, batch_groups = 1;
};

class Convolution : public KernelTest {
 protected:
  static Attrs attributes(ConvolutionCase c) {
    std::size_t space = c.lhs.size() - 2;
    for (Ints* list : {&c.strides, &c.lhs_dilation, &c.rhs_dilation}) {
      if (list->empty()) list->assign(space, 1);
    }
    if (c.padding.empty()) c.padding.assign(space, {0, 0});
    return {{"window_strides", c.strides},         {"padding", padding_attr(c.padding)},
            {"lhs_dilation", c.lhs_dilation},      {"rhs_dilation", c.rhs_dilation},
            {"dimension_numbers", c.numbers},      {"feature_group_count", c.feature_groups},
            {"batch_group_count", c.batch_groups}, {"precision", Attr()},
            {"preferred_element_type", Attr()}};
  }
  void check_convolution(DType dtype, const ConvolutionCase& c) {
    int64_t terms = element_count(c.rhs) / std::max<int64_t>(1, c.rhs[static_cast<std::size_t>(c.numbers.rhs_spec[0])]);
    const Types types = {type_of(dtype, c.lhs), type_of(dtype, c.rhs)};
    check_kernel({"conv_general_dilated", types, attributes(c), {}, sum_tolerance(dtype, dtype, terms)});
  }
  // An infinity in the input reaches only the sums that include it: it is never multiplied with padding or a gap.
  void check_infinities(const ConvolutionCase& c) {
    const Primitive primitive = capibara::primitive("conv_general_dilated");
    const Types types = {type_of(DType::float32, c.lhs), type_of(DType::float32, c.rhs)};
    const Attrs attrs = attributes(c);
    const Types outputs = primitive->type(types, attrs).types;
    const HostKernel own = host_kernel(primitive, types, outputs, attrs),
                     reference = reference_kernel(primitive, types, outputs, attrs);
    std::mt19937 random(5);
    Bytes lhs = random_operand(types[0], Values::plain, random), rhs = random_operand(types[1], Values::plain, random);
    for (int64_t i = 0; i < types[0].size(); ++i) {
      const double before = load_as<double>(DType::float32, lhs.data(), i);
      store_as<double>(DType::float32, lhs.data(), i, std::numeric_limits<double>::infinity());
      Bytes got = bytes_for(outputs[0]), wanted = got;
      own(std::vector<std::byte*>{lhs.data(), rhs.data(), got.data()}.data());
      reference(std::vector<std::byte*>{lhs.data(), rhs.data(), wanted.data()}.data());
      expect_close(outputs[0], got, wanted, {1e-4, 1e-5}, concat("infinity at ", i));
      store_as<double>(DType::float32, lhs.data(), i, before);
    }
  }
};

const ConvDimensionNumbers images_first{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}};   // NCHW, OIHW
const ConvDimensionNumbers features_last{{0, 3, 1, 2}, {3, 2, 0, 1}, {0, 3, 1, 2}};  // NHWC, HWIO

TEST_F(Convolution, OfEveryDtypeAndLayout) {
  for (DType dtype :
       {DType::int8, DType::int32, DType::bfloat16, DType::float16, DType::float32, DType::float64, DType::complex64}) {
    check_convolution(dtype, {{2, 3, 7, 11}, {5, 3, 3, 2}, images_first, {}, {}, {}, {{1, 1}, {0, 1}}});
    check_convolution(dtype, {{2, 7, 11, 3}, {3, 2, 3, 5}, features_last, {}, {}, {}, {{1, 1}, {0, 1}}});
    check_convolution(dtype, {{7, 2, 3, 11}, {2, 5, 3, 3}, {{1, 2, 0, 3}, {1, 2, 3, 0}, {3, 0, 2, 1}}, {2, 1}});
  }
}

TEST_F(Convolution, WithStridesDilationsAndPadding) {
  for (const ConvDimensionNumbers& numbers : {images_first, features_last}) {
    bool last = numbers == features_last;
    auto image = [last](int64_t n, int64_t c, int64_t h, int64_t w) {
      return last ? Shape{n, h, w, c} : Shape{n, c, h, w};
    };
    auto kernel = [last](int64_t o, int64_t i, int64_t h, int64_t w) {
      return last ? Shape{h, w, i, o} : Shape{o, i, h, w};
    };
    check_convolution(DType::float32,
                      {image(3, 4, 13, 17), kernel(6, 4, 3, 5), numbers, {2, 3}, {}, {}, {{1, 1}, {2, 2}}});
    check_convolution(DType::float32,
                      {image(1, 4, 6, 5), kernel(3, 4, 3, 3), numbers, {1, 2}, {2, 3}, {}, {{2, 2}, {1, 3}}});
    check_convolution(DType::float32,
                      {image(2, 2, 12, 9), kernel(3, 2, 3, 3), numbers, {}, {}, {2, 4}, {{2, 1}, {4, 4}}});
    check_convolution(DType::float32,
                      {image(2, 2, 8, 9), kernel(3, 2, 3, 3), numbers, {}, {}, {}, {{-2, -1}, {0, -3}}});
    check_convolution(DType::float32,
                      {image(2, 6, 8, 9), kernel(9, 2, 3, 3), numbers, {}, {}, {}, {{1, 1}, {1, 1}}, 3});
    check_convolution(DType::float32,
                      {image(6, 2, 8, 9), kernel(9, 2, 3, 3), numbers, {}, {}, {}, {{1, 1}, {1, 1}}, 1, 3});
    check_convolution(DType::float32,
                      {image(2, 20, 8, 9), kernel(40, 2, 2, 2), numbers, {}, {}, {}, {{1, 0}, {0, 0}}, 10});
    check_convolution(
        DType::float32,
        {image(2, 33, 10, 9), kernel(33, 1, 3, 3), numbers, {2, 1}, {}, {}, {{1, 1}, {1, 1}}, 33});  // depthwise
    for (int64_t width : {9, 18, 33, 56, 67}) {
      for (int64_t stride : {1, 2, 3}) {
        for (DType dtype : {DType::float32, DType::float64, DType::int32}) {
          check_convolution(
              dtype, {image(2, 6, 5, width), kernel(6, 1, 3, 3), numbers, {1, stride}, {}, {}, {{1, 1}, {1, 1}}, 6});
        }
      }
    }
    check_convolution(DType::complex64,
                      {image(2, 7, 5, 9), kernel(7, 1, 3, 3), numbers, {1, 1}, {2, 2}, {}, {{1, 1}, {1, 1}}, 7});
    check_convolution(DType::float32, {image(2, 5, 5, 5), kernel(7, 5, 1, 1), numbers});
  }
}

TEST_F(Convolution, OfWindowsAsLongAsImages) {
  // The form of the weight gradient: the window is an image, its features are the batch.
  const ConvDimensionNumbers weights{{1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3}};
  for (DType dtype : {DType::float32, DType::bfloat16, DType::complex64}) {
    check_convolution(dtype, {{3, 5, 12, 16}, {3, 9, 12, 16}, weights, {}, {}, {}, {{1, 1}, {1, 1}}});
    check_convolution(dtype, {{3, 5, 13, 17}, {3, 9, 6, 8}, weights, {}, {}, {2, 2}, {{1, 1}, {0, 1}}});
    check_convolution(dtype, {{2, 3, 20, 33}, {6, 3, 7, 9}, images_first, {2, 2}, {}, {}, {{3, 3}, {4, 5}}});
    check_convolution(
        dtype,
        {{2, 3, 9, 9}, {6, 3, 5, 5}, images_first, {}, {}, {}, {{7, 7}, {8, 9}}});  // windows outside of the image
  }
}

TEST_F(Convolution, OfFeaturesThatFillGroups) {
  for (DType dtype : {DType::bfloat16, DType::float16, DType::int8, DType::uint8, DType::float32}) {
    check_convolution(dtype, {{2, 16, 14, 13}, {24, 16, 3, 3}, images_first, {}, {}, {}, {{1, 1}, {1, 1}}});
    check_convolution(dtype, {{2, 14, 13, 16}, {3, 3, 16, 24}, features_last, {2, 2}, {}, {}, {{1, 1}, {1, 1}}});
    check_convolution(dtype, {{2, 24, 7, 7}, {16, 24, 3, 3}, images_first, {}, {2, 2}, {}, {{2, 2}, {2, 2}}});
  }
}

TEST_F(Convolution, OfDilatedInputs) {
  // The gradients of strided convolutions: phases with parts of the window, some with none.
  for (const Ints& dilation : {Ints{2, 2}, Ints{3, 2}, Ints{1, 4}, Ints{6, 3}}) {
    for (const Ints& window_dilation : {Ints{1, 1}, Ints{2, 3}, Ints{4, 2}}) {
      check_convolution(DType::float32,
                        {{2, 5, 6, 7}, {9, 5, 3, 3}, images_first, {}, dilation, window_dilation, {{4, 5}, {4, 3}}});
      check_convolution(DType::float32,
                        {{2, 6, 7, 5}, {2, 3, 5, 9}, features_last, {}, dilation, window_dilation, {{3, 6}, {2, 5}}});
      check_convolution(
          DType::bfloat16,
          {{2, 16, 6, 7}, {8, 8, 3, 1}, images_first, {}, dilation, window_dilation, {{8, 5}, {0, 3}}, 2});
    }
  }
}

TEST_F(Convolution, OfEachFeatureAlone) {
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::int32}) {
    check_convolution(dtype, {{2, 9, 21, 40}, {9, 1, 3, 3}, images_first, {}, {}, {}, {{1, 1}, {1, 1}}, 9});
    check_convolution(dtype, {{2, 9, 21, 40}, {9, 1, 5, 3}, images_first, {2, 2}, {}, {2, 1}, {{3, 2}, {1, 1}}, 9});
    check_convolution(dtype, {{2, 21, 40, 35}, {3, 3, 1, 35}, features_last, {2, 1}, {}, {}, {{1, 1}, {0, 2}}, 35});
    check_convolution(dtype, {{2, 9, 11, 10}, {9, 1, 3, 3}, images_first, {}, {2, 2}, {}, {{2, 2}, {2, 2}}, 9});
    check_convolution(dtype, {{2, 9, 3, 3}, {9, 1, 3, 3}, images_first, {}, {}, {}, {{6, 6}, {6, 6}}, 9});
    check_convolution(dtype, {{9, 2, 8, 9}, {9, 2, 8, 9}, images_first, {}, {}, {}, {{1, 1}, {1, 1}}, 1, 9});
  }
}

TEST_F(Convolution, OfEachFeatureInBands) {
  const ConvDimensionNumbers lines{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, kernels{{1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3}};
  for (DType dtype : {DType::float32, DType::float64}) {
    for (const Ints& strides : {Ints{1, 1}, Ints{2, 1}, Ints{3, 2}, Ints{1, 5}}) {
      for (const Ints& dilations : {Ints{1, 1}, Ints{2, 3}}) {
        // Forward, two output features for each input, and the form of the kernel gradient, with infinities that must
        // not reach other sums.
        check_convolution(dtype,
                          {{1, 3, 131, 97}, {3, 1, 3, 4}, images_first, strides, {}, dilations, {{2, 1}, {3, -2}}, 3});
        check_convolution(dtype,
                          {{2, 3, 9, 11}, {6, 1, 2, 3}, images_first, strides, {}, dilations, {{1, 1}, {2, 2}}, 3});
        const int64_t rows = 2 * dilations[0] + 69 * strides[0] - 2, columns = 3 * dilations[1] + 18 * strides[1] - 3;
        check_convolution(dtype,
                          {{3, 2, rows, columns}, {3, 3, 70, 19}, kernels, dilations, {}, strides, {{1, 2}, {3, 1}}});
        check_convolution(
            dtype,
            {{6, 2, rows, columns}, {3, 2, 70, 19}, images_first, dilations, {}, strides, {{1, 2}, {3, 1}}, 1, 3});
      }
    }
    check_convolution(dtype, {{2, 5, 301}, {5, 1, 4}, lines, {}, {}, {}, {{3, 0}}, 5});
    check_convolution(
        dtype, {{2, 4, 30, 31}, {4, 1, 3, 3}, images_first, {}, {2, 3}, {}, {{1, 2}, {2, 1}}, 4});  // of a stride
  }
}

TEST_F(Convolution, OfPaddedPlanes) {
  const ConvDimensionNumbers weights{{1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3}}, lines{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}};
  for (DType dtype : {DType::float32, DType::float64}) {
    check_convolution(dtype, {{2, 3, 40, 45}, {6, 3, 7, 7}, images_first, {2, 2}, {}, {}, {{3, 3}, {3, 3}}});
    check_convolution(dtype, {{3, 5, 17, 23}, {20, 5, 3, 3}, images_first, {3, 2}, {}, {2, 1}, {{2, 0}, {-1, 4}}});
    check_convolution(dtype, {{2, 8, 12, 19}, {4, 4, 1, 1}, images_first, {2, 2}, {}, {}, {{0, 0}, {0, 0}}, 2});
    check_convolution(dtype, {{2, 17, 61}, {5, 17, 5}, lines, {2}, {}, {}, {{2, 1}}});
    check_convolution(
        dtype,
        {{2, 6, 15, 14}, {3, 6, 7, 7}, images_first, {}, {2, 2}, {}, {{3, 4}, {3, 4}}});  // the gradient of a stride
    check_convolution(dtype, {{6, 4, 21, 22}, {9, 4, 3, 3}, images_first, {1, 2}, {}, {}, {{1, 1}, {1, 1}}, 1, 3});
    check_convolution(dtype, {{2, 3, 33, 30}, {2, 9, 16, 15}, weights, {}, {}, {2, 2}, {{1, 2}, {1, 1}}});
    check_convolution(dtype, {{4, 3, 20, 26}, {4, 17, 18, 26}, weights, {}, {}, {}, {{0, 0}, {1, 1}}});
  }
}

// Tiles of features by positions, read from planes: rows that end inside vectors, features that do not fill tiles.
TEST_F(Convolution, OfPlacesReadFromPlanes) {
  const ConvDimensionNumbers lines{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, turned{{0, 1, 2, 3}, {1, 0, 2, 3}, {0, 1, 2, 3}};
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t width : {15, 16, 17, 28, 33, 56}) {
      check_convolution(dtype, {{2, 20, 11, width}, {26, 20, 3, 3}, images_first, {}, {}, {}, {{1, 1}, {1, 1}}});
      check_convolution(dtype,
                        {{1, 5, 9, 2 * width + 1}, {17, 5, 3, 5}, images_first, {2, 2}, {}, {}, {{1, 1}, {2, 2}}});
    }
    check_convolution(dtype, {{3, 70, 7, 7}, {31, 70, 1, 1}, images_first});
    check_convolution(dtype, {{2, 300, 8, 16}, {14, 300, 1, 1}, images_first});
    check_convolution(dtype, {{2, 6, 20, 40}, {10, 3, 3, 3}, images_first, {}, {}, {2, 3}, {{2, 2}, {3, 3}}, 2});
    check_convolution(dtype, {{4, 6, 12, 18}, {10, 6, 3, 3}, images_first, {}, {}, {}, {{-1, 2}, {1, 4}}, 1, 2});
    check_convolution(dtype, {{2, 9, 90}, {8, 9, 7}, lines, {}, {}, {}, {{3, 3}}});
    for (int64_t size : {1, 2, 3})  // the gradient of a stride: phases with the whole window, or none
      check_convolution(dtype, {{2, 12, 9, 19}, {12, 18, size, size}, turned, {}, {2, 2}, {}, {{1, 2}, {2, 1}}});
    check_convolution(dtype, {{2, 12, 9, 19}, {18, 12, 3, 3}, images_first, {}, {2, 3}, {}, {{1, 2}, {2, 1}}});
  }
}

TEST_F(Convolution, OfImagesByGradientsOfThem) {
  const ConvDimensionNumbers weights{{1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3}}, lines{{1, 0, 2}, {1, 0, 2}, {1, 0, 2}};
  for (DType dtype : {DType::float32, DType::float64}) {
    for (int64_t stride : {1, 2, 3}) {
      check_convolution(dtype, {{3, 30, 12 * stride, 13 * stride},
                                {3, 33, 12, 13},
                                weights,
                                {},
                                {},
                                {stride, stride},
                                {{1, 2 - stride}, {1, 2 - stride}}});
    }
    check_convolution(dtype, {{2, 28, 14, 14}, {2, 16, 14, 14}, weights, {}, {}, {}, {{3, 3}, {2, 2}}});
    check_convolution(dtype, {{2, 70, 6, 8}, {2, 64, 6, 8}, weights});
    check_convolution(dtype, {{5, 14, 9, 40}, {5, 48, 5, 36}, weights, {2, 2}, {}, {}, {{-1, 1}, {-2, 2}}});
    check_convolution(dtype, {{3, 12, 130}, {3, 16, 128}, lines, {}, {}, {}, {{2, 2}}});
    check_convolution(dtype, {{1, 8, 3, 700}, {1, 8, 3, 700}, weights, {}, {}, {}, {{1, 1}, {1, 1}}});
  }
}

TEST_F(Convolution, OfManyFeaturesToFew) {
  const ConvDimensionNumbers lines{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, turned{{0, 1, 2, 3}, {1, 0, 2, 3}, {0, 1, 2, 3}};
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    for (const Ints& dilation : {Ints{1, 1}, Ints{2, 2}, Ints{3, 1}, Ints{1, 3}}) {
      check_convolution(dtype, {{2, 24, 19, 14}, {3, 24, 7, 5}, images_first, {}, dilation, {}, {{3, 4}, {5, 2}}});
      check_convolution(dtype, {{1, 16, 45, 7}, {16, 2, 3, 3}, turned, {}, dilation, {2, 3}, {{-1, 2}, {8, 7}}});
    }
    check_convolution(dtype, {{2, 33, 50}, {1, 33, 13}, lines, {}, {2}, {}, {{12, 3}}});
    check_convolution(dtype, {{1, 17, 140, 3}, {4, 17, 3, 1}, images_first, {}, {}, {}, {{2, 2}, {0, 0}}});
  }
}

TEST_F(Convolution, KeepsInfinitiesToTheSumsThatMeetThem) {
  const ConvDimensionNumbers weights{{1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3}};
  for (int64_t step : {1, 2}) {
    const Ints steps = {step, step};
    check_infinities({{1, 2, 9, 20}, {2, 1, 3, 3}, images_first, steps, {}, {}, {{1, 1}, {1, 1}}, 2});
    check_infinities(
        {{2, 1, 5 * step + 2, 19 * step + 1}, {2, 1, 6, 20}, images_first, {}, {}, steps, {{0, 1}, {1, 1}}, 1, 2});
    check_infinities({{2, 1, 9, 20}, {2, 3, 4, 9}, weights, {}, {}, steps, {{1, 1}, {1, 1}}});
    check_infinities({{1, 2, 9, 20}, {3, 2, 3, 3}, images_first, steps, {}, {}, {{1, 1}, {2, 1}}});
    check_infinities({{1, 2, 5, 32}, {8, 2, 3, 3}, images_first, steps, {}, {}, {{1, 1}, {1, 1}}});
    check_infinities({{1, 2, 3, 17}, {8, 2, 3, 3}, images_first, {}, steps, {}, {{1, 1}, {1, 1}}});
    check_infinities(
        {{1, 8, 5 * step, 8 * step}, {1, 16, 5, 8}, weights, {}, {}, steps, {{1, 2 - step}, {1, 2 - step}}});
    check_infinities({{1, 16, 3, 4}, {2, 16, 3, 3}, images_first, {}, steps, {}, {{1, 1}, {2, 1}}});
  }
}

TEST_F(Convolution, OfOtherRanksAndEmptyOnes) {
  check_convolution(DType::float32, {{5, 7}, {9, 7}, {{0, 1}, {0, 1}, {0, 1}}});
  check_convolution(DType::float32, {{2, 3, 50}, {4, 3, 7}, {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, {}, {}, {}, {{3, 3}}});
  check_convolution(DType::float32,
                    {{1, 2, 5, 6, 7}, {3, 2, 2, 3, 2}, {{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}});
  check_convolution(DType::float32, {{0, 3, 7, 7}, {5, 3, 3, 3}, images_first});
  check_convolution(DType::float32, {{2, 0, 7, 7}, {5, 0, 3, 3}, images_first});
  check_convolution(DType::float32, {{2, 3, 2, 2}, {5, 3, 3, 3}, images_first});
  check_convolution(DType::float32, {{4, 64, 20, 20}, {48, 64, 3, 3}, images_first, {}, {}, {}, {{1, 1}, {1, 1}}});
}

}  // namespace
}  // namespace capibara::cpu
