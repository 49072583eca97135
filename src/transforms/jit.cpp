// jit: the cache of traced and compiled programs, and the way a call takes through it.
#include <capibara/jit.h>

#include <capibara/default_device.h>

#include "array/bad_value.h"
#include "array/hash.h"
#include "backends/backend.h"
#include "program/derive.h"
#include "program/stablehlo/write.h"
#include "runtime/caches.h"
#include "runtime/warning.h"
#include "trace/trace.h"
#include "transforms/jit_stages.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

namespace capibara::detail {

namespace {

std::atomic<int64_t> large_constant_bytes{int64_t{1} << 20};

void print_line(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

std::string seconds_since(std::chrono::steady_clock::time_point start) {
  return concat(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

std::string types_text(const Types& types) {
  std::string text;
  for (const ArrayType& type : types) text += concat(text.empty() ? "" : ", ", to_string(type));
  return text;
}

using NamedAxes = std::vector<std::pair<std::string, int64_t>>;  // names and sizes, the innermost first

// The named axes that surround a call: the function may ask for their sizes.
NamedAxes enclosing_axes() {
  NamedAxes axes;
  if (evaluating()) return axes;
  for (std::shared_ptr<Trace> trace = current_trace(); trace; trace = trace->parent) {
    std::string name = trace->bound_axis();
    if (!name.empty()) axes.emplace_back(name, trace->axis_size(name).value());
  }
  return axes;
}

// What a traced program depends on besides its arguments.
struct Surroundings {
  std::size_t config = config_key();
  NamedAxes axes = enclosing_axes();
  friend bool operator==(const Surroundings&, const Surroundings&) = default;
};

// What a traced program depends on.
struct Key {
  TreeDef in;
  Types types;
  std::vector<bool> committed;
  Surroundings surroundings;
  std::size_t hash = 0;
};

std::size_t hash_call(const TreeDef& in, std::span<const Array> leaves, const Surroundings& surroundings) {
  Hasher hasher;
  hasher.mix(in.hash());
  hasher.mix(surroundings.config);
  for (const auto& [name, size] : surroundings.axes) {
    hasher.bytes(name.data(), name.size());
    hasher.mix(static_cast<std::size_t>(size));
  }
  for (const Array& leaf : leaves) {
    hasher.type(leaf.type());
    hasher.mix(leaf.committed());
  }
  return hasher.value();
}

// What a call depends on besides its arguments; committed arguments may ask for another platform than the default one.
Surroundings surroundings_of(std::span<const Array> leaves) {
  const std::optional<Device> demanded = demanded_device(leaves);
  if (!demanded) return {};
  const DefaultDeviceScope scope(demanded);
  return {};
}

bool matches(const Key& key, const TreeDef& in, std::span<const Array> leaves, const Surroundings& surroundings) {
  if (!(key.surroundings == surroundings) || key.types.size() != leaves.size()) return false;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (key.committed[i] != leaves[i].committed() || !(key.types[i] == leaves[i].type())) return false;
  }
  return key.in == in;
}

// The leaves of the arguments at these positions.
std::vector<bool> leaves_at(const char* option, const std::vector<int>& positions, const TreeDef& in) {
  std::vector<bool> mask(in.num_leaves(), false);
  int count = static_cast<int>(in.children().size());
  for (int position : positions) {
    int index = position < 0 ? position + count : position;
    if (index < 0 || index >= count) {
      throw ValueError(
          concat("jit: ", option, " names argument ", position, ", but the call has ", count, " arguments"));
    }
    std::size_t begin = 0;
    for (int i = 0; i < index; ++i) begin += in.children()[static_cast<std::size_t>(i)].num_leaves();
    std::size_t size = in.children()[static_cast<std::size_t>(index)].num_leaves();
    std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(begin), size, true);
  }
  return mask;
}

}  // namespace

class JitEntry {
 public:
  Key key;
  jax::JitOptions options;
  TreeDef out;
  Program program;
  Arrays captured;            // tracers of an outer trace and refs: the program's leading inputs
  bool captures_tracer = false;
  std::vector<bool> donated;  // one per leaf
  std::optional<Device> device;    // that it was traced for; nothing: the first of the configured platform
  bool committed = false;          // whether an argument is, and so its results
  bool elsewhere = false;          // whether they asked for another platform than the default one
  CompilerOptions compiler_options;
  Config settings;  // that it was traced under

