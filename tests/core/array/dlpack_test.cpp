// DLPack: memory is shared in both directions, strided memory is copied, unsupported types are rejected.
#include <capibara/dlpack.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace {

using capibara::Array;
namespace dlpack = capibara::jax::dlpack;

TEST(DLPack, ExportSharesMemoryAndKeepsItAlive) {
  capibara::DLManagedTensor* tensor = nullptr;
  const void* data = nullptr;
  {
    Array x = capibara::array<float>({{1, 2, 3}, {4, 5, 6}});
    data = x.raw_data();
    tensor = dlpack::to_dlpack(x);
  }
  EXPECT_EQ(tensor->dl_tensor.data, data);
  ASSERT_EQ(tensor->dl_tensor.ndim, 2);
  EXPECT_EQ(tensor->dl_tensor.shape[1], 3);
  EXPECT_EQ(static_cast<float*>(tensor->dl_tensor.data)[5], 6.0f);
  tensor->deleter(tensor);
}

TEST(DLPack, RoundTripSharesMemory) {
  Array x = capibara::array<int32_t>({1, 2, 3});
  Array y = dlpack::from_dlpack(dlpack::to_dlpack(x));
  EXPECT_EQ(y.raw_data(), x.raw_data());
  EXPECT_EQ(y.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3}));
}

TEST(DLPack, StridedMemoryIsCopiedInRowMajorOrder) {
  static float values[6] = {1, 2, 3, 4, 5, 6};
  static int64_t shape[2] = {3, 2}, strides[2] = {1, 3};  // the transpose of a 2 x 3 array
  static bool deleted = false;
  static capibara::DLManagedTensor tensor{
      {values, {1, 0}, 2, {2, 32, 1}, shape, strides, 0}, nullptr, [](capibara::DLManagedTensor*) { deleted = true; }};
  Array x = dlpack::from_dlpack(&tensor);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(deleted);
}

TEST(DLPack, MemoryAtOddBytesIsCopied) {
  static char bytes[16];
  static const float values[3] = {1.5f, -2, 4};
  std::memcpy(bytes + 1, values, sizeof values);
  static int64_t shape[1] = {3};
  static capibara::DLManagedTensor tensor{{bytes, {1, 0}, 1, {2, 32, 1}, shape, nullptr, 1}, nullptr, nullptr};
  Array x = dlpack::from_dlpack(&tensor);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.raw_data()) % sizeof(float), 0u);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1.5f, -2, 4}));
}

TEST(DLPack, TypesThatItLacksAreRefused) {
  uint8_t bits = 0;
  Array x = Array::from_host(capibara::DType::float8_e4m3fn, {1}, &bits);
  EXPECT_THROW(dlpack::to_dlpack(x), capibara::TypeError);
}

}  // namespace
