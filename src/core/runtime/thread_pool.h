// The threads of the process: loops with independent iterations, split into chunks that free threads claim.
//
// One region runs at a time. The caller works too and takes every chunk that no worker has claimed, so a worker that
// the kernel wakes late costs nothing; a caller that finds the pool busy, or that is itself inside a region, runs its
// loop alone. Workers look for the next region for 50 microseconds before they sleep. Which thread runs a chunk must
// not change what it computes: workers take over the caller's rounding and denormal mode.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace capibara {

// A reference to a callable that outlives the call it is given to.
template <class Signature>
class FunctionRef;
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& function)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

using ParallelBody = FunctionRef<int32_t(int64_t begin, int64_t end)>;

// The number of threads that a region may use: CAPIBARA_NUM_THREADS, else the processors that affinity and cgroup leave
// to this process. Raises ValueError if the variable is not a number from 1 to 1024.
int thread_count();

// Runs body over [0, extent) in chunks of `grain` iterations (the last may be shorter). A status other than 0 stops the
// chunks not yet begun; the greatest status is returned. An exception of the body is thrown again in the caller.
int32_t parallel_for(int64_t extent, int64_t grain, ParallelBody body);

// The same for a body of known cost in nanoseconds per iteration: runs alone below about 20 microseconds (8 while the
// workers are awake), else in chunks that are worth claiming.
int32_t parallel_for_cost(int64_t extent, double cost, ParallelBody body);

// True if this thread is inside a region: loops that it starts now run on it alone.
bool in_parallel_region();

// Replaces the pool by one of `count` threads, the caller included; for tests. No region may be running.
void set_thread_count(int count);

}  // namespace capibara
