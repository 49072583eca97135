// Which decompositions go to cuSOLVER, and in which layout. Values are checked on a GPU: benchmarks/gpu.
#include <gtest/gtest.h>

#include <capibara/capibara.h>
#include <capibara/linalg.h>

#include "backends/pjrt/prepare.h"

namespace capibara::pjrt {
namespace {

namespace jnp = jax::numpy;

std::string text_of(Array (*function)(const Array&), const Shape& shape, bool available = true) {
  const Program program = jax::make_jaxpr(function)(jnp::ones(shape));
  return prepare(program, {}, {false, [available] { return available; }}).text;
}

Array values_of_eigh(const Array& x) { return jnp::linalg::eigh(x).eigenvalues; }
Array q_of_qr(const Array& x) { return jnp::linalg::qr(x).Q; }
Array u_of_svd(const Array& x) { return jnp::linalg::svd(x, {false, false, std::nullopt}).U; }
Array values_of_eig(const Array& x) { return jnp::abs(jnp::linalg::eig(x).eigenvalues); }

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Cusolver, TakesEighWithColumnsOneBehindTheOther) {
  const std::string text = text_of(values_of_eigh, {8, 8});
  EXPECT_TRUE(holds(text, "@capibara_cusolver")) << text;
  EXPECT_TRUE(holds(text, "routine = \"ssyevd\", lower = 1 : i64")) << text;
  EXPECT_TRUE(holds(text, "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]")) << text;
  EXPECT_TRUE(holds(text, "output_operand_alias<output_tuple_indices = [0], operand_index = 0")) << text;
}

TEST(Cusolver, TakesBothStepsOfQr) {
  const std::string text = text_of(q_of_qr, {3, 8, 4});
  EXPECT_TRUE(holds(text, "routine = \"sgeqrf\"")) << text;
  EXPECT_TRUE(holds(text, "routine = \"sorgqr\"")) << text;
  EXPECT_TRUE(holds(text, "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>]")) << text;
}

TEST(Cusolver, TakesWideMatricesTransposed) {
  EXPECT_TRUE(holds(text_of(u_of_svd, {8, 4}), "routine = \"sgesvd\", job = 83 : i64, transposed = 0"));
  const std::string wide = text_of(u_of_svd, {4, 8});
  EXPECT_TRUE(holds(wide, "routine = \"sgesvd\", job = 83 : i64, transposed = 1")) << wide;
  EXPECT_TRUE(holds(wide, "operand_layouts = [dense<[1, 0]> : tensor<2xindex>]")) << wide;
}

TEST(Cusolver, LeavesTheRestToTheHost) {
  EXPECT_TRUE(holds(text_of(values_of_eigh, {1000, 4, 4}), "@capibara_host_call"));  // many small ones
  EXPECT_TRUE(holds(text_of(values_of_eig, {8, 8}), "@capibara_host_call"));         // cuSOLVER has no such routine
  EXPECT_FALSE(holds(text_of(values_of_eigh, {8, 8}, false), "@capibara_cusolver"));
}

}  // namespace
}  // namespace capibara::pjrt
