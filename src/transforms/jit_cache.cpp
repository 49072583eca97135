// The cache of a jitted function: programs keyed by what they were traced for, and tracing on a miss.
#include <capibara/default_device.h>

#include "core/array/hash.h"
#include "core/runtime/caches.h"
#include "core/runtime/listeners.h"
#include "core/runtime/warning.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"
#include "transforms/jit_entry.h"
#include "transforms/jit_stages.h"

#include <algorithm>
#include <array>
#include <map>

namespace capibara::detail {

NamedAxes enclosing_axes() {
  NamedAxes axes;
  if (evaluating()) return axes;
  for (std::shared_ptr<Trace> trace = current_trace(); trace; trace = trace->parent) {
    std::string name = trace->bound_axis();
    if (!name.empty()) axes.emplace_back(name, trace->axis_size(name).value());
  }
  return axes;
}

namespace {

std::atomic<int64_t> large_constant_bytes{int64_t{1} << 20};

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

// What a call depends on besides its arguments; committed arguments may require a platform other than the default.
Surroundings surroundings_of(std::span<const Array> leaves) {
  const std::optional<Device> demanded = demanded_device(leaves);
  if (!demanded) return {};
  const DefaultDeviceScope scope(demanded);
  return {};
}

bool matches(const JitKey& key, const TreeDef& in, std::span<const Array> leaves, const Surroundings& surroundings) {
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

// Readers walk lists that only grow at the head. Comparing keys may run code of the host language, which may raise or
// let other threads run: keys are never compared or freed with the lock held, and nothing waits for readers.
class JitCache {
 public:
  JitCache(jax::JitOptions options, CompilerOptions compiler_options)
      : options(std::move(options)), compiler_options(std::move(compiler_options)) {}
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
      while (found && !(found->entry->key.hash == hash && matches(found->entry->key, in, leaves, settings)))
        found = found->next;
      if (found) recent_.store(found);
    }
    return found ? found->entry : nullptr;
  }

  // Two threads may have traced the same call: the first entry is kept and returned.
  std::shared_ptr<const JitEntry> insert(std::shared_ptr<const JitEntry> entry, const TreeDef& in,
                                         std::span<const Array> leaves) {
    std::atomic<Node*>& bucket = buckets_[entry->key.hash % bucket_count];
    for (;;) {
      Node* const head = bucket.load();
      if (std::shared_ptr<const JitEntry> first = find(in, leaves)) return first;
      std::lock_guard lock(writing_);
      if (bucket.load() != head) continue;  // another thread has inserted: compare with its entry too
      bucket.store(new Node{entry, head});
      size_.fetch_add(1);
      return entry;
    }
  }

  // Nodes that readers may still access are kept until a later clear, or until the cache is destroyed.
  void clear() {
    std::vector<Node*> unused;
    {
      std::lock_guard lock(writing_);
      for (std::atomic<Node*>& bucket : buckets_) {
        if (Node* head = bucket.exchange(nullptr)) retired_.push_back(head);
      }
      size_.store(0);
      // A reader that entered before the exchange may still set recent_: it has left if the first count is 0. One
      // that reads recent_ before it is reset does not set it again, and has left if the second count is 0.
      const bool none_before = readers_.load() == 0;
      recent_.store(nullptr);
      if (none_before && readers_.load() == 0) unused.swap(retired_);
    }
    for (Node* head : unused) free_list(head);
  }

  std::size_t size() const { return size_.load(); }

  std::vector<std::shared_ptr<const JitEntry>> entries() {
    std::vector<std::shared_ptr<const JitEntry>> all;
    std::lock_guard lock(writing_);  // nothing is freed while it is held
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
  // Counts a reader, even if a comparison raises.
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
  mutable std::atomic<const Node*> recent_{nullptr};  // the last hit: most calls are alike
  mutable std::atomic<int> readers_{0};
  std::atomic<std::size_t> size_{0};
  std::vector<Node*> retired_;  // cleared lists, not freed yet
  std::mutex writing_;
};

namespace {

// All live caches of jit, for clear_caches().
struct LivingCaches {
  std::mutex mutex;
  std::vector<std::weak_ptr<JitCache>> caches;
  std::size_t crowded = 64;  // destroyed caches are dropped from the list at this size

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
  static auto* living = new LivingCaches;  // never freed, like the list of callbacks that clears it
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
      throw ValueError(
          concat("only one reference to a mutable array may be passed as an argument to a function, but jit(",
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
    throw ValueError(concat("function ", cache.options.name,
                            " traced for jit returned a mutable array reference of type ", to_string(type),
                            ", but mutable array references cannot be returned."));
  }
  entry->program = std::move(staged.program);
  entry->captured = std::move(staged.captured);
  for (const Array& captured : entry->captured) entry->captures_tracer |= captured.is_tracer();
  entry->out = out;
  tell_duration("/jax/core/compile/jaxpr_trace_duration", cache.options.name, start);
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

void warn_of_captured_constants_above(int64_t bytes) { large_constant_bytes.store(bytes); }

std::vector<KnownCall> known_calls(JitCache& cache) {
  std::vector<KnownCall> calls;
  for (const auto& entry : cache.entries()) calls.push_back({entry->key.in, entry->key.types, entry->settings});
  return calls;
}

}  // namespace capibara::detail
