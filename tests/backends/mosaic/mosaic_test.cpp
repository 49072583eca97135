// TPU kernels as text: run by the interpreter against definitions in float64, and the checks of windows and memory.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/pjrt/prepare.h"
#include "programs.h"

namespace capibara::mosaic {
namespace {

// ---- norms ----------------------------------------------------------------------------------------------------------

struct Row {
  double mean = 0, inverse = 0;
  std::vector<double> normal;
};

Row row_of(const double* x, int64_t columns, double epsilon, bool centered) {
  Row row;
  double square = 0;
  for (int64_t i = 0; i < columns && centered; ++i) row.mean += x[i] / double(columns);
  for (int64_t i = 0; i < columns; ++i) square += (x[i] - row.mean) * (x[i] - row.mean) / double(columns);
  row.inverse = 1 / std::sqrt(square + epsilon);
  for (int64_t i = 0; i < columns; ++i) row.normal.push_back((x[i] - row.mean) * row.inverse);
  return row;
}

void check_norm(const Shape& shape, DType dtype, bool centered) {
  const int64_t columns = shape.back();
  const Array x = drawn(1, shape, dtype), scale = drawn(2, {columns}, dtype), bias = drawn(3, {columns}, dtype);
  const Array dy = drawn(4, shape, dtype);
  const Primitive forward = primitive(centered ? "layer_norm" : "rms_norm");
  const Arrays arguments = centered ? Arrays{x, scale, bias} : Arrays{x, scale};
  const Program program = with_kernels(
      [&](std::span<const Array> in) {
        return capibara::bind(forward, Arrays(in.begin(), in.end()), Attrs{{"epsilon", 1e-5}});
      },
      arguments);
  ASSERT_EQ(kernel_texts(program).size(), 1u) << program.to_string();
  const Arrays results = run(program, arguments);
  Arrays saved = {dy, x, scale};
  saved.insert(saved.end(), results.begin() + 1, results.end());
  const Primitive backward = primitive(centered ? "layer_norm_grad" : "rms_norm_grad");
  const Program reverse = with_kernels(
      [&](std::span<const Array> in) { return capibara::bind(backward, Arrays(in.begin(), in.end()), Attrs{}); },
      saved);
  ASSERT_EQ(kernel_texts(reverse).size(), 1u);
  const Arrays gradients = run(reverse, saved);

  const std::vector<double> xs = numbers(x), scales = numbers(scale), biases = numbers(bias), dys = numbers(dy);
  std::vector<double> y, means, inverses, dx, dscale(static_cast<std::size_t>(columns)), dbias = dscale;
  for (std::size_t start = 0; start < xs.size(); start += static_cast<std::size_t>(columns)) {
    const Row row = row_of(&xs[start], columns, 1e-5, centered);
    means.push_back(row.mean);
    inverses.push_back(row.inverse);
    double sum = 0, product = 0;
    for (std::size_t i = 0; i < row.normal.size(); ++i) {
      y.push_back(row.normal[i] * scales[i] + (centered ? biases[i] : 0));
      const double weighted = dys[start + i] * scales[i];
      sum += centered ? weighted / double(columns) : 0;
      product += weighted * row.normal[i] / double(columns);
      dscale[i] += dys[start + i] * row.normal[i];
      dbias[i] += dys[start + i];
    }
    for (std::size_t i = 0; i < row.normal.size(); ++i)
      dx.push_back(row.inverse * (dys[start + i] * scales[i] - sum - row.normal[i] * product));
  }
  const double tolerance = tolerance_of(dtype);
  expect_close(results[0], y, tolerance, "y");
  expect_close(results.back(), inverses, 2e-5, "inverse");
  if (centered) expect_close(results[1], means, 2e-5, "mean");
  expect_close(gradients[0], dx, tolerance, "dx");
  expect_close(gradients[1], dscale, tolerance, "dscale");
  if (centered) expect_close(gradients[2], dbias, tolerance, "dbias");
}

TEST(MosaicNorms, EqualTheirDefinition) {
  for (const bool centered : {false, true}) {
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      check_norm({5, 8}, dtype, centered);
      check_norm({2, 3, 130}, dtype, centered);
      check_norm({700, 200}, dtype, centered);  // blocks of 512 rows, the last one ragged
    }
  }
}

// ---- attention ------------------------------------------------------------------------------------------------------

struct Problem {
  int64_t batch = 1, heads = 1, groups = 1, queries, keys, size = 8, value_size = 8;
  bool causal = false;
  std::pair<int64_t, int64_t> window = {-1, -1};
  int64_t offset = 0;
  bool segments = false;
  std::optional<Shape> mask, bias;  // [batch or 1, heads or 1, queries or 1, keys or 1]
  DType dtype = DType::float32;