  struct Ready {
    Program program;  // without unused inputs
    std::vector<std::size_t> inputs;
    bool all_inputs = false;  // every leaf is an input
    std::vector<bool> donated;
    bool donates = false;
    std::shared_ptr<Executable> executable;
    // Outputs that the executable hands on from its inputs, found when it first runs.
    mutable std::once_flag compared;
    mutable std::vector<std::size_t> handed_on;
  };

  // The program that is compiled: dead code and, unless they are kept, unused inputs are gone.
  std::pair<Program, std::vector<std::size_t>> pruned() const {
    std::vector<bool> outputs(program.outputs().size(), true);
    std::vector<bool> keep(program.invars().size(), options.keep_unused);
    DceProgram result = dce_program(program, outputs, keep);
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < program.invars().size(); ++i) {
      if (options.keep_unused || result.used_inputs[i]) inputs.push_back(i);
    }
    return {result.program, std::move(inputs)};
  }

  const Ready& ready() const {
    if (!compiled()) std::call_once(once_, [this] { compile(); });
    return ready_;
  }
  bool compiled() const { return compiled_.load(std::memory_order_acquire); }

 private:
  void compile() const {
    auto start = std::chrono::steady_clock::now();
    std::tie(ready_.program, ready_.inputs) = pruned();
    choose_donations();
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
    if (log) print_line(concat("Finished compilation of jit(", options.name, ") in ", seconds_since(start), " sec"));
    compiled_.store(true, std::memory_order_release);
  }

  // A donated input is usable where an output of the same shape and dtype can take its memory.
  void choose_donations() const {
    Types free = ready_.program.output_types();
    Types unusable;
    for (std::size_t input : ready_.inputs) {
      bool use = false;
      if (input >= captured.size() && donated[input - captured.size()]) {
        const ArrayType& type = program.type(program.invars()[input]);
        auto place = std::find_if(free.begin(), free.end(), [&](const ArrayType& output) {
          return output.shape == type.shape && output.dtype == type.dtype;
        });
        use = place != free.end();
        if (use)
          free.erase(place);
        else
          unusable.push_back(type);
      }
      ready_.donated.push_back(use);
    }
    if (!unusable.empty())
      warn(concat("Some donated buffers were not usable: ", types_text(unusable), "."));
  }

  mutable std::once_flag once_;
  mutable std::atomic<bool> compiled_{false};
  mutable Ready ready_;
};

// Readers walk lists that only grow at the head. Comparing keys may run code of the host language, which may raise or let
// other threads run: nobody compares or frees keys with the lock held, and nobody waits for readers.
class JitCache {
 public:
  JitCache(jax::JitOptions options, CompilerOptions compiler_options) : options(std::move(options)), compiler_options(std::move(compiler_options)) {}
  ~JitCache() {
    for (const std::atomic<Node*>& head : buckets_) free_list(head.load());
    for (Node* head : retired_) free_list(head);
  }
  JitCache(const JitCache&) = delete;

  const jax::JitOptions options;
  const CompilerOptions compiler_options;

  std::shared_ptr<const JitEntry> find(const TreeDef& in, std::span<const Array> leaves) const {
    const Surroundings settings = surroundings_of(leaves);
    const Reader inside(readers_);
    const Node* found = recent_.load();
    if (!found || !matches(found->entry->key, in, leaves, settings)) {
      const std::size_t hash = hash_call(in, leaves, settings);
      found = buckets_[hash % bucket_count].load();
      while (found && !(found->entry->key.hash == hash && matches(found->entry->key, in, leaves, settings))) found = found->next;
      if (found) recent_.store(found);
    }
    return found ? found->entry : nullptr;
  }

