// The native CPU backend: optimises, lowers and compiles programs, and runs them on the threads of the process.
#include "backends/cpu/backend.h"

#include <capibara/config.h>

#include <exception>
#include <map>
#include <mutex>
#include <unordered_map>

#include "backends/cpu/compiler.h"
#include "backends/cpu/fuse.h"
#include "backends/cpu/lower.h"
#include "backends/reference/backend.h"
#include "backends/reference/kernels.h"
#include "optimise/pipeline.h"
#include "primitives/math/denormals.h"
#include "program/build.h"
#include "runtime/disk_cache.h"
#include "runtime/interrupt.h"
#include "runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

enum Status : int32_t { done = 0, failed = 2 };

Program optimised(const Program& program) {
  OptimiseOptions options;
  options.keep = [](const Program& own, const Equation& equation) {
    return work_of(own, equation) != Work::host || reference::find_kernel(equation.primitive.name()) ||
           equation.primitive->evaluate;
  };
  return optimise(program, options);
}

// Machine code of modules by what they say: in memory while somebody runs it, and on disk.
class CodeCache {
 public:
  static std::shared_ptr<const Code> get(const Module& module) {
    static CodeCache* cache = new CodeCache;  // never freed: programs may run until the very end
    return cache->find(module);
  }

 private:
  std::shared_ptr<const Code> find(const Module& module) {
    Compiler& generator = compiler();
    const Target target = generator.host();
    const Digest key = digest(concat(generator.version(), "\n", target.key(), "\n", to_string(module)));
    {
      std::lock_guard lock(mutex_);
      if (std::shared_ptr<const Code> known = codes_[key].lock()) return known;
      if (codes_.size() > most_entries) std::erase_if(codes_, [](const auto& entry) { return entry.second.expired(); });
    }
    std::shared_ptr<const Code> code = from_disk(generator, key);
    if (!code) {
      const std::string object = generator.object_code(module, target);
      DiskCache::instance().store(key, object);
      code = generator.link(object);
    }
    std::lock_guard lock(mutex_);
    codes_[key] = code;
    return code;
  }

  // Nothing where the file is absent or cannot be linked.
  static std::shared_ptr<const Code> from_disk(Compiler& generator, const Digest& key) {
    std::optional<std::string> object = DiskCache::instance().find(key);
    if (!object) return nullptr;
    try {
      return generator.link(*object);
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  }

  static constexpr std::size_t most_entries = 4096;
  std::mutex mutex_;
  std::map<Digest, std::weak_ptr<const Code>> codes_;
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Program& program, Lowered lowered, std::shared_ptr<const Code> code)
      : types_(program.output_types()), lowered_(std::move(lowered)), code_(std::move(code)), driver_(code_->driver()) {
    lowered_.module = {};
    for (const Array& constant : lowered_.constants) constants_.push_back(const_cast<std::byte*>(constant.raw_data()));
  }

  Arrays execute(std::span<const Array> inputs, const std::vector<bool>& donated) override {
    std::vector<std::byte*> buffers;
    buffers.reserve(inputs.size() + constants_.size() + lowered_.output_bytes.size() + 1);
    for (const Array& input : inputs) buffers.push_back(const_cast<std::byte*>(input.raw_data()));
    buffers.insert(buffers.end(), constants_.begin(), constants_.end());
    std::vector<Buffer> results;
    for (int64_t bytes : lowered_.output_bytes) {
      results.push_back(allocated(bytes));
      buffers.push_back(results.back().mutable_data());
    }
    Buffer arena;
    if (lowered_.arena_bytes > 0) arena = allocated(lowered_.arena_bytes);
    buffers.push_back(arena.defined() ? arena.mutable_data() : nullptr);
    run(buffers.data());
    Arrays outputs;
    for (std::size_t i = 0; i < lowered_.outputs.size(); ++i) {
      const Lowered::Output& output = lowered_.outputs[i];
      switch (output.from) {
        case Lowered::Output::From::driver:
          outputs.push_back(Array::from_buffer(types_[i], results[static_cast<std::size_t>(output.index)]));
          break;
        case Lowered::Output::From::input:
          outputs.push_back(typed(inputs[static_cast<std::size_t>(output.index)], types_[i]));
          break;
        case Lowered::Output::From::constant:
          outputs.push_back(typed(lowered_.constants[static_cast<std::size_t>(output.index)], types_[i]));
          break;
        case Lowered::Output::From::output:
          outputs.push_back(typed(outputs[static_cast<std::size_t>(output.index)], types_[i]));
          break;
      }
    }
    for (std::size_t i = 0; i < donated.size(); ++i) {
      if (donated[i] && !returned(static_cast<int>(i))) inputs[i].delete_buffers();
    }
    return outputs;
  }

 private:
  // What generated code reaches through Runtime::program.
  struct Call {
    const CpuExecutable* self;
    std::exception_ptr error;
    const math::FlushDenormals* outside = nullptr;  // the mode in which kernels run: they flush by themselves
  };