  Attrs attrs() const {
    return {{"causal", causal},
            {"mask", mask.has_value()},
            {"bias", bias.has_value()},
            {"segments", segments},
            {"blocks", false},
            {"scale", 0.4},
            {"dropout_rate", 0.0},
            {"window", Ints{window.first, window.second}},
            {"sinks", 0},
            {"prefix", 0},
            {"query_offset", offset},
            {"block_size", 0}};
  }
  int64_t segment_of(int64_t position) const { return position / 3 % 4; }
  // The element of an operand of pairs for (batch, head, query, key).
  static std::size_t pair_at(const Shape& shape, const Shape& index) {
    int64_t at = 0;
    for (std::size_t i = 0; i < 4; ++i) at = at * shape[i] + (shape[i] == 1 ? 0 : index[i]);
    return static_cast<std::size_t>(at);
  }
  Array mask_array() const { return drawn(11, *mask) > Array(-0.4f); }
  Array bias_array() const { return drawn(12, *bias, dtype); }
  bool sees(int64_t query, int64_t key) const {
    const int64_t at = query + offset;
    if (causal && key > at) return false;
    if (window.first >= 0 && key < at - window.first) return false;
    if (window.second >= 0 && key > at + window.second) return false;
    return !segments || segment_of(query) == segment_of(key);
  }
  Array segment_array(int64_t length) const {
    std::vector<int32_t> ids;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(segment_of(i)));
    }
    return Array::from_host(DType::int32, {batch, length}, ids.data());
  }
};

struct Truth {
  std::vector<double> output, lse, delta, dquery, dkey, dvalue, dbias;
};

Truth attend(const Problem& p, const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
             const std::vector<double>& g) {
  Truth truth;
  const auto zeros = [](int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 0.0); };
  truth.output = zeros(p.batch * p.heads * p.queries * p.value_size);
  truth.dquery = zeros(static_cast<int64_t>(q.size()));
  truth.dkey = zeros(static_cast<int64_t>(k.size()));
  truth.dvalue = zeros(static_cast<int64_t>(v.size()));
  const std::vector<double> masks = p.mask ? numbers(p.mask_array()) : zeros(0);
  const std::vector<double> biases = p.bias ? numbers(p.bias_array()) : zeros(0);
  truth.dbias = zeros(static_cast<int64_t>(biases.size()));
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t h = 0; h < p.heads; ++h) {
      const int64_t shared = b * p.groups + h / (p.heads / p.groups);
      for (int64_t i = 0; i < p.queries; ++i) {
        const int64_t row = (b * p.heads + h) * p.queries + i;
        const double *own = &q[static_cast<std::size_t>(row * p.size)],
                     *cotangent = &g[static_cast<std::size_t>(row * p.value_size)];
        double* output = &truth.output[static_cast<std::size_t>(row * p.value_size)];
        std::vector<double> shares = zeros(p.keys);
        double sum = 0, delta = 0;
        for (int64_t j = 0; j < p.keys; ++j) {
          if (!p.sees(i, j) || (p.mask && masks[p.pair_at(*p.mask, {b, h, i, j})] == 0)) continue;
          const double* key = &k[static_cast<std::size_t>((shared * p.keys + j) * p.size)];
          double logit = p.bias ? biases[p.pair_at(*p.bias, {b, h, i, j})] : 0;
          for (int64_t d = 0; d < p.size; ++d) logit += 0.4 * own[d] * key[d];
          sum += shares[static_cast<std::size_t>(j)] = std::exp(logit);
        }
        truth.lse.push_back(sum > 0 ? std::log(sum) : -INFINITY);
        for (int64_t j = 0; j < p.keys && sum > 0; ++j) {
          double& share = shares[static_cast<std::size_t>(j)];
          share /= sum;
          const double* value = &v[static_cast<std::size_t>((shared * p.keys + j) * p.value_size)];
          for (int64_t d = 0; d < p.value_size; ++d) output[d] += share * value[d];
        }
        for (int64_t d = 0; d < p.value_size; ++d) delta += cotangent[d] * output[d];
        truth.delta.push_back(delta);
        for (int64_t j = 0; j < p.keys; ++j) {
          const double share = shares[static_cast<std::size_t>(j)];
          const int64_t at = shared * p.keys + j;
          double dshare = 0;
          for (int64_t d = 0; d < p.value_size; ++d) {
            dshare += cotangent[d] * v[static_cast<std::size_t>(at * p.value_size + d)];
            truth.dvalue[static_cast<std::size_t>(at * p.value_size + d)] += share * cotangent[d];
          }
          if (p.bias) truth.dbias[p.pair_at(*p.bias, {b, h, i, j})] += share * (dshare - delta);
          const double dlogit = 0.4 * share * (dshare - delta);
          for (int64_t d = 0; d < p.size; ++d) {
            truth.dquery[static_cast<std::size_t>(row * p.size + d)] +=
                dlogit * k[static_cast<std::size_t>(at * p.size + d)];
            truth.dkey[static_cast<std::size_t>(at * p.size + d)] += dlogit * own[d];
          }
        }
      }
    }
  }
  return truth;
}