  // Two threads may have traced the same call: the entry that came first stays, and is returned.
  std::shared_ptr<const JitEntry> insert(std::shared_ptr<const JitEntry> entry, const TreeDef& in,
                                         std::span<const Array> leaves) {
    std::atomic<Node*>& bucket = buckets_[entry->key.hash % bucket_count];
    for (;;) {
      Node* const head = bucket.load();
      if (std::shared_ptr<const JitEntry> first = find(in, leaves)) return first;
      std::lock_guard lock(writing_);
      if (bucket.load() != head) continue;  // another thread inserted meanwhile: compare with its entry too
      bucket.store(new Node{entry, head});
      size_.fetch_add(1);
      return entry;
    }
  }

  // What readers may still look at is kept until a later clear, or until the cache goes.
  void clear() {
    std::vector<Node*> unused;
    {
      std::lock_guard lock(writing_);
      for (std::atomic<Node*>& bucket : buckets_) {
        if (Node* head = bucket.exchange(nullptr)) retired_.push_back(head);
      }
      size_.store(0);
      // A reader that entered before the exchange may still set recent_: it has left when the first count is 0. One that
      // reads recent_ before it is emptied does not set it again, and has left when the second is.
      const bool none_before = readers_.load() == 0;
      recent_.store(nullptr);
      if (none_before && readers_.load() == 0) unused.swap(retired_);
    }
    for (Node* head : unused) free_list(head);
  }

  std::size_t size() const { return size_.load(); }

  std::vector<std::shared_ptr<const JitEntry>> entries() {
    std::vector<std::shared_ptr<const JitEntry>> all;
    std::lock_guard lock(writing_);  // nothing is freed meanwhile
    for (const auto& bucket : buckets_) {
      for (const Node* node = bucket.load(); node; node = node->next) all.push_back(node->entry);
    }
    return all;
  }

 private:
  struct Node {
    std::shared_ptr<const JitEntry> entry;
    Node* next;
  };
  // Counts a reader, also where a comparison raises.
  class Reader {
   public:
    explicit Reader(std::atomic<int>& count) : count_(count) { count_.fetch_add(1); }
    ~Reader() { count_.fetch_sub(1); }
    Reader(const Reader&) = delete;

   private:
    std::atomic<int>& count_;
  };
  static void free_list(Node* node) {
    while (node) delete std::exchange(node, node->next);
  }
  static constexpr std::size_t bucket_count = 32;

  std::array<std::atomic<Node*>, bucket_count> buckets_{};
  mutable std::atomic<const Node*> recent_{nullptr};  // what the last call found: most calls are alike
  mutable std::atomic<int> readers_{0};
  std::atomic<std::size_t> size_{0};
  std::vector<Node*> retired_;  // lists that were cleared
  std::mutex writing_;
};

namespace {

// All caches of jit that live, for clear_caches().
struct LivingCaches {
  std::mutex mutex;
  std::vector<std::weak_ptr<JitCache>> caches;
  std::size_t crowded = 64;  // caches that are gone are forgotten at this size

