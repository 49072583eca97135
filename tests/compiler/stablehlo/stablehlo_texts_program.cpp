// Writes a bundle of our StableHLO texts with inputs and our values, for jaxlib to judge: every sample of each
// primitive in float32 and int32, the first one in its other dtypes.
#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/program.h>

#include "compiler/stablehlo/catalog_programs.h"
#include "oracle/expected.h"

#include <cstdio>
#include <set>

using namespace capibara;

namespace {

bool contains(const std::set<std::string>& names, const std::string& name) { return names.count(name) != 0; }

// Texts that are verified but not run: their values depend on the backend, are keys, or XLA aborts on windows of rank 0
// or returns the operand for them whatever the initial value.
bool is_only_verified(const catalog_programs::Case& one) {
  static const std::set<std::string> own = {"rng_uniform", "empty", "rng_bit_generator", "approx_top_k",
                                            "random_gamma"};
  static const std::set<std::string> windows = {"select_and_scatter", "select_and_scatter_add", "reduce_window"};
  const std::string& name = one.primitive.name();
  for (const ArrayType& type : one.program.output_types()) {
    if (is_key(type.dtype)) return true;
  }
  const bool rounded = name.starts_with("batch_norm") && bits(one.dtype) < 32;  // XLA rounds at each step there
  return rounded || contains(own, name) || (contains(windows, name) && one.inputs[0].ndim() == 0);
}

// XLA takes seconds to compile each of these.
bool is_slow(const std::string& primitive) {
  return contains({"igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "regularized_incomplete_beta"},
                  primitive);
}

}  // namespace

int main(int count, char** values) {
  if (count != 2) {
    std::fprintf(stderr, "usage: stablehlo_texts_program FILE\n");
    return 2;
  }
  ConfigScope wide = jax::enable_x64();
  std::ofstream file(values[1]);
  const DType dtypes[] = {DType::bool_,   DType::int8,    DType::int32,   DType::uint8,    DType::uint32,
                          DType::float16, DType::float32, DType::float64, DType::bfloat16, DType::complex64};
  int written = 0;
  catalog_programs::for_each_case(dtypes, [&](const catalog_programs::Case& one) {
    const bool common = one.dtype == DType::float32 || one.dtype == DType::int32;
    if (!one.first && (!common || is_slow(one.primitive.name()))) return;
    if (!common && is_slow(one.primitive.name())) return;
    std::string text;
    try {
      text = to_stablehlo(one.program);
    } catch (const NotImplementedError&) {
      return;  // callbacks and similar ones have no text
    }
    Arrays outputs;
    const bool verified = is_only_verified(one);
    if (!verified) outputs = evaluate_program(one.program, one.inputs);
    std::string record = oracle::judge_record(one.name, text, one.inputs, outputs);
    if (verified) record.insert(record.find('\n') + 1, "field verify_only 1\n");
    file << record;
    ++written;
  });
  std::printf("%d texts\n", written);
  return file ? 0 : 1;
}