void check_attention(const Problem& p, const std::string& what) {
  const Array q = drawn(1, {p.batch, p.heads, p.queries, p.size}, p.dtype);
  const Array k = drawn(2, {p.batch, p.groups, p.keys, p.size}, p.dtype);
  const Array v = drawn(3, {p.batch, p.groups, p.keys, p.value_size}, p.dtype);
  const Array g = drawn(4, {p.batch, p.heads, p.queries, p.value_size}, p.dtype);
  const Truth truth = attend(p, numbers(q), numbers(k), numbers(v), numbers(g));
  const auto bound = [&](const char* name) {
    return [&p, name](std::span<const Array> in) {
      return capibara::bind(primitive(name), Arrays(in.begin(), in.end()), p.attrs());
    };
  };
  Arrays arguments = {q, k, v};
  if (p.mask) arguments.push_back(p.mask_array());
  if (p.bias) arguments.push_back(p.bias_array());
  if (p.segments) arguments.insert(arguments.end(), {p.segment_array(p.queries), p.segment_array(p.keys)});
  const Program program = with_kernels(bound("flash_attention"), arguments);
  ASSERT_EQ(kernel_texts(program).size(), 1u) << what;
  EXPECT_LT(kernel_texts(program)[0].size(), 40000u);
  const Arrays results = run(program, arguments);
  const double tolerance = tolerance_of(p.dtype);
  expect_close(results[0], truth.output, tolerance, what + ": output");
  expect_close(results[1], truth.lse, tolerance, what + ": lse");

  std::vector<float> delta(truth.delta.begin(), truth.delta.end());
  Arrays saved = {g, q,          k,
                  v, results[1], Array::from_host(DType::float32, {p.batch, p.heads, p.queries}, delta.data())};
  saved.insert(saved.end(), arguments.begin() + 3, arguments.end());
  const Program reverse = with_kernels(bound("flash_attention_grad"), saved);
  ASSERT_EQ(kernel_texts(reverse).size(), 2u) << what;
  const Arrays gradients = run(reverse, saved);
  expect_close(gradients[0], truth.dquery, tolerance, what + ": dquery");
  expect_close(gradients[1], truth.dkey, tolerance, what + ": dkey");
  expect_close(gradients[2], truth.dvalue, tolerance, what + ": dvalue");
  if (p.bias) expect_close(gradients[3], truth.dbias, tolerance, what + ": dbias");
}

TEST(MosaicAttention, EqualsItsDefinition) {
  check_attention({.queries = 6, .keys = 9}, "plain");
  check_attention(
      {.batch = 2, .heads = 4, .groups = 2, .queries = 7, .keys = 7, .size = 5, .value_size = 3, .causal = true},
      "grouped causal");
  check_attention({.queries = 10, .keys = 20, .window = {3, 2}, .offset = 4}, "window");
  check_attention({.queries = 10, .keys = 10, .causal = true, .offset = -3}, "rows that see no key");
  check_attention({.batch = 2, .heads = 2, .groups = 1, .queries = 12, .keys = 15, .segments = true}, "segments");
  check_attention(
      {.heads = 2, .queries = 16, .keys = 16, .size = 16, .value_size = 16, .causal = true, .dtype = DType::bfloat16},
      "bfloat16");
}

