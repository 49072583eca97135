// The native CPU backend: optimises, lowers and compiles programs, and runs them on the threads of the process.
#include "backends/cpu/execution/backend.h"

#include <capibara/config.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/execution/compiler.h"
#include "backends/cpu/execution/cost.h"
#include "backends/cpu/execution/coverage.h"
#include "backends/cpu/execution/eager.h"
#include "backends/cpu/execution/options.h"
#include "backends/cpu/execution/profiled.h"
#include "backends/cpu/groups/fuse.h"
#include "backends/cpu/kernels/exchange.h"
#include "backends/cpu/rewrites/compose_regions.h"
#include "backends/cpu/rewrites/overlap.h"
#include "backends/cpu/rewrites/unroll.h"
#include "backends/cpu/rewrites/weighted_sum.h"
#include "backends/discharged.h"
#include "backends/reference/backend.h"
#include "compiler/optimise/pipeline.h"
#include "core/runtime/arena.h"
#include "core/runtime/attend.h"
#include "core/runtime/background.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/thread_pool.h"
#include "kernels/fuse.h"
#include "lax/math/denormals.h"
#include "program/ir/build.h"
#include "program/ir/wide_types.h"
#include "program/trace/discharge.h"

namespace capibara::cpu {

Program optimised(const Program& program) {
  const ConfigScope scope(config_for(program));  // operations that replace others have its types
  OptimiseOptions options = chosen_options(compiler_options());
  options.keep = runs_whole;
  options.own_rule = [](const Program& own, const Equation& equation) {
    for (const auto& find : {unroll_rule, weighted_sum_rule, region_rule}) {
      if (LowerRule rule = find(own, equation)) return rule;
    }
    return LowerRule();
  };
  options.fuse = [](const Program& own) { return kernels::fuse_attention(own, runs_whole); };
  return overlapped(optimise(program, options));
}

namespace {

enum Status : int32_t { done = 0, stopped = 1, failed = 2 };

std::atomic<bool> dispatches_later{true};  // whether a call of a long program may return before it has run

// The addresses passed to a driver: on the stack if there are few.
class Addresses {
 public:
  explicit Addresses(std::size_t count) : many_(count > few ? new std::byte*[count] : nullptr), count_(count) {}
  std::byte** data() { return many_ ? many_.get() : few_; }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::size_t few = 48;
  std::byte* few_[few];
  std::unique_ptr<std::byte*[]> many_;
  std::size_t count_;
};

class CpuExecutable final : public Executable, public std::enable_shared_from_this<CpuExecutable> {
 public:
  CpuExecutable(const Program& program, Profiled profiled, Lowered lowered, std::shared_ptr<const Code> code,
                double nanoseconds, bool may_wait)
      : profiled_(std::move(profiled)),
        name_(program.name()),
        types_(program.output_types()),
        lowered_(std::move(lowered)),
        code_(std::move(code)),
        driver_(code_->driver()),
        short_(nanoseconds < short_nanoseconds),
        may_wait_(may_wait),
        nanoseconds_(nanoseconds) {
    lowered_.module = {};
    for (const Array& constant : lowered_.constants) constants_.push_back(const_cast<std::byte*>(constant.raw_data()));
    for (int64_t bytes : lowered_.output_bytes) result_bytes_ += static_cast<std::size_t>(bytes);
    for (const ArrayType& type : program.input_types()) argument_bytes_ += type.size() * storage_size(type.dtype);
    scratch_place_ = program.invars().size() + constants_.size() + lowered_.output_bytes.size();
  }

  ExecutableDetails details(std::span<const std::shared_ptr<const NamedSharding>>) override {
    MemoryUse use;
    use.argument = argument_bytes_;
    for (const ArrayType& type : types_) use.output += type.size() * storage_size(type.dtype);
    use.temp = lowered_.arena_bytes;
    use.peak = use.argument + use.output + use.temp;
    return {use, {}};
  }

