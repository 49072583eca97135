// Selects the attention equations that cuDNN computes, and writes the calls that replace them.
#include "backends/pjrt/calls/cudnn.h"

#include <dlfcn.h>

#include <capibara/error.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "backends/pjrt/calls/cudnn_config.h"
#include "compiler/optimise/rewrite.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/write_calls.h"
#include "kernels/attention/spec.h"
#include "program/ir/handles.h"

namespace capibara::pjrt {

namespace cudnn {
namespace {

// ---- the library --------------------------------------------------------------------------------------------------

constexpr std::size_t least_version = 90000;

// True if XLA can open cuDNN: already loaded, on the system's path, or in the package next to the plugin.
bool opens_library(const std::string& plugin_path) {
  const char* file = "libcudnn.so.9";
  std::vector<std::string> names = {file};
  std::string folder = plugin_path;
  for (int level = 0; level < 3; ++level) folder.resize(std::min(folder.size(), folder.rfind('/')));
  if (folder != plugin_path) names.push_back(concat(folder, "/nvidia/cudnn/lib/", file));
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) continue;
    auto version = reinterpret_cast<std::size_t (*)()>(dlsym(library, "cudnnGetVersion"));
    return version && version() >= least_version;
  }
  return false;
}

// From the driver, which the plugin has loaded.
int64_t compute_capability() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  using Ask = int (*)(int*, int, int);
  auto ask = driver ? reinterpret_cast<Ask>(dlsym(driver, "cuDeviceGetAttribute")) : nullptr;
  constexpr int major_attribute = 75, minor_attribute = 76;
  int major = 0, minor = 0;
  if (!ask || ask(&major, major_attribute, 0) != 0 || ask(&minor, minor_attribute, 0) != 0) return 0;
  return major * 10 + minor;
}

// ---- the program around an equation -------------------------------------------------------------------------------

const Ints rows = {3, 2, 1, 0}, by_length = {3, 1, 2, 0};  // from the fastest dimension to the slowest

// The transpose between [batch, heads, length, dim] and [batch, length, heads, dim], in either direction, which is
// free where the array is already laid out by length.
bool exchanges_heads(const Equation& equation) {
  return equation.primitive == prim::transpose() && equation.attrs.ints("permutation") == Ints{0, 2, 1, 3};
}

class Around {
 public:
  explicit Around(const Program& program)
      : program_(program),
        definitions_(static_cast<std::size_t>(program.var_count())),
        users_(definitions_.size()),
        lies_by_length_(definitions_.size()) {
    for (const Equation& equation : program.equations()) {
      for (const Var output : equation.outputs) {
        if (!output.dropped()) definitions_[at(output)] = &equation;
      }
      for (const Atom input : equation.inputs) {
        if (!input.is_literal()) users_[at(input.var())].push_back(&equation);
      }
    }
    for (const Atom output : program.outputs()) {
      if (!output.is_literal()) users_[at(output.var())].push_back(nullptr);
    }
  }

  const ArrayType& type(Atom atom) const { return program_.type(atom); }
  // Null for literals, inputs and constants.
  const Equation* definition(Atom atom) const { return atom.is_literal() ? nullptr : definitions_[at(atom.var())]; }
  const Equation* definition(Atom atom, const Primitive& primitive) const {
    const Equation* found = definition(atom);
    return found && found->primitive == primitive ? found : nullptr;
  }
  bool is_used(Var var) const { return !var.dropped() && !users_[at(var)].empty(); }

  void set_by_length(Var var) {
    if (!var.dropped()) lies_by_length_[at(var)] = true;
  }
  // The layout of an operand without copying it, and the layout that the users of a result prefer.
  bool lies_by_length(Atom atom) const {
    const Equation* from = definition(atom);
    return from && (exchanges_heads(*from) || lies_by_length_[at(atom.var())]);
  }
  bool is_wanted_by_length(Var var) const {
    if (var.dropped()) return false;
    const std::vector<const Equation*>& users = users_[at(var)];
    return std::any_of(users.begin(), users.end(), [](const Equation* user) { return user && exchanges_heads(*user); });
  }