TEST(MosaicAttention, TakesMasksAndBiases) {
  check_attention({.batch = 2, .heads = 2, .queries = 6, .keys = 9, .mask = Shape{2, 2, 6, 9}}, "mask");
  check_attention({.batch = 2, .heads = 2, .groups = 1, .queries = 7, .keys = 9, .mask = Shape{2, 1, 1, 9}}, "padding");
  check_attention({.batch = 2, .heads = 4, .groups = 2, .queries = 8, .keys = 9, .bias = Shape{1, 4, 8, 9}}, "bias");
  check_attention({.batch = 2, .heads = 2, .queries = 8, .keys = 9, .causal = true, .bias = Shape{1, 2, 1, 9}}, "rows");
  check_attention({.heads = 2,
                   .groups = 2,
                   .queries = 16,
                   .keys = 16,
                   .causal = true,
                   .mask = Shape{1, 1, 16, 1},
                   .bias = Shape{1, 2, 16, 16},
                   .dtype = DType::bfloat16},
                  "both in bfloat16");
  // Blocks have 512 queries and 512 keys.
  check_attention({.queries = 520,
                   .keys = 530,
                   .size = 4,
                   .value_size = 4,
                   .causal = true,
                   .mask = Shape{1, 1, 520, 530},
                   .bias = Shape{1, 1, 520, 530}},
                  "several blocks");
}

// Blocks have 512 queries and 1024 keys: both lengths are ragged.
TEST(MosaicAttention, EqualsItsDefinitionOverSeveralBlocks) {
  check_attention({.queries = 520, .keys = 1030, .size = 4, .value_size = 4}, "ragged");
  check_attention({.heads = 2, .queries = 520, .keys = 1030, .size = 4, .value_size = 4, .causal = true, .offset = 510},
                  "ragged causal");
  check_attention({.queries = 1030, .keys = 1030, .size = 4, .value_size = 4, .causal = true, .window = {40, -1}},
                  "ragged window");
}

TEST(MosaicAttention, LeavesOptionsThatItHasNotToThePlainProgram) {
  const Array x = drawn(1, {1, 1, 8, 8});
  const auto calls = [&](const kernels::FlashAttentionOptions& options) {
    return kernel_texts(with_kernels(
                            [&](std::span<const Array> in) {
                              return Arrays{kernels::flash_attention(in[0], in[0], in[0], options)};
                            },
                            {x}))
        .size();
  };
  EXPECT_EQ(calls({}), 1u);
  EXPECT_EQ(calls({.causal = true, .window = std::pair<int64_t, int64_t>(2, 2), .sinks = 1}), 0u);
  EXPECT_EQ(calls({.dropout_rate = 0.5, .dropout_key = jax::random::PRNGKey(1)}), 0u);
}

// ---- grouped matmuls ------------------------------------------------------------------------------------------------

void check_groups(int64_t inner, int64_t columns, const std::vector<int32_t>& sizes, int64_t rows, bool transposed,
                  DType dtype) {
  const int64_t groups = static_cast<int64_t>(sizes.size());
  const Array x = drawn(1, {rows, inner}, dtype), y = drawn(2, {rows, columns}, dtype);
  const Array weights = drawn(3, transposed ? Shape{groups, columns, inner} : Shape{groups, inner, columns}, dtype);
  const Array counts = Array::from_host(DType::int32, {groups}, sizes.data());
  const Arrays given = {x, weights, counts}, pair = {x, y, counts};
  const Program program = with_kernels(
      [&](std::span<const Array> in) {
        return capibara::bind(primitive("grouped_matmul"), Arrays(in.begin(), in.end()),
                              Attrs{{"transpose_weights", transposed}});
      },
      given);
  const Program sums = with_kernels(
      [](std::span<const Array> in) {
        return capibara::bind(primitive("grouped_outer"), Arrays(in.begin(), in.end()), Attrs{});
      },
      pair);
  ASSERT_EQ(kernel_texts(program).size(), 1u);
  ASSERT_EQ(kernel_texts(sums).size(), 1u);
  const std::vector<double> xs = numbers(x), ys = numbers(y), ws = numbers(weights);
  std::vector<double> product(static_cast<std::size_t>(rows * columns)), outer(ws.size());
  int64_t row = 0;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t end = row + sizes[static_cast<std::size_t>(g)]; row < end; ++row) {
      for (int64_t i = 0; i < inner; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const double left = xs[static_cast<std::size_t>(row * inner + i)];
          const int64_t at = transposed ? (g * columns + j) * inner + i : (g * inner + i) * columns + j;
          product[static_cast<std::size_t>(row * columns + j)] += left * ws[static_cast<std::size_t>(at)];
          outer[static_cast<std::size_t>((g * inner + i) * columns + j)] +=
              left * ys[static_cast<std::size_t>(row * columns + j)];
        }
      }
    }
  }
  expect_close(run(program, given)[0], product, tolerance_of(dtype), "product");
  expect_close(run(sums, pair)[0], outer, tolerance_of(dtype), "outer");
}