  LivingCaches() {
    on_clear_caches([this] { clear(); });
  }
  void add(const std::shared_ptr<JitCache>& cache) {
    std::lock_guard lock(mutex);
    if (caches.size() >= crowded) {
      std::erase_if(caches, [](const std::weak_ptr<JitCache>& one) { return one.expired(); });
      crowded = std::max<std::size_t>(64, 2 * caches.size());
    }
    caches.push_back(cache);
  }
  void clear() {
    std::vector<std::shared_ptr<JitCache>> living;
    {
      std::lock_guard lock(mutex);
      for (const std::weak_ptr<JitCache>& one : caches) living.push_back(one.lock());
    }
    for (const std::shared_ptr<JitCache>& cache : living) {
      if (cache) cache->clear();
    }
  }
};

}  // namespace

std::shared_ptr<JitCache> make_jit_cache(const jax::JitOptions& options) { return make_jit_cache(options, {}); }

std::shared_ptr<JitCache> make_jit_cache(const jax::JitOptions& options, CompilerOptions compiler_options) {
  static auto* living = new LivingCaches;  // never freed, as the list that empties it
  auto cache = std::make_shared<JitCache>(options, std::move(compiler_options));
  living->add(cache);
  return cache;
}

std::shared_ptr<JitCache> shared_jit_cache(std::type_index function_type, const void* function,
                                           const jax::JitOptions& options) {
  using SharedKey =
      std::tuple<std::type_index, const void*, std::vector<int>, std::vector<int>, bool, bool, std::string>;
  static std::mutex mutex;
  static std::map<SharedKey, std::shared_ptr<JitCache>> caches;
  std::lock_guard lock(mutex);
  auto& cache = caches[{function_type, function, options.static_argnums, options.donate_argnums, options.keep_unused,
                        options.inline_, options.name}];
  if (!cache) cache = make_jit_cache(options);
  return cache;
}

std::size_t jit_cache_size(const JitCache& cache) { return cache.size(); }
void clear_jit_cache(JitCache& cache) { cache.clear(); }

std::shared_ptr<const JitEntry> find_jit_entry(const JitCache& cache, const TreeDef& in,
                                               std::span<const Array> leaves) {
  require_values("jit", in, leaves);
  std::vector<const ArrayBody*> refs;
  for (const Array& leaf : leaves) {
    if (!leaf.type().ref) continue;
    if (std::find(refs.begin(), refs.end(), leaf.body().get()) != refs.end()) {
      throw ValueError(concat("only one reference to a mutable array may be passed as an argument to a function, but jit(",
                              cache.options.name, ") got the same ", to_string(leaf.type()), " twice"));
    }
    refs.push_back(leaf.body().get());
  }
  return cache.find(in, leaves);
}

std::shared_ptr<const JitEntry> trace_jit_entry(JitCache& cache, const TreeDef& in, std::span<const Array> leaves,
                                                const FlatFunction& function, const TreeDef& out,
                                                const std::optional<std::vector<bool>>& donated) {
  require_tracing_allowed(cache.options.name);
  auto start = std::chrono::steady_clock::now();
  auto entry = std::make_shared<JitEntry>();
  entry->options = cache.options;
  entry->compiler_options = cache.compiler_options;
  entry->settings = config();
  const std::optional<Device> demanded = demanded_device(leaves);
  const DefaultDeviceScope scope(demanded ? demanded : chosen_device());
  entry->device = chosen_device();
  entry->elsewhere = demanded.has_value();
  const Surroundings surroundings;
  entry->key = {in, leaf_types("jit", in, leaves), {}, surroundings, hash_call(in, leaves, surroundings)};
  for (const Array& leaf : leaves) {
    entry->key.committed.push_back(leaf.committed());
    entry->committed = entry->committed || leaf.committed();
  }
  entry->donated = donated ? *donated : leaves_at("donate_argnums", cache.options.donate_argnums, in);
  std::vector<bool> fixed = leaves_at("static_argnums", cache.options.static_argnums, in);
  if (std::find(fixed.begin(), fixed.end(), true) != fixed.end()) {
    throw ValueError(concat("Non-hashable static arguments are not supported: static_argnums of jit(",
                            cache.options.name, ") names an argument that holds arrays"));
  }
  Staged staged = stage(function, entry->key.types, cache.options.name);
  if (!staged.captured.empty()) staged = opened(staged);
  for (const ArrayType& type : staged.program.output_types()) {
    if (!type.ref) continue;
    throw ValueError(concat("function ", cache.options.name, " traced for jit returned a mutable array reference of type ",
                            to_string(type), ", but mutable array references cannot be returned."));
  }
  entry->program = std::move(staged.program);
  entry->captured = std::move(staged.captured);
  for (const Array& captured : entry->captured) entry->captures_tracer |= captured.is_tracer();
  entry->out = out;
  if (config().log_compiles)
    print_line(concat("Finished tracing ", cache.options.name, " for jit in ", seconds_since(start), " sec"));
  int64_t constant_bytes = 0;
  for (const Array& constant : entry->program.constants())
    constant_bytes += constant.size() * storage_size(constant.dtype());
  if (constant_bytes > large_constant_bytes.load(std::memory_order_relaxed)) {
    warn(concat("jit(", cache.options.name, ") captured ", constant_bytes >> 20,
                      " MiB of arrays as constants; pass them as arguments instead."));
  }
  // A program that reads an outer trace is only valid for this call.
  if (entry->captures_tracer) return entry;
  return cache.insert(entry, in, leaves);
}

namespace {

// With debug_nans or debug_infs: on a hit the program runs again, one operation at a time, to find the first bad one.
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
      if (i == j || inputs[j].type().ref || !inputs[i].buffer().same_as(inputs[j].buffer()) || inputs[i].size() == 0) continue;
      throw RuntimeError(concat("jit(", entry.options.name, "): a donated ", to_string(inputs[i].type()),
                                " is passed twice; pass a copy, or do not donate it"));
    }
  }
}