 private:
  static std::size_t at(Var var) { return static_cast<std::size_t>(var.id); }

  const Program& program_;
  std::vector<const Equation*> definitions_;
  std::vector<std::vector<const Equation*>> users_;  // null user: an output of the program
  std::vector<bool> lies_by_length_;
};

// ---- what cuDNN takes ---------------------------------------------------------------------------------------------

using kernels::AttentionSizes;
using kernels::AttentionSpec;

struct Operand {
  Atom atom;
  Ints layout;
};

struct Result {
  std::size_t output;  // of the equation
  Ints layout;
};

struct Call {
  std::string target;
  std::string config;
  std::vector<Operand> operands;
  std::vector<Result> results;        // followed by the workspace, whose size XLA determines
  std::optional<Atom> reshaped = {};  // the operand to reshape first, to the shape of the cotangent
};

// Keys that a query attends to, itself and those before it; 0: all. nullopt if cuDNN has no such window.
std::optional<int64_t> window_of(const AttentionSpec& spec, const AttentionSizes& sizes) {
  const bool all_before = spec.left < 0 || spec.left >= sizes.queries, order = spec.causal || spec.right == 0;
  const bool all_after = spec.right < 0 || spec.right >= sizes.keys;
  if (all_before) return order || all_after ? std::optional<int64_t>(0) : std::nullopt;
  if (!order || sizes.queries != sizes.keys || spec.has_bias) return std::nullopt;
  return spec.left + 1;
}

bool takes_bias(const ArrayType& bias, const AttentionSizes& sizes, DType dtype) {
  const Shape& shape = bias.shape;
  return bias.dtype == dtype && (shape[0] == 1 || shape[0] == sizes.batch) &&
         (shape[1] == 1 || shape[1] == sizes.heads) && shape[2] == sizes.queries && shape[3] == sizes.keys;
}

std::optional<CudnnAttention> attention_of(const AttentionSpec& spec, const AttentionSizes& sizes, DType dtype,
                                           int64_t largest) {
  if (dtype != DType::bfloat16 && dtype != DType::float16) return std::nullopt;
  if (sizes.size % 8 != 0 || sizes.size > largest || sizes.value_size != sizes.size) return std::nullopt;
  if (sizes.batch == 0 || sizes.heads == 0 || sizes.queries < 2 || sizes.keys < 2) return std::nullopt;
  if (spec.has_mask || spec.has_segments || spec.has_blocks || spec.dropout_rate > 0) return std::nullopt;
  if (spec.sinks != 0 || spec.prefix != 0 || (spec.by_position() && spec.query_offset != 0)) return std::nullopt;
  if (spec.scale <= 0) return std::nullopt;
  const std::optional<int64_t> window = window_of(spec, sizes);
  if (!window) return std::nullopt;
  return CudnnAttention{
      sizes.batch, sizes.heads, sizes.queries, sizes.keys, dtype, spec.scale, spec.causal || spec.right == 0, *window};
}

const Ints& order(bool length) { return length ? by_length : rows; }

std::optional<Call> forward_call(const Equation& equation, const Around& around, int64_t capability) {
  const AttentionSpec spec(equation.attrs);
  const std::vector<Atom>& in = equation.inputs;
  const AttentionSizes sizes(around.type(in[0]).shape, around.type(in[1]).shape, around.type(in[2]).shape);
  const DType dtype = around.type(in[0]).dtype;
  const std::optional<CudnnAttention> problem = attention_of(spec, sizes, dtype, capability == 90 ? 256 : 128);
  if (!problem) return std::nullopt;
  Call call{"__cudnn$fmhaSoftmax", cudnn_config(*problem, false), {}, {}};
  for (std::size_t i = 0; i < kernels::forward_operands; ++i) {
    call.operands.push_back({in[i], order(around.lies_by_length(in[i]))});
  }
  if (spec.has_bias) {
    const Atom bias = in[kernels::forward_operands + static_cast<std::size_t>(spec.bias)];
    if (!takes_bias(around.type(bias), sizes, dtype)) return std::nullopt;
    call.target = "__cudnn$fmhaScaleBiasSoftmax";
    call.operands.push_back({bias, rows});
  }
  call.results.push_back({0, order(around.is_wanted_by_length(equation.outputs[0]))});
  if (around.is_used(equation.outputs[1])) call.results.push_back({1, {2, 1, 0}});
  return call;
}

