// Checks shared by the tests of transforms: values of arrays, and the message of an error.
#pragma once

#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace capibara::test {

inline void expect_near(const Array& got, const std::vector<double>& expected, const Shape& shape,
                        double tolerance = 1e-5) {
  ASSERT_EQ(got.shape(), shape);
  std::vector<double> values = got.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "at flat position " << i;
  }
}

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace capibara::test