// Results are arrays of their own: an input may be donated to another call, or changed from outside.
Arrays separated(const JitEntry::Ready& ready, std::span<const Array> inputs, Arrays outputs) {
  static const Primitive copy = primitive("copy");
  std::call_once(ready.compared, [&] {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      auto is_output = [&](const Array& input) { return !input.type().ref && input.buffer().same_as(outputs[i].buffer()); };
      if (outputs[i].size() > 0 && std::any_of(inputs.begin(), inputs.end(), is_output)) ready.handed_on.push_back(i);
    }
  });
  for (std::size_t output : ready.handed_on) outputs[output] = default_backend().run(copy, std::span(&outputs[output], 1), {})[0];
  return outputs;
}

}  // namespace

Arrays call_jit_entry(const JitEntry& entry, std::span<const Array> leaves) {
  bool traced = !evaluating() || std::any_of(leaves.begin(), leaves.end(), [](const Array& leaf) { return leaf.is_tracer(); });
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
    for (std::size_t input : ready.inputs) chosen.push_back(input < captured ? entry.captured[input] : leaves[input - captured]);
  }
  const std::span<const Array> inputs = ready.all_inputs ? leaves : std::span<const Array>(chosen);
  const Config& settings = config();
  Arrays outputs;
  if (settings.debug_nans || settings.debug_infs) {
    outputs = execute_checked(entry, inputs);
  } else if (!ready.donates) {
    outputs = separated(ready, inputs, ready.executable->execute(inputs, {}));
  } else {
    check_donated_once(entry, inputs, ready.donated);
    outputs = ready.executable->execute(inputs, ready.donated);
  }
  return entry.committed ? as_committed(std::move(outputs)) : outputs;
}

LeafPlacements leaf_placements(std::span<const Array> leaves) {
  LeafPlacements placements;
  for (const Array& leaf : leaves) {
    std::shared_ptr<const Placement> own;
    if (!leaf.is_tracer() && !leaf.type().ref && leaf.committed()) {
      if (std::optional<Placement> known = jax::placement(leaf)) own = std::make_shared<const Placement>(*known);
    }
    placements.push_back(std::move(own));
  }
  return placements;
}

ExecutableDetails compile_jit_entry(const JitEntry& entry, const LeafPlacements& leaves) {
  if (entry.captures_tracer) {
    throw ConcretizationTypeError(
        concat("compile: jit(", entry.options.name, ") captures a value that is being traced"));
  }
  const JitEntry::Ready& ready = entry.ready();
  LeafPlacements inputs;
  const std::size_t captured = entry.captured.size();
  for (std::size_t input : ready.inputs) inputs.push_back(leaves.empty() || input < captured ? nullptr : leaves[input - captured]);
  return ready.executable->details(inputs);
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
std::string jit_entry_text(const JitEntry& entry, const LeafPlacements& leaves) { return lowered_text(entry, leaves, false); }
std::string lowered_text(const JitEntry& entry, const LeafPlacements& leaves, bool locations) {
  const auto [program, inputs] = entry.pruned();
  stablehlo::WriteOptions options;
  options.module_name = concat("jit_", entry.options.name);
  options.locations = locations;
  for (std::size_t input : inputs) {
    const bool known = input >= entry.captured.size() && !leaves.empty();
    options.argument_placements.push_back(known ? leaves[input - entry.captured.size()] : nullptr);
  }
  return stablehlo::write_program(program, options);
}
void warn_of_captured_constants_above(int64_t bytes) { large_constant_bytes.store(bytes); }

std::vector<KnownCall> known_calls(JitCache& cache) {
  std::vector<KnownCall> calls;
  for (const auto& entry : cache.entries()) calls.push_back({entry->key.in, entry->key.types, entry->settings});
  return calls;
}

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