  // Nothing has run yet when memory is short: the error says what the program needs most of it for.
  Buffer allocated(int64_t bytes) const {
    try {
      return Buffer::allocate(static_cast<std::size_t>(bytes));
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

  void run(std::byte* const* buffers) {
    Call call{this, nullptr};
    Runtime runtime{reinterpret_cast<const volatile int32_t*>(&Ticking::flag()), run_parallel, run_host, &call};
    const Ticking ticking;
    int32_t status;
    {
      const math::FlushDenormals flush;
      call.outside = &flush;
      status = driver_(&runtime, buffers, 0, 0);
    }
    if (call.error) std::rethrow_exception(call.error);
    if (status != done) throw InternalError(concat("a compiled program ended with status ", status));
  }

  static int32_t run_parallel(const Runtime* runtime, Entry function, std::byte* const* buffers, int64_t extent, double cost) {
    return parallel_for_cost(extent, cost, [&](int64_t begin, int64_t end) { return function(runtime, buffers, begin, end); });
  }

  static int32_t run_host(const Runtime* runtime, int32_t kernel, std::byte* const* buffers) {
    Call& call = *static_cast<Call*>(runtime->program);
    try {
      Ticking::flag().store(0, std::memory_order_relaxed);
      poll_interrupt();
      if (kernel == poll_kernel) return done;
      const math::FlushDenormals::Paused pause(*call.outside);
      call.self->lowered_.kernels[static_cast<std::size_t>(kernel)](buffers);
      return done;
    } catch (...) {
      call.error = std::current_exception();
      return failed;
    }
  }

  Types types_;
  Lowered lowered_;
  std::shared_ptr<const Code> code_;
  Entry driver_;
  std::vector<std::byte*> constants_;
};

// Operations run one by one that are worth compiling, as programs of one equation.
class SingleOperations {
 public:
  // The program's executable; null where the operation is not worth it, or only the reference backend runs it.
  static std::shared_ptr<Executable> find(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    const std::string& name = primitive.name();
    const bool loops = name == "scan" || name == "while" || name == "cond";
    int64_t elements = 0;
    for (const Array& input : inputs) {
      if (input.type().ref) return nullptr;
      elements = std::max(elements, input.size());
    }
    const Config& settings = config();
    if ((!loops && elements < fewest_elements) || settings.debug_nans || settings.debug_infs || primitive->evaluate) return nullptr;
    if (!loops && !reference::find_kernel(name)) return nullptr;
    static SingleOperations* known = new SingleOperations;  // never freed: operations may run until the very end
    return known->get(primitive, inputs, attrs);
  }

 private:
  struct Entry {
    Primitive primitive;
    Types types;
    Attrs attrs;
    std::shared_ptr<Executable> executable;
  };

  std::shared_ptr<Executable> get(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    Types types;
    std::size_t key = attrs.hash() ^ std::hash<std::string>{}(primitive.name());
    for (const Array& input : inputs) {
      types.push_back(input.type());
      key = key * 1099511628211u + static_cast<std::size_t>(input.dtype());
      for (int64_t size : input.shape()) key = key * 1099511628211u + static_cast<std::size_t>(size);
    }
    {
      std::lock_guard lock(mutex_);
      const auto [first, last] = entries_.equal_range(key);
      for (auto entry = first; entry != last; ++entry) {
        if (entry->second.primitive == primitive && entry->second.types == types && entry->second.attrs == attrs) return entry->second.executable;
      }
    }
    const FlatFunction call = [&](std::span<const Array> operands) { return capibara::bind(primitive, operands, attrs); };
    const Program program = stage(call, types, primitive.name()).program;
    std::shared_ptr<Executable> executable = program.effects().empty() && can_lower(program) ? cpu::backend().compile(program) : nullptr;
    std::lock_guard lock(mutex_);
    if (entries_.size() >= most_entries) entries_.clear();
    entries_.emplace(key, Entry{primitive, std::move(types), attrs, executable});
    return executable;
  }

  static constexpr int64_t fewest_elements = 16384;
  static constexpr std::size_t most_entries = 2048;
  std::mutex mutex_;
  std::unordered_multimap<std::size_t, Entry> entries_;
};

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  int device_count() const override { return config().num_cpu_devices; }
  bool supports(const Primitive& primitive) const override { return reference::backend().supports(primitive); }
  Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    if (std::shared_ptr<Executable> compiled = SingleOperations::find(primitive, inputs, attrs)) return compiled->execute(inputs, {});
    return reference::backend().run(primitive, inputs, attrs);
  }
  std::shared_ptr<Executable> compile(const Program& program) override {
    if (!can_lower(program)) return reference::backend().compile(program);
    Lowered lowered = lower_to_loops(optimised(program));
    std::shared_ptr<const Code> code = CodeCache::get(lowered.module);
    return std::make_shared<CpuExecutable>(program, std::move(lowered), std::move(code));
  }
};

}  // namespace

Backend& backend() {
  static CpuBackend instance;
  return instance;
}

std::string loops_text(const Program& program) { return to_string(lower_to_loops(optimised(program)).module); }

std::string ir_text(const Program& program) {
  return compiler().ir(lower_to_loops(optimised(program)).module, compiler().host());
}

}  // namespace capibara::cpu
