// Arrays: creation, type promotion, indexing, updates, reductions, contractions and sorting.
#include <capibara/capibara.h>
#include <capibara/numpy/contraction.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/sorting.h>

#include <iostream>

using capibara::Array;
using capibara::DType;
namespace jnp = capibara::jax::numpy;

int main() {
  Array x = jnp::arange(12).reshape({3, 4});
  std::cout << "x\n" << x << "\n";
  std::cout << "type " << capibara::to_string(x.type()) << "\n";

  // Plain numbers take the dtype of the array they are combined with; true division of integers gives floats.
  Array half = x.astype(DType::bfloat16);
  std::cout << "x * 2 is " << dtype_name((x * 2).dtype()) << ", x / 2 is " << dtype_name((x / 2).dtype()) << "\n";
  std::cout << "bfloat16 * 2 is " << dtype_name((half * 2).dtype()) << ", bfloat16 + float32 is "
            << dtype_name((half + jnp::ones({4})).dtype()) << "\n";

  // Indexing makes new arrays: rows, slices with steps, lists of rows, masks with where.
  std::cout << "row " << x(1) << "\n";
  std::cout << "last column " << x(capibara::ellipsis, -1) << "\n";
  std::cout << "every second " << x(0, capibara::slice(std::nullopt, std::nullopt, 2)) << "\n";
  std::cout << "rows 2 and 0\n" << x(capibara::array<int32_t>({2, 0})) << "\n";
  std::cout << "odd or zero " << jnp::where(x(2) % 2 == 1, x(2), 0) << "\n";

  // Arrays are immutable; at() returns an updated copy. Out-of-bounds writes are dropped.
  std::cout << "set " << x(0).at(1).set(50) << "\n";
  std::cout << "add twice " << jnp::zeros({4}).at(capibara::array<int32_t>({1, 1, 3})).add(1.0f) << "\n";
  std::cout << "outside " << x(0).at(9).set(50) << "\n";

  std::cout << "sums " << jnp::sum(x, {.axis = 0}) << " " << jnp::sum(x, {.axis = 1}) << " " << jnp::sum(x) << "\n";
  std::cout << "means\n" << jnp::mean(x, {.axis = 1, .keepdims = true}) << "\n";
  std::cout << "running " << jnp::cumsum(x(1)) << "\n";
  std::cout << "product\n" << jnp::matmul(x, x.T()) << "\n";
  std::cout << "trace by einsum " << jnp::einsum("ii->", {jnp::matmul(x, x.T())}) << "\n";

  Array scores = capibara::array<float>({0.3f, 2.5f, -1.0f, 2.5f, 0.0f});
  std::cout << "sorted " << jnp::sort(scores) << "\n";
  std::cout << "order " << jnp::argsort(scores) << "\n";
  std::cout << "best at " << jnp::argmax(scores) << "\n";
}
