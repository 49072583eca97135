// Continuous batching: one thread that admits requests, reads their prompts in chunks and decodes them together.
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/training/serving.h>
#include <capibara/transforms.h>

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "models/training/generation.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

struct Stepped {
  Array logits;  // float32 [slots, vocabulary], of the token after those given
  ModelCache cache;
};
CAPIBARA_TREE(Stepped, logits, cache)

// A request that is being decoded: its cache has `position` tokens, and `token` comes next.
struct Running {
  ServingRequest request;
  int64_t position, produced = 0;
  int32_t token;
};

// A request whose prompt is being read, into a cache of its own.
struct Reading {
  ServingRequest request;
  std::size_t slot;
  ModelCache cache;
  int64_t done = 0;
};

}  // namespace

struct BatchGenerator::State {
  State(LanguageModel given, Parameters weights, const BatchOptions& chosen)
      : model(std::move(given)), parameters(std::move(weights)), options(chosen) {}

  const LanguageModel model;
  const Parameters parameters;
  const BatchOptions options;
  // (parameters, tokens [1, length], cache) -> cache
  std::function<ModelCache(const Parameters&, const Array&, ModelCache)> read;
  // (caches of all slots, cache of one, slot) -> caches of all slots
  std::function<ModelCache(ModelCache, const ModelCache&, const Array&)> insert;
  // (parameters, tokens [slots], caches of all slots) -> logits, caches of all slots
  std::function<Stepped(const Parameters&, const Array&, ModelCache)> step;

  // Of the generator's thread alone.
  std::vector<std::optional<Running>> slots;
  std::optional<Reading> reading;
  ModelCache caches;

  mutable std::mutex mutex;  // protects what follows
  std::condition_variable changed;
  std::deque<ServingRequest> waiting;
  Counts counted;
  bool ending = false;

  std::thread thread;

  void compile();
  void serve();
  bool await_work();
  void admit();
  void read_chunk();
  void decode();
  void deliver(std::size_t slot, std::span<const float> logits);
  void finish(ServingRequest& request, ServingRequest::End end, const std::string& error = "");
  void finish_all(ServingRequest::End end, const std::string& error);
  void reset_caches();
  ModelCache empty_cache() const {
    return model.make_cache(1, options.capacity, parameter(parameters, "norm.scale").dtype());
  }
};

void BatchGenerator::State::compile() {
  read = jax::jit([this](const Parameters& p, const Array& tokens,
                         const ModelCache& cache) { return model.extend(p, tokens, cache).second; },
                  {.donate_argnums = {2}, .name = "read_prompt"});
  insert = jax::jit(
      [](const ModelCache& all, const ModelCache& one, const Array& slot) {
        return jax::tree::map(
            [&](const Array& rows, const Array& row) { return lax::dynamic_update_index_in_dim(rows, row, slot, 0); },
            all, one);
      },
      {.donate_argnums = {0}, .name = "insert_cache"});
  step = jax::jit(
      [this](const Parameters& p, const Array& tokens, const ModelCache& all) {
        const auto one = [&](const Array& token, const ModelCache& cache) {
          auto [logits, next] = model.extend(p, lax::reshape(token, {1, 1}), cache);
          return Stepped{lax::convert_element_type(lax::reshape(logits, {logits.size()}), DType::float32), next};
        };
        return jax::vmap(one)(tokens, all);
      },
      {.donate_argnums = {2}, .name = "decode_batch"});
}

void BatchGenerator::State::reset_caches() {
  caches = jax::tree::map(
      [&](const Array& one) {
        Shape shape = one.shape();
        shape.insert(shape.begin(), options.slots);
        return lax::full(shape, 0.0, one.dtype());
      },
      empty_cache());
}

void BatchGenerator::State::finish(ServingRequest& request, ServingRequest::End end, const std::string& error) {
  {
    const std::lock_guard lock(mutex);
    ++counted.finished;
  }
  if (request.on_end) request.on_end(end, error);
}

void BatchGenerator::State::finish_all(ServingRequest::End end, const std::string& error) {
  for (std::optional<Running>& slot : slots) {
    if (slot) finish(slot->request, end, error);
    slot.reset();
  }
  if (reading) finish(reading->request, end, error);
  reading.reset();
}

// Waits until there is something to do; false if the generator ends.
bool BatchGenerator::State::await_work() {
  std::unique_lock lock(mutex);
  const auto running = std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.has_value(); });
  counted.running = running + reading.has_value();
  changed.wait(lock, [&] { return ending || counted.running > 0 || !waiting.empty(); });
  return !ending;
}

// Takes the next request in line if a slot is free and no prompt is being read.
void BatchGenerator::State::admit() {
  const auto free = std::find_if(slots.begin(), slots.end(), [](const auto& slot) { return !slot; });
  if (reading || free == slots.end()) return;
  ServingRequest next;
  {
    const std::lock_guard lock(mutex);
    if (waiting.empty()) return;
    next = std::move(waiting.front());
    waiting.pop_front();
  }
  if (next.abandoned && next.abandoned()) return finish(next, ServingRequest::End::stop);
  const auto length = static_cast<int64_t>(next.prompt.size());
  reading = Reading{std::move(next), static_cast<std::size_t>(free - slots.begin()), empty_cache()};
  const std::lock_guard lock(mutex);
  counted.prompt_tokens += length;
}