  Arrays execute(std::span<const Array> inputs, const std::vector<bool>& donated) override {
    if (profile::active()) {
      profile::note_program();
      profiled_.prepare();
    }
    Addresses addresses(inputs.size() + constants_.size() + lowered_.output_bytes.size() + 1);
    std::byte** next = addresses.data();
    bool ready = true;
    for (const Array& input : inputs) {
      const Buffer& buffer = input.buffer();
      *next = buffer.address();
      if (!*next) *next = const_cast<std::byte*>(input.raw_data());
      ready = ready && buffer.is_ready();
      ++next;
    }
    next = std::copy(constants_.begin(), constants_.end(), next);
    std::shared_ptr<Completion> completion;
    const double nanoseconds = nanoseconds_.load(std::memory_order_relaxed);
    if (may_wait_ && dispatches_later.load(std::memory_order_relaxed) && (nanoseconds > long_nanoseconds || !ready) &&
        !in_background()) {
      completion = std::make_shared<Completion>(name_);
      wait_for_room(result_bytes_);
    }
    if (!completion && !ready) {
      for (const Array& input : inputs) input.block_until_ready();
    }
    Arrays outputs = make_outputs(inputs, donated, completion, addresses.data(), next);
    if (completion)
      run_in_background(completion, owned_work(inputs, outputs, addresses), result_bytes_, nanoseconds);
    else if (should_attend(nanoseconds))
      run_attended(name_, owned_work(inputs, outputs, addresses));
    else
      run(addresses.data(), nullptr, profile::active() ? profile::current_step() : -1);
    for (std::size_t i = 0; i < donated.size(); ++i) {
      if (donated[i] && !returned(static_cast<int>(i)) && !inputs[i].is_deleted()) inputs[i].delete_buffers();
    }
    return outputs;
  }

  bool is_short() const override { return short_ && may_wait_; }

 private:
  // The state that generated code reaches through Runtime::program.
  struct Call {
    const CpuExecutable* self;
    const std::atomic<int32_t>* stop;  // of a program in the background
    std::thread::id caller;
    std::exception_ptr error;
    const ProductKernel* product = nullptr;  // pending until the region runs that reads its rows
    std::byte* product_buffers[3] = {};
    profile::Run* marks = nullptr;  // of a marked driver
  };

  // Scratch memory of one run.
  class Scratch {
   public:
    explicit Scratch(const CpuExecutable& self) {
      const int64_t bytes = self.lowered_.arena_bytes;
      if (bytes <= on_stack) return;
      large_ = self.allocated(bytes, nullptr);
    }
    std::byte* data() { return large_.defined() ? large_.address() : few_; }

   private:
    static constexpr int64_t on_stack = 4096;
    alignas(64) std::byte few_[on_stack];
    Buffer large_;
  };

  // Fills in the addresses of the outputs, and of donated inputs whose memory they reuse.
  Arrays make_outputs(std::span<const Array> inputs, const std::vector<bool>& donated,
                      const std::shared_ptr<Completion>& completion, std::byte** input_addresses,
                      std::byte** addresses) const {
    Arrays outputs;
    outputs.reserve(lowered_.outputs.size());
    for (std::size_t i = 0; i < lowered_.outputs.size(); ++i) {
      const Lowered::Output& output = lowered_.outputs[i];
      const auto index = static_cast<std::size_t>(output.index);
      switch (output.from) {
        case Lowered::Output::From::driver: {
          Buffer buffer = allocated(lowered_.output_bytes[index], completion);
          addresses[index] = buffer.address();
          outputs.push_back(Array::from_buffer(types_[i], std::move(buffer)));
          break;
        }
        case Lowered::Output::From::donated: {
          Buffer buffer = index < donated.size() && donated[index] ? taken(inputs, index, completion) : Buffer();
          if (!buffer.defined()) {
            const std::byte* values = inputs[index].raw_data();
            buffer = allocated(static_cast<int64_t>(inputs[index].buffer().size()), completion);
            std::copy_n(values, buffer.size(), buffer.address());
          }
          input_addresses[index] = buffer.address();
          outputs.push_back(Array::from_buffer(types_[i], std::move(buffer)));
          break;
        }
        case Lowered::Output::From::input:
          outputs.push_back(typed(inputs[index], types_[i]));
          break;
        case Lowered::Output::From::constant:
          outputs.push_back(typed(lowered_.constants[index], types_[i]));
          break;
        case Lowered::Output::From::output:
          outputs.push_back(typed(outputs[index], types_[i]));
          break;
      }
    }
    return outputs;
  }

  // The memory of a donated input, once it is ready; undefined if it is shared.
  static Buffer taken(std::span<const Array> inputs, std::size_t index, const std::shared_ptr<Completion>& completion) {
    const Buffer& buffer = inputs[index].buffer();
    buffer.wait();
    const auto uses = std::count_if(inputs.begin(), inputs.end(), [&](const Array& input) {
      return !input.is_deleted() && input.buffer().same_as(buffer);
    });
    return uses == 1 ? buffer.take(completion) : Buffer();
  }

  // Nothing has run yet when allocation fails: the error names the largest values of the program.
  Buffer allocated(int64_t bytes, const std::shared_ptr<Completion>& completion) const {
    const auto size = static_cast<std::size_t>(bytes);
    try {
      return completion ? Buffer::pending(size, completion) : Buffer::allocate(size);
    } catch (const RuntimeError& error) {
      std::string largest;
      for (const std::string& value : lowered_.largest) largest += (largest.empty() ? "" : ", ") + value;
      throw RuntimeError(concat(error.what(), "; the largest values of the program are ", largest));
    }
  }