// Groups without rows, groups that share a block of 512 rows, rows of no group.
TEST(MosaicGroups, EqualTheirDefinition) {
  check_groups(5, 7, {3, 0, 4, 2}, 12, false, DType::float32);
  check_groups(5, 7, {0, 0}, 4, true, DType::float32);
  check_groups(4, 6, {300, 0, 500, 200, 1}, 1030, true, DType::float32);
  check_groups(4, 6, {512, 518}, 1030, false, DType::bfloat16);
  check_groups(1024 + 512, 3, {2, 5}, 8, false, DType::float32);  // the inner size in three steps
}

// ---- programs for plugins -------------------------------------------------------------------------------------------

TEST(MosaicPrograms, CallKernelsWhereThePluginIsForTpus) {
  const auto norm = [](std::span<const Array> in) {
    return capibara::bind(primitive("rms_norm"), Arrays(in.begin(), in.end()), Attrs{{"epsilon", 1e-5}});
  };
  const Types types = {typed(DType::float32, {16, 128}), typed(DType::float32, {128})};
  const Program program = stage(norm, types, "f").program;
  const auto calls = [&](bool tpu) {
    return pjrt::prepare(program, {}, {.tpu_kernels = tpu}).text.find("@tpu_custom_call") != std::string::npos;
  };
  EXPECT_TRUE(calls(true));
  EXPECT_FALSE(calls(false));
  // XLA cannot partition a kernel.
  EXPECT_EQ(kernel_texts(call_kernels(program, false)).size(), 1u);
  EXPECT_EQ(kernel_texts(call_kernels(program, true)).size(), 0u);
  // Kernels have no float16: the composition stays.
  const Program wide = stage(norm, Types{typed(DType::float16, {16, 128}), typed(DType::float16, {128})}, "f").program;
  EXPECT_EQ(kernel_texts(call_kernels(wide, false)).size(), 0u);
}

// ---- the builder's checks -------------------------------------------------------------------------------------------

std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const ValueError& error) {
    return error.what();
  }
  return "";
}

std::vector<Value> first_block(const Point& point) { return {point.kernel.constant(0), point.kernel.constant(0)}; }

TEST(MosaicKernel, RefusesWhatLibtpuRefuses) {
  const auto windowed = [](DType dtype, Shape shape, Shape block) {
    return message_of([&] {
      Kernel kernel("k", {{1, Kernel::Order::arbitrary}});
      kernel.input("x", typed(dtype, shape), block, first_block);
      kernel.finish();
    });
  };
  const std::string misaligned = windowed(DType::float32, {1024, 128}, {256, 64});
  EXPECT_NE(misaligned.find("TPU kernel k: operand 'x'"), std::string::npos) << misaligned;
  EXPECT_NE(misaligned.find("multiple of 128 nor the whole 128"), std::string::npos) << misaligned;
  EXPECT_NE(windowed(DType::float32, {1024, 128}, {12, 128}).find("multiple of 8"), std::string::npos);
  EXPECT_EQ(windowed(DType::float32, {10, 100}, {8, 100}), "");
  const std::string large = windowed(DType::float32, {8192, 2048}, {4096, 2048});
  EXPECT_NE(large.find("need 67108864 bytes of VMEM, more than the limit of 16777216"), std::string::npos) << large;
  EXPECT_NE(windowed(DType::float16, {8, 128}, {8, 128})
                .find("expected float32, bfloat16, int32 or int8, got float16[8,128]"),
            std::string::npos);
}

