// Exchanges between processes in compiled programs: started early, and waited for where their result is read.
#pragma once

#include <memory>

#include "backends/cpu/kernels/kernels.h"

namespace capibara::cpu {

// (operand) -> (result, number): starts the exchange named by the attribute `exchange`, in program order.
const Primitive& exchange_start();
// (result, number, operand) -> (result), in the same memory: waits for it. The exchange reads the operand until then.
const Primitive& exchange_wait();
Attrs start_attrs(const Equation& exchange);

HostKernel make_exchange(const Primitive& primitive, const KernelRequest& request);
HostKernel make_exchange_start(const KernelRequest& request);
HostKernel make_exchange_wait(const KernelRequest& request);

// Exchanges that one run of a program has started but not yet waited for. If the run ends early, by an error or an
// interruption, they are waited for before its memory is freed.
class ExchangesUnderWay {
 public:
  ExchangesUnderWay();
  ~ExchangesUnderWay();
  ExchangesUnderWay(const ExchangesUnderWay&) = delete;

 private:
  friend HostKernel make_exchange_start(const KernelRequest& request);
  friend HostKernel make_exchange_wait(const KernelRequest& request);
  struct Started;
  std::unique_ptr<std::vector<Started>> started_;  // null in most runs
  ExchangesUnderWay* const outer_;
};

}  // namespace capibara::cpu
