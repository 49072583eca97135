// The JSON of XLA's message for calls of cuDNN's attention. 64-bit numbers are strings, as in the JSON of any protocol
// buffer.
#include "backends/pjrt/calls/cudnn_config.h"

#include <capibara/error.h>

#include <charconv>
#include <vector>

namespace capibara::pjrt {

namespace cudnn {

using Fields = std::vector<std::pair<std::string, std::string>>;

static std::string quoted(const std::string& text) { return "\"" + text + "\""; }
static std::string long_number(int64_t value) { return quoted(std::to_string(value)); }

static std::string object(const Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) out += concat(out.empty() ? "" : ", ", quoted(name), ": ", value);
  return "{" + out + "}";
}

template <class T, class F>
static std::string list(const std::vector<T>& values, F&& text) {
  std::string out;
  for (const T& value : values) out += (out.empty() ? "" : ", ") + text(value);
  return "[" + out + "]";
}
static std::string long_numbers(const std::vector<int64_t>& values) { return list(values, long_number); }

static std::string number(double value) {
  char text[40];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// The scores, [batch, heads, queries, keys]: a shape that is never materialised.
static std::string scores(const CudnnAttention& call) {
  const std::string layout = object({{"dim_level_types", "[]"},
                                     {"dim_unique", "[]"},
                                     {"dim_ordered", "[]"},
                                     {"minor_to_major", long_numbers({3, 2, 1, 0})},
                                     {"tiles", "[]"},
                                     {"element_size_in_bits", long_number(0)},
                                     {"memory_space", long_number(0)},
                                     {"index_primitive_type", quoted("PRIMITIVE_TYPE_INVALID")},
                                     {"pointer_primitive_type", quoted("PRIMITIVE_TYPE_INVALID")},
                                     {"dynamic_shape_metadata_prefix_bytes", long_number(0)}});
  return object({{"element_type", quoted(call.dtype == DType::bfloat16 ? "BF16" : "F16")},
                 {"dimensions", long_numbers({call.batch, call.heads, call.queries, call.keys})},
                 {"tuple_shapes", "[]"},
                 {"layout", layout},
                 {"is_dynamic_dimension", "[false, false, false, false]"}});
}

// A matmul that contracts one dimension of each operand; batch and heads are the first two of every array here.
static std::string product(int64_t left, int64_t right) {
  return object({{"lhs_contracting_dimensions", long_numbers({left})},
                 {"rhs_contracting_dimensions", long_numbers({right})},
                 {"lhs_batch_dimensions", long_numbers({0, 1})},
                 {"rhs_batch_dimensions", long_numbers({0, 1})}});
}

// S = Q K^T and O = P V.
static const Fields& forward_products() {
  static const Fields fields = {{"bmm1_dot_dimension_numbers", product(3, 3)},
                                {"bmm2_dot_dimension_numbers", product(3, 2)}};
  return fields;
}

// dK = dS^T Q, dQ = dS K, dV = P^T dO, dP = dO V^T.
static const Fields& backward_products() {
  static const Fields fields = {{"bmm1_grad_gemm1_dot_dimension_numbers", product(2, 2)},
                                {"bmm1_grad_gemm2_dot_dimension_numbers", product(3, 2)},
                                {"bmm2_grad_gemm1_dot_dimension_numbers", product(2, 2)},
                                {"bmm2_grad_gemm2_dot_dimension_numbers", product(3, 3)}};
  return fields;
}

}  // namespace cudnn

std::string cudnn_config(const CudnnAttention& call, bool backward) {
  using namespace cudnn;
  const std::string algorithm = object({{"algo_id", long_number(0)},
                                        {"math_type", quoted("TENSOR_OP_MATH")},
                                        {"tuning_knobs", object({{"17", long_number(1)}, {"24", long_number(0)}})},
                                        {"is_cudnn_frontend", "true"},
                                        {"workspace_size", long_number(0)}});
  Fields fields = {{"algorithm", algorithm},
                   {"fmha_scale", number(call.scale)},
                   {"intermediate_tensor_shape", scores(call)},
                   {"is_flash_attention", "true"},
                   {"mask_type", quoted(call.causal ? "CAUSAL" : "NO_MASK")}};
  const Fields& products = backward ? backward_products() : forward_products();
  fields.insert(fields.end(), products.begin(), products.end());
  const Fields rest = {{"dropout_rate", "0.0"},
                       {"seed", "42"},
                       {"sliding_window_length", std::to_string(call.window)},
                       {"max_seg_per_batch", "1"},
                       {"is_paged_attention", "false"}};
  fields.insert(fields.end(), rest.begin(), rest.end());
  return object({{"operation_queue_id", long_number(0)}, {"cudnn_fmha_backend_config", object(fields)}});
}

}  // namespace capibara::pjrt