// The output of attention, which cuDNN needs and the equation lacks: it has the sums of cotangent * output over the
// last axis, whose definition leads to the output. Where examples were merged into the batch, sums and cotangent are
// reshaped, so the output must be too. nullopt if the sums come from elsewhere.
struct FoundOutput {
  Atom atom;
  bool reshaped;
};
std::optional<FoundOutput> output_behind(const Around& around, Atom cotangent, Atom sums) {
  bool reshaped = false;
  if (const Equation* joined = around.definition(sums, prim::reshape())) {
    const Equation* own = around.definition(cotangent, prim::reshape());
    if (!own || around.type(own->inputs[0]).shape.back() != around.type(cotangent).shape.back()) return std::nullopt;
    sums = joined->inputs[0];
    cotangent = own->inputs[0];
    reshaped = true;
  }
  const Equation* sum = around.definition(sums, prim::reduce_sum());
  const ArrayType& gradient = around.type(cotangent);
  if (!sum || sum->attrs.ints("axes") != Ints{gradient.rank() - 1}) return std::nullopt;
  const Equation* product = around.definition(sum->inputs[0], prim::mul());
  if (!product) return std::nullopt;
  const auto narrow = [&](Atom atom) {
    const Equation* converted = around.definition(atom, prim::convert_element_type());
    return converted ? converted->inputs[0] : atom;
  };
  const Atom left = narrow(product->inputs[0]), right = narrow(product->inputs[1]);
  if (left != cotangent && right != cotangent) return std::nullopt;
  const Atom output = left == cotangent ? right : left;
  const bool fits = around.type(output).dtype == gradient.dtype && around.type(output).shape == gradient.shape;
  return fits ? std::optional(FoundOutput{output, reshaped}) : std::nullopt;
}

std::optional<Call> backward_call(const Equation& equation, const Around& around) {
  const AttentionSpec spec(equation.attrs);
  const std::vector<Atom>& in = equation.inputs;  // cotangent, query, key, value, log-sum-exp, row sums
  const AttentionSizes sizes(around.type(in[1]).shape, around.type(in[2]).shape, around.type(in[3]).shape);
  const DType dtype = around.type(in[1]).dtype;
  const std::optional<CudnnAttention> problem = attention_of(spec, sizes, dtype, 128);
  const std::optional<FoundOutput> output = output_behind(around, in[0], in[5]);
  if (!problem || !output) return std::nullopt;
  Call call{"__cudnn$fmhaSoftmaxBackward", cudnn_config(*problem, true), {}, {}};
  for (std::size_t i = 1; i <= 3; ++i) call.operands.push_back({in[i], order(around.lies_by_length(in[i]))});
  call.operands.push_back({in[4], {2, 1, 0}});
  // Both have the same layout: XLA uses one description for both.
  const Ints& of_output = order(around.lies_by_length(in[0]) || around.lies_by_length(output->atom));
  call.operands.push_back({in[0], of_output});
  if (spec.has_bias) {
    const Atom bias = in[kernels::backward_operands + static_cast<std::size_t>(spec.bias)];
    const bool even = sizes.queries % 2 == 0 && sizes.keys % 2 == 0;
    if (!even || !takes_bias(around.type(bias), sizes, dtype) || around.is_used(equation.outputs[3]))
      return std::nullopt;
    call.target = "__cudnn$fmhaScaleBiasSoftmaxBackward";
    call.operands.push_back({bias, rows});
  }
  call.operands.push_back({output->atom, of_output});
  if (output->reshaped) call.reshaped = output->atom;
  for (std::size_t i = 0; i < 3; ++i) {
    call.results.push_back({i, order(around.is_wanted_by_length(equation.outputs[i]))});
  }
  return call;
}

