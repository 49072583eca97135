// jit: compiles a traced program on its first call, and runs it.
#include <capibara/jit.h>

#include <capibara/default_device.h>

#include "backends/result_placement.h"
#include "core/array/bad_value.h"
#include "core/profile/recorder.h"
#include "core/runtime/counters.h"
#include "core/runtime/listeners.h"
#include "core/runtime/warning.h"
#include "core/sharding/explicit.h"
#include "lax/call.h"
#include "program/ir/build.h"
#include "program/ir/copy.h"
#include "program/ir/cost.h"
#include "program/ir/dce.h"
#include "program/ir/plain_types.h"
#include "program/trace/trace.h"
#include "transforms/agreement.h"
#include "transforms/jit_divided.h"
#include "transforms/jit_entry.h"
#include "transforms/jit_stages.h"
#include "transforms/jit_watch.h"

#include <algorithm>
#include <cstdio>

namespace capibara::detail {

void print_line(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

std::string seconds_since(std::chrono::steady_clock::time_point start) {
  return concat(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

namespace {

std::string types_text(const Types& types) {
  std::string text;
  for (const ArrayType& type : types) text += concat(text.empty() ? "" : ", ", to_string(type));
  return text;
}

}  // namespace

std::pair<Program, std::vector<std::size_t>> JitEntry::pruned() const {
  std::vector<bool> outputs(program.outputs().size(), true);
  std::vector<bool> keep(program.invars().size(), options.keep_unused);
  DceProgram result = dce_program(program, outputs, keep);
  std::vector<std::size_t> inputs;
  for (std::size_t i = 0; i < program.invars().size(); ++i) {
    if (options.keep_unused || result.used_inputs[i]) inputs.push_back(i);
  }
  return {result.program, std::move(inputs)};
}

void JitEntry::compile() const {
  auto start = std::chrono::steady_clock::now();
  profile::Timed timed(profile::EventKind::compile, "compile");
  if (timed.on()) timed.argument("program", options.name);
  std::tie(ready_.program, ready_.inputs) = pruned();
  choose_donations();
  if (has_explicit_types(ready_.program)) {
    ready_.result_types = ready_.program.output_types();
    ready_.program = with_plain_types(ready_.program);
  }
  ready_.says_placement = says_placement(ready_.program);
  ready_.all_inputs = captured.empty() && ready_.inputs.size() == program.invars().size();
  ready_.donates = std::find(ready_.donated.begin(), ready_.donated.end(), true) != ready_.donated.end();
  bool log = config().log_compiles;
  if (log) {
    print_line(concat("Compiling jit(", options.name, ") with global shapes and types (",
                      types_text(ready_.program.input_types()), ")."));
  }
  const DefaultDeviceScope scope(device);
  const CompilerOptionsScope compiler_scope(compiler_options);
  ready_.executable = default_backend().compile_donating(ready_.program, ready_.donated);
  ready_.flops = program_flops(ready_.program);
  Counters::add(process_counters.compilations, 1);
  Counters::add(process_counters.compile_nanoseconds,
                static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count()));
  tell_duration("/jax/core/compile/backend_compile_duration", concat("jit(", options.name, ")"), start);
  at_first_compilation();
  if (log) print_line(concat("Finished compilation of jit(", options.name, ") in ", seconds_since(start), " sec"));
}

void JitEntry::choose_donations() const {
  Types free = ready_.program.output_types();
  Types unusable;
  ready_.donated.clear();  // a previous compilation may have failed
  for (std::size_t input : ready_.inputs) {
    bool use = false;
    if (input >= captured.size() && donated[input - captured.size()]) {
      const ArrayType& type = program.type(program.invars()[input]);
      auto it = std::find_if(free.begin(), free.end(), [&](const ArrayType& output) {
        return output.shape == type.shape && output.dtype == type.dtype;
      });
      use = it != free.end();
      if (use)
        free.erase(it);
      else
        unusable.push_back(type);
    }
    ready_.donated.push_back(use);
  }
  if (!unusable.empty()) warn(concat("Some donated buffers were not usable: ", types_text(unusable), "."));
}

namespace {

// With debug_nans or debug_infs: on a hit the program is rerun one operation at a time to find the first bad one.
Arrays execute_checked(const JitEntry& entry, std::span<const Array> inputs) {
  Config settings = config(), quiet = settings;
  quiet.debug_nans = quiet.debug_infs = false;
  const JitEntry::Ready& ready = entry.ready();
  Arrays outputs;
  {
    ConfigScope scope(quiet);
    outputs = ready.executable->execute(inputs, std::vector<bool>(inputs.size(), false));
  }
  for (const Array& output : outputs) {
    if (find_bad_value(output, settings.debug_nans, settings.debug_infs) == BadValue::none) continue;
    print_line(concat("Invalid value encountered in the output of the jit function ", entry.options.name,
                      ". Calling the de-optimized version."));
    evaluate_program(inline_jit_calls(ready.program), inputs);
    throw FloatingPointError(concat("invalid value encountered in an output of jit(", entry.options.name,
                                    "), which running it operation by operation did not show again"));
  }
  return outputs;
}

void check_donated_once(const JitEntry& entry, std::span<const Array> inputs, const std::vector<bool>& donated) {
  std::vector<const std::byte*> addresses;
  for (const Array& input : inputs) {
    if (!input.type().ref) addresses.push_back(input.buffer().address());
  }
  std::sort(addresses.begin(), addresses.end());
  if (std::adjacent_find(addresses.begin(), addresses.end()) == addresses.end()) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!donated[i]) continue;
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      if (i == j || inputs[j].type().ref || !inputs[i].buffer().same_as(inputs[j].buffer()) || inputs[i].size() == 0)
        continue;
      throw RuntimeError(concat("jit(", entry.options.name, "): a donated ", to_string(inputs[i].type()),
                                " is passed twice; pass a copy, or do not donate it"));
    }
  }
}

// Results that alias a donated input take over its memory, and the input counts as deleted.
void hand_over(std::span<const Array> inputs, const std::vector<bool>& donated, Arrays& outputs) {
  static const Primitive copy = primitive("copy");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!donated[i] || inputs[i].type().ref || inputs[i].is_deleted()) continue;
    std::vector<std::size_t> results;
    Types types;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!outputs[o].buffer().same_as(inputs[i].buffer())) continue;
      results.push_back(o);
      types.push_back(outputs[o].type());
      outputs[o] = Array();
    }
    if (results.empty()) continue;
    inputs[i].block_until_ready();
    Buffer memory = inputs[i].buffer().take();
    if (!memory.defined()) {  // another array holds it
      memory = default_backend().run(copy, inputs.subspan(i, 1), {})[0].buffer();
      inputs[i].delete_buffers();
    }
    for (std::size_t r = 0; r < results.size(); ++r) outputs[results[r]] = Array::from_buffer(types[r], memory);
  }
}