TEST(MosaicKernel, RefusesOperandsThatDoNotFit) {
  Kernel kernel("k", {{1, Kernel::Order::arbitrary}});
  const Value a = kernel.filled(0, Element::f32, {8, 128}), b = kernel.filled(0, Element::bf16, {8, 128});
  EXPECT_NE(message_of([&] { a + b; }).find("arith.addf: expected one element type"), std::string::npos);
  EXPECT_NE(message_of([&] { kernel.matmul(a, 1, a, 0, false); }).find("matmul: expected matrices"), std::string::npos);
  EXPECT_NE(message_of([&] { exp(b); }).find("math.exp: expected f32, got vector<8x128xbf16>"), std::string::npos);
}

// ---- the interpreter ------------------------------------------------------------------------------------------------

std::string error_of(const std::string& text, const std::vector<Tensor>& operands, const std::vector<Tensor>& results) {
  try {
    run_kernel(text, operands, results);
  } catch (const KernelError& error) {
    return error.what();
  }
  return "";
}

TEST(MosaicInterpreter, FindsWhatATpuLeavesUndefined) {
  const ArrayType type = typed(DType::float32, {16, 128});
  const auto row = [](const Point& point) -> std::vector<Value> { return {point.at[0], point.kernel.constant(0)}; };
  Kernel unwritten("unwritten", {{2, Kernel::Order::parallel}});
  const Ref y = unwritten.output("y", type, {8, 128}, row), scratch = unwritten.scratch("s", Element::f32, {8, 128});
  unwritten.store(unwritten.load(scratch), y);
  unwritten.finish();
  EXPECT_EQ(error_of(unwritten.text(), {}, {tensor_of(type)}), "scratch %s is read before it is written");

  Kernel again("again", {{2, Kernel::Order::arbitrary}, {2, Kernel::Order::arbitrary}});
  const Ref z = again.output("z", type, {8, 128}, [](const Point& point) -> std::vector<Value> {
    return {point.at[1], point.kernel.constant(0)};
  });
  again.store(again.filled(1, Element::f32, {8, 128}), z);
  again.finish();
  EXPECT_EQ(error_of(again.text(), {}, {tensor_of(type)}), "an output block is visited again after it was left");

  // A sum over rows beyond the array is NaN.
  const ArrayType ragged = typed(DType::float32, {12, 128}), sum = typed(DType::float32, {1, 128});
  Kernel total("total", {{1, Kernel::Order::arbitrary}});
  const Ref x = total.input("x", ragged, {16, 128}, row), into = total.output("sum", sum, {1, 128}, first_block);
  total.store(total.reduce(Kernel::Reduction::add, total.load(x), 0), into);
  total.finish();
  Tensor ones = tensor_of(ragged);
  ones.data.assign(12 * 128, 1);
  EXPECT_TRUE(std::isnan(run_kernel(total.text(), {ones}, {tensor_of(sum)})[0].data[0]));
}

TEST(MosaicInterpreter, SurvivesRandomTexts) {
  const Arrays arguments = {drawn(1, {3, 4}), drawn(2, {4})};
  const Program program = with_kernels(
      [](std::span<const Array> in) {
        return capibara::bind(primitive("rms_norm"), Arrays(in.begin(), in.end()), Attrs{{"epsilon", 1e-5}});
      },
      arguments);
  const std::string text = kernel_texts(program).at(0);
  const Tensor x{"f32", {3, 4}, std::vector<double>(12, 1.0)}, scale{"f32", {1, 4}, std::vector<double>(4, 1.0)};
  const std::vector<Tensor> results = {{"f32", {3, 4}, {}}, {"f32", {3, 1}, {}}};
  ASSERT_EQ(error_of(text, {x, scale}, results), "");
  std::mt19937 random(5);
  const std::string letters = "(){}[]<>%\"@,:=-x0129f \n";
  int refused = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string broken = text;
    for (uint32_t edits = 1 + random() % 3; edits-- > 0;) {
      const std::size_t at = random() % broken.size(), from = random() % broken.size();
      switch (random() % 4) {
        case 0:
          broken.erase(at, 1 + random() % 8);
          break;
        case 1:
          broken.insert(at, 1, letters[random() % letters.size()]);
          break;
        case 2:
          broken[at] = letters[random() % letters.size()];
          break;
        default:
          broken.insert(at, broken.substr(from, random() % 40));
      }
      if (broken.empty()) broken = " ";
    }
    refused += !error_of(broken, {x, scale}, results).empty();
  }
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace capibara::mosaic