  bool returned(int input) const {
    for (const Lowered::Output& output : lowered_.outputs) {
      if (output.from == Lowered::Output::From::input && output.index == input) return true;
    }
    return false;
  }

  static Array typed(const Array& array, const ArrayType& type) {
    return array.type() == type ? array : Array::from_buffer(type, array.buffer(), array.committed());
  }

  // The work owns what it reads and writes: inputs may be donated, and results dropped, before it is done.
  BackgroundWork owned_work(std::span<const Array> inputs, const Arrays& outputs, Addresses& addresses) {
    std::vector<Buffer> read, held;
    for (const Array& input : inputs) {
      if (!input.is_deleted()) read.push_back(input.buffer());  // else a result reuses its memory
    }
    for (const Array& output : outputs) held.push_back(output.buffer());
    std::vector<std::byte*> kept(addresses.data(), addresses.data() + addresses.size());
    return [self = shared_from_this(), read = std::move(read), held = std::move(held), kept = std::move(kept),
            settings = config(),
            step = profile::active() ? profile::current_step() : -1](const std::atomic<int32_t>& stop) mutable {
      for (const Buffer& input : read) input.wait();  // raises if the program that makes it failed
      const ConfigScope as_called(settings);
      const arena::Purpose purpose(self->name_);
      self->run(kept.data(), &stop, step);
    };
  }

  // `step`: the training step, for profiles.
  void run(std::byte** addresses, const std::atomic<int32_t>* stop, int64_t step) {
    Scratch scratch(*this);
    addresses[scratch_place_] = scratch.data();
    if (short_) return drive(addresses, stop, &never, step);
    const Ticking ticking;
    const auto begin = std::chrono::steady_clock::now();
    drive(addresses, stop, reinterpret_cast<const volatile int32_t*>(&Ticking::flag()), step);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    nanoseconds_.store(took.count(), std::memory_order_relaxed);
  }

  void drive(std::byte* const* addresses, const std::atomic<int32_t>* stop, const volatile int32_t* ask, int64_t step) {
    Call call{this, stop, std::this_thread::get_id(), nullptr};
    const ExchangesUnderWay exchanges;
    int32_t status;
    if (profile::active()) {
      status = drive_marked(call, addresses, ask, step);
    } else {
      const Runtime runtime{ask, run_parallel, run_host, &call};
      const math::FlushDenormals flush;
      status = driver_(&runtime, addresses, 0, 0);
    }
    if (call.error) std::rethrow_exception(call.error);
    if (status == stopped) throw RuntimeError(concat(name_, ": interrupted before its results were ready"));
    if (status != done) throw InternalError(concat("a compiled program ended with status ", status));
  }

  // Runs the marked twin, which fills in a run of the profile.
  int32_t drive_marked(Call& call, std::byte* const* addresses, const volatile int32_t* ask, int64_t step) {
    const Entry driver = profiled_.prepare();
    const Runtime runtime{ask, run_parallel, run_host_marked, &call};
    profile::Run run(profiled_.table(), step);
    call.marks = &run;
    int32_t status;
    {
      const math::FlushDenormals flush;
      status = driver(&runtime, addresses, 0, 0);
    }
    run.finish();
    return status;
  }

  static int32_t run_host_marked(const Runtime* runtime, int32_t kernel, std::byte* const* buffers) {
    if (kernel > first_mark) return run_host(runtime, kernel, buffers);
    static_cast<Call*>(runtime->program)->marks->mark(first_mark - kernel);
    return done;
  }

  static int32_t run_parallel(const Runtime* runtime, Entry function, std::byte* const* buffers, int64_t extent,
                              double cost) {
    Call& call = *static_cast<Call*>(runtime->program);
    if (call.product) return run_product(runtime, function, buffers, extent);
    try {
      return parallel_for_cost(extent, cost,
                               [&](int64_t begin, int64_t end) { return function(runtime, buffers, begin, end); });
    } catch (...) {
      call.error = std::current_exception();
      return failed;
    }
  }