// Results must not alias inputs: an input may be donated to another call, or be modified from outside.
Arrays separated(const JitEntry::Ready& ready, std::span<const Array> inputs, Arrays outputs) {
  static const Primitive copy = primitive("copy");
  ready.compared.run([&] {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      auto is_output = [&](const Array& input) {
        return !input.type().ref && input.buffer().same_as(outputs[i].buffer());
      };
      if (outputs[i].size() > 0 && std::any_of(inputs.begin(), inputs.end(), is_output)) ready.handed_on.push_back(i);
    }
  });
  for (std::size_t output : ready.handed_on)
    outputs[output] = default_backend().run(copy, std::span(&outputs[output], 1), {})[0];
  return outputs;
}

}  // namespace

Arrays call_jit_entry(const JitEntry& entry, std::span<const Array> leaves) {
  bool traced =
      !evaluating() || std::any_of(leaves.begin(), leaves.end(), [](const Array& leaf) { return leaf.is_tracer(); });
  if (traced || entry.captures_tracer) {
    Arrays inputs = entry.captured;
    inputs.insert(inputs.end(), leaves.begin(), leaves.end());
    if (entry.options.inline_) return evaluate_program(entry.program, inputs);
    return call_program(entry.program, inputs, entry.options.name);
  }
  const JitEntry::Ready& ready = entry.ready();
  Arrays chosen;
  if (!ready.all_inputs) {
    chosen.reserve(ready.inputs.size());
    const std::size_t captured = entry.captured.size();
    for (std::size_t input : ready.inputs)
      chosen.push_back(input < captured ? entry.captured[input] : leaves[input - captured]);
  }
  const std::span<const Array> inputs = ready.all_inputs ? leaves : std::span<const Array>(chosen);
  const Config& settings = config();
  if (ready.says_placement && entry.committed) check_arguments(ready.program, inputs);
  if (ready.says_placement) ready.agreed.run([&] { agree_on_program(ready.program, entry.options.name); });
  Counters::add(process_counters.executions, 1);
  CountedWork::add(ready.flops);
  Arrays outputs;
  if (settings.debug_nans || settings.debug_infs) {
    outputs = execute_checked(entry, inputs);
  } else if (const auto divided =
                 entry.committed || ready.says_placement ? divided_executable(ready.program, inputs) : nullptr) {
    outputs = divided->execute(inputs, {});
  } else if (!ready.donates) {
    outputs = separated(ready, inputs, ready.executable->execute(inputs, {}));
  } else {
    check_donated_once(entry, inputs, ready.donated);
    outputs = ready.executable->execute(inputs, ready.donated);
    hand_over(inputs, ready.donated, outputs);
  }
  if (entry.committed) outputs = as_committed(std::move(outputs));
  const bool placed = ready.says_placement || (entry.committed && any_placed(inputs));
  if (placed) outputs = placed_results(ready.program, inputs, std::move(outputs));
  if (!ready.result_types.empty()) outputs = placed_by_types(ready.result_types, inputs, std::move(outputs));
  if (entry.committed) return outputs;
  return placed_in_context(placed_by_default(std::move(outputs)));
}