// Reads a chunk of the prompt; all but its last token, which is the first to be decoded.
void BatchGenerator::State::read_chunk() {
  if (!reading) return;
  const std::vector<int32_t>& prompt = reading->request.prompt;
  const int64_t left = static_cast<int64_t>(prompt.size()) - 1 - reading->done;
  if (left > 0) {
    const int64_t chunk = prompt_chunk(left);
    const auto begin = prompt.begin() + reading->done;
    const Array tokens = array<int32_t>(std::vector<int32_t>(begin, begin + chunk), Shape{1, chunk});
    reading->cache = read(parameters, tokens, std::move(reading->cache));
    reading->done += chunk;
    if (chunk < left) return;
  }
  caches = insert(std::move(caches), reading->cache, lax::full({}, static_cast<int32_t>(reading->slot), DType::int32));
  const int32_t last = prompt.back();
  slots[reading->slot] = Running{std::move(reading->request), reading->done, 0, last};
  reading.reset();
}

// One more token of every running request.
void BatchGenerator::State::decode() {
  std::vector<int32_t> tokens(slots.size(), 0);
  bool any = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i]) tokens[i] = slots[i]->token, any = true;
  }
  if (!any) return;
  Stepped next = step(parameters, array<int32_t>(tokens, Shape{options.slots}), std::move(caches));
  caches = std::move(next.cache);
  const std::vector<float> logits = next.logits.to_vector<float>();
  const auto vocabulary = static_cast<std::size_t>(model.config().vocabulary);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i]) deliver(i, std::span(logits).subspan(i * vocabulary, vocabulary));
  }
}

void BatchGenerator::State::deliver(std::size_t slot, std::span<const float> logits) {
  Running& running = *slots[slot];
  ServingRequest& request = running.request;
  const auto end = [&](ServingRequest::End how, const std::string& error = "") {
    finish(request, how, error);
    slots[slot].reset();
  };
  try {
    running.token = sample_token(logits, request.sampling, ++running.position);
  } catch (const ValueError& error) {  // logits that are not numbers
    return end(ServingRequest::End::failed, error.what());
  }
  ++running.produced;
  {
    const std::lock_guard lock(mutex);
    ++counted.new_tokens;
  }
  if (std::find(request.stop.begin(), request.stop.end(), running.token) != request.stop.end())
    return end(ServingRequest::End::stop);
  if (request.on_token && !request.on_token(running.token)) return end(ServingRequest::End::stop);
  if (running.produced >= request.max_new_tokens || running.position + 1 >= options.capacity)
    return end(ServingRequest::End::length);
}

void BatchGenerator::State::serve() {
  while (await_work()) {
    try {
      admit();
      read_chunk();
      decode();
    } catch (const std::exception& error) {  // of a program: its caches are lost
      finish_all(ServingRequest::End::failed, error.what());
      reset_caches();
    }
  }
  finish_all(ServingRequest::End::cancelled, "");
  std::deque<ServingRequest> left;
  {
    const std::lock_guard lock(mutex);
    left.swap(waiting);
    counted.running = 0;
  }
  for (ServingRequest& request : left) finish(request, ServingRequest::End::cancelled);
}

BatchGenerator::BatchGenerator(LanguageModel model, Parameters parameters, const BatchOptions& options)
    : state_(std::make_unique<State>(std::move(model), std::move(parameters), options)) {
  if (options.slots < 1 || options.slots > 1024)
    throw ValueError(concat("BatchGenerator: expected 1 to 1024 slots, got ", options.slots));
  if (options.max_waiting < 0)
    throw ValueError(concat("BatchGenerator: expected max_waiting of 0 or more, got ", options.max_waiting));
  require_generates("BatchGenerator", state_->model, state_->parameters, options.capacity);
  state_->compile();
  state_->slots.resize(static_cast<std::size_t>(options.slots));
  state_->reset_caches();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are handled by the program's own threads
  state_->thread = std::thread([state = state_.get()] { state->serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BatchGenerator::~BatchGenerator() { stop(); }

bool BatchGenerator::submit(ServingRequest request) {
  State& state = *state_;
  require_prompt("BatchGenerator.submit", request.prompt, state.model.config().vocabulary, state.options.capacity);
  if (request.max_new_tokens < 1)
    throw ValueError(
        concat("BatchGenerator.submit: expected max_new_tokens of 1 or more, got ", request.max_new_tokens));
  const float nothing = 0;
  sample_token(std::span(&nothing, 1), request.sampling, 0);  // checks the options
  const std::lock_guard lock(state.mutex);
  const bool busy = state.counted.running >= state.options.slots || !state.waiting.empty();
  if (state.ending || (busy && static_cast<int64_t>(state.waiting.size()) >= state.options.max_waiting)) return false;
  state.waiting.push_back(std::move(request));
  state.changed.notify_all();
  return true;
}

void BatchGenerator::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

BatchGenerator::Counts BatchGenerator::counts() const {
  const std::lock_guard lock(state_->mutex);
  Counts counts = state_->counted;
  counts.waiting = static_cast<int64_t>(state_->waiting.size());
  return counts;
}

}  // namespace capibara::training