  // Runs a matmul, and a region on each block of its rows as soon as that is complete.
  static int32_t run_product(const Runtime* runtime, Entry region, std::byte* const* buffers, int64_t extent) {
    Call& call = *static_cast<Call*>(runtime->program);
    const ProductKernel& product = *std::exchange(call.product, nullptr);
    // Iterations of the region per row, or rows per iteration, which runs when the last of its rows is complete.
    const int64_t per_row = extent / product.rows, rows = per_row > 0 ? 1 : product.rows / extent;
    std::vector<std::atomic<int64_t>> there(per_row > 0 ? 0 : static_cast<std::size_t>(extent));
    std::atomic<int32_t> status{done};
    auto run_iterations = [&](int64_t begin, int64_t end) {
      if (status.load(std::memory_order_relaxed) != done) return;
      const math::FlushDenormals flush;
      const int32_t own = region(runtime, buffers, begin, end);
      if (own != done) status.store(own, std::memory_order_relaxed);
    };
    auto follow = [&](int64_t first, int64_t count) {
      if (per_row > 0) return run_iterations(first * per_row, (first + count) * per_row);
      for (int64_t row = first, end; row < first + count; row = end) {
        const int64_t iteration = row / rows;
        end = std::min(first + count, (iteration + 1) * rows);
        const int64_t before =
            there[static_cast<std::size_t>(iteration)].fetch_add(end - row, std::memory_order_acq_rel);
        if (before + end - row == rows) run_iterations(iteration, iteration + 1);
      }
    };
    try {
      poll_interrupt();
      product.run(call.product_buffers, follow);
      return status.load(std::memory_order_relaxed);
    } catch (...) {
      call.error = std::current_exception();
      return failed;
    }
  }

  static int32_t run_host(const Runtime* runtime, int32_t kernel, std::byte* const* buffers) {
    Call& call = *static_cast<Call*>(runtime->program);
    try {
      if (kernel == poll_kernel) {
        Ticking::flag().store(0, std::memory_order_relaxed);
        if (call.stop && call.stop->load(std::memory_order_relaxed) != 0) return stopped;
        if (call.caller == std::this_thread::get_id()) poll_interrupt();
        return done;
      }
      const HostKernel& own = call.self->lowered_.kernels[static_cast<std::size_t>(kernel)];
      if (!own) {
        call.product = &call.self->lowered_.products.at(kernel);
        std::copy_n(buffers, std::size(call.product_buffers), call.product_buffers);
        return done;
      }
      poll_interrupt();
      own(buffers);
      return done;
    } catch (...) {
      call.error = std::current_exception();
      return failed;
    }
  }

  // Below the first, a program is finished before anyone could interrupt it; above the second, its call does not wait
  // for it.
  static constexpr double short_nanoseconds = 20e3, long_nanoseconds = 200e3;
  static constexpr int32_t never = 0;

  Profiled profiled_;
  std::string name_;
  Types types_;
  Lowered lowered_;
  std::shared_ptr<const Code> code_;
  Entry driver_;
  bool short_, may_wait_;
  std::atomic<double> nanoseconds_;  // an estimate at first, then the duration of the last run
  std::vector<std::byte*> constants_;
  std::size_t result_bytes_ = 0;
  int64_t argument_bytes_ = 0;
  std::size_t scratch_place_;  // of the driver's buffers, after all others
};

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  bool supports(const Primitive& primitive) const override { return reference::backend().supports(primitive); }
  std::vector<std::string> ways(const Primitive& primitive) const override { return ways_to_run(primitive); }
  Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    return run_eagerly(primitive, inputs, attrs);
  }
  std::shared_ptr<Executable> compile(const Program& program) override { return compile_donating(program, {}); }
  std::shared_ptr<Executable> compile_donating(const Program& program, const std::vector<bool>& donated) override {
    if (holds_refs(program)) {
      return compile_on_values(program, donated, [this](const Program& on_values, const std::vector<bool>& given) {
        return compile_donating(on_values, given);
      });
    }
    const Program best = optimised(program);
    Lowered lowered = lower_to_loops(best, donated);
    std::shared_ptr<const Code> code = code_of(lowered.module);
    return std::make_shared<CpuExecutable>(program, Profiled(program.name(), best, donated), std::move(lowered),
                                           std::move(code), estimated_nanoseconds(best), may_run_later(best));
  }
  std::optional<std::string> compiled_text(const Program& program, const std::vector<bool>& donated) override {
    if (holds_refs(program)) return std::nullopt;  // compiled as the program on values that replaces it
    return to_string(lower_to_loops(optimised(program), donated));
  }
};

}  // namespace

Backend& backend() {
  static CpuBackend instance;
  return instance;
}

void set_async_dispatch(bool on) { dispatches_later.store(on); }

std::string loops_text(const Program& program) { return to_string(lower_to_loops(optimised(program))); }

std::string ir_text(const Program& program) {
  return compiler().ir(lower_to_loops(optimised(program)).module, process_target());
}

}  // namespace capibara::cpu