LeafShardings leaf_placements(std::span<const Array> leaves) {
  LeafShardings placements;
  for (const Array& leaf : leaves) {
    std::shared_ptr<const NamedSharding> own;
    if (!leaf.is_tracer() && !leaf.type().ref && leaf.committed()) {
      if (std::optional<NamedSharding> known = jax::placement(leaf))
        own = std::make_shared<const NamedSharding>(*known);
    }
    placements.push_back(std::move(own));
  }
  return placements;
}

ExecutableDetails compile_jit_entry(const JitEntry& entry, const LeafShardings& leaves) {
  if (entry.captures_tracer) {
    throw ConcretizationTypeError(
        concat("compile: jit(", entry.options.name, ") captures a value that is being traced"));
  }
  const JitEntry::Ready& ready = entry.ready();
  LeafShardings inputs;
  const std::size_t captured = entry.captured.size();
  for (std::size_t input : ready.inputs)
    inputs.push_back(leaves.empty() || input < captured ? nullptr : leaves[input - captured]);
  ExecutableDetails details = ready.executable->details(inputs);
  if (details.outputs.empty()) details.outputs = result_placements(ready.program, ready.result_types, inputs);
  return details;
}

void check_jit_entry(const JitEntry& entry, const TreeDef& in, std::span<const Array> leaves) {
  require_values("compiled function", in, leaves);
  if (!(entry.key.in == in)) {
    throw TypeError(concat("Function compiled with input pytree does not match the input pytree it was called with: ",
                           tree_difference(entry.key.in, in)));
  }
  std::string differences;
  std::vector<KeyPath> paths;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const ArrayType& expected = entry.key.types[i];
    const ArrayType& got = leaves[i].type();
    if (expected.shape == got.shape && expected.dtype == got.dtype) continue;  // a weak type does not change the code
    if (paths.empty()) paths = in.paths();
    differences += concat("\nArgument args", keystr(paths[i]), " compiled with ", to_string(expected),
                          " and called with ", to_string(got));
  }
  if (differences.empty()) return;
  throw TypeError(
      concat("Argument types differ from the types for which this computation was compiled. The mismatches are:",
             differences));
}

const Program& jit_entry_program(const JitEntry& entry) { return entry.program; }
const TreeDef& jit_entry_structure(const JitEntry& entry) { return entry.out; }
const TreeDef& jit_entry_input_structure(const JitEntry& entry) { return entry.key.in; }
std::shared_ptr<const JitEntry> with_compiler_options(const JitEntry& entry, const CompilerOptions& options) {
  auto other = std::make_shared<JitEntry>();
  other->key = entry.key;
  other->options = entry.options;
  other->out = entry.out;
  other->program = entry.program;
  other->captured = entry.captured;
  other->donated = entry.donated;
  other->device = entry.device;
  other->committed = entry.committed;
  other->elsewhere = entry.elsewhere;
  other->compiler_options = options;
  other->compiler_options.insert(entry.compiler_options.begin(), entry.compiler_options.end());
  return other;
}

std::optional<std::string> compiled_text(const JitEntry& entry) {
  const JitEntry::Ready& ready = entry.ready();
  const DefaultDeviceScope scope(entry.device);
  const CompilerOptionsScope compiler_scope(entry.compiler_options);
  return default_backend().compiled_text(ready.program, ready.donated);
}

ProgramCost jit_entry_cost(const JitEntry& entry) { return count_cost(entry.pruned().first); }
bool jit_entry_lasts(const JitEntry& entry) {
  return entry.captured.empty() && entry.program.effects().axes.empty() && !entry.elsewhere;
}
bool jit_entry_is_short(const JitEntry& entry) {
  return entry.captured.empty() && entry.compiled() && entry.ready().executable->is_short();
}
bool jit_disabled() { return config().disable_jit; }

}  // namespace capibara::detail