// ---- the pass -----------------------------------------------------------------------------------------------------

std::string layouts_text(const auto& parts) {
  Attr::List layouts;
  for (const auto& part : parts) layouts.emplace_back(part.layout);
  return stablehlo::layouts_text(layouts);
}

void emit(Copy& copy, const Equation& equation, const Types& outputs, Call call, Around& around) {
  Equation now = equation;
  now.primitive = prim::custom_call();
  now.outputs.clear();
  std::vector<Atom> inputs;
  for (const Operand& operand : call.operands) {
    Atom atom = copy(operand.atom);
    if (call.reshaped == operand.atom) {
      atom = copy.builder().add_equation(
          prim::reshape(), {atom},
          {{"new_sizes", around.type(equation.inputs[0]).shape}, {"dimensions", Attr()}, {"sharding", Attr()}})[0];
    }
    inputs.push_back(atom);
  }
  Attr::List types;
  for (const Result& result : call.results) {
    types.emplace_back(outputs[result.output]);
    now.outputs.push_back(equation.outputs[result.output]);
    if (result.layout == by_length) around.set_by_length(equation.outputs[result.output]);
  }
  ArrayType workspace;
  workspace.shape = {0};
  workspace.dtype = DType::uint8;
  types.emplace_back(workspace);
  now.outputs.push_back(Var{});
  call.results.push_back({0, {0}});
  copy.emit(now, std::move(inputs),
            {{"call_target_name", call.target},
             {"result_types", std::move(types)},
             {"has_side_effect", false},
             {"attributes", concat("api_version = 2 : i32, backend_config = ", stablehlo::quoted_text(call.config),
                                   ", operand_layouts = ", layouts_text(call.operands),
                                   ", result_layouts = ", layouts_text(call.results))}});
}

}  // namespace
}  // namespace cudnn

int64_t cudnn_capability(const Client& client) {
  const char* given = std::getenv("CAPIBARA_CUDNN");
  if (given && std::string_view(given) == "off") return 0;
  static AnswersByPlugin answers;
  const bool found = client.plugin().platform() == "cuda" &&
                     answers(client.plugin(), [](const Plugin& plugin) { return cudnn::opens_library(plugin.path()); });
  static const int64_t capability = found ? cudnn::compute_capability() : 0;
  return found && capability >= 80 ? capability : 0;
}

Program call_cudnn(const Program& program, const std::function<int64_t()>& capability) {
  static const Primitive attention = primitive("flash_attention"), gradient = primitive("flash_attention_grad");
  return passes::NestedPass([&](const Program& one, passes::NestedPass& nested) {
    Copy copy(one);
    std::optional<cudnn::Around> around;
    bool changed = false;
    for (const Equation& equation : one.equations()) {
      std::optional<cudnn::Call> call;
      const bool forward = equation.primitive == attention, backward = equation.primitive == gradient;
      if (const int64_t found = forward || backward ? capability() : 0; found > 0) {
        if (!around) around.emplace(one);
        call = forward ? cudnn::forward_call(equation, *around, found) : cudnn::backward_call(equation, *around);
      }
      if (call) {
        Types types;
        for (const Atom input : equation.inputs) types.push_back(one.type(input));
        cudnn::emit(copy, equation, equation.primitive->type(types, equation.attrs).types, std::move(*call), *around);
        changed = true;
        continue;
      }
      Attrs attrs = nested(equation.attrs);
      changed |= !same_object(attrs, equation.attrs);
      copy.emit(equation, copy(equation.inputs), std::move(attrs));
    }
    return changed ? copy.finish() : one;
  })(program);
}

}  // namespace capibara::pjrt
