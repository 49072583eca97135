// Writes a bundle of our StableHLO texts with inputs and our values, for jaxlib to judge: one record per primitive sample.
#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/program.h>

#include "oracle/expected.h"
#include "program/catalog_programs.h"

#include <cstdio>
#include <set>

using namespace capibara;

namespace {

// Values of these are the backend's own affair: the text is verified, not run.
bool is_only_verified(const std::string& primitive) {
  static const std::set<std::string> names = {"rng_uniform", "empty", "rng_bit_generator", "approx_top_k", "random_gamma"};
  return names.count(primitive) != 0;
}

}  // namespace

int main(int count, char** values) {
  if (count != 2) {
    std::fprintf(stderr, "usage: stablehlo_texts_program FILE\n");
    return 2;
  }
  ConfigScope wide = jax::enable_x64();
  std::ofstream file(values[1]);
  const DType dtypes[] = {DType::bool_,   DType::int8,    DType::int32,     DType::uint8,   DType::uint32,
                          DType::float16, DType::float32, DType::float64,   DType::bfloat16, DType::complex64};
  int written = 0;
  catalog_programs::for_each_case(dtypes, [&](const catalog_programs::Case& one) {
    std::string text;
    try {
      text = to_stablehlo(one.program);
    } catch (const NotImplementedError&) {
      return;  // a callback or the like: there is nothing to write
    }
    Arrays outputs;
    const bool verified = is_only_verified(one.primitive.name());
    if (!verified) outputs = evaluate_program(one.program, one.inputs);
    std::string record = oracle::judge_record(one.name, text, one.inputs, outputs);
    if (verified) record.insert(record.find('\n') + 1, "field verify_only 1\n");
    file << record;
    ++written;
  });
  std::printf("%d texts\n", written);
  return file ? 0 : 1;
}
