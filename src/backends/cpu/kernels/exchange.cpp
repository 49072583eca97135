// Exchanges on a program's own memory: data is copied only if the exchange may keep using the memory after a failure.
#include "backends/cpu/kernels/exchange.h"

#include <algorithm>
#include <cstring>

#include "core/array/byte_count.h"
#include "core/processes/exchange.h"
#include "lax/collective/process_exchange.h"

namespace capibara::cpu {

namespace {

thread_local ExchangesUnderWay* innermost = nullptr;

// Memory that outlives the run: an exchange over a network may still write to it after a failure.
struct Staged {
  std::vector<std::byte> from, to;
};

// An exchange prepared for fixed types.
struct Prepared {
  Primitive primitive;
  ArrayType operand;
  Attrs attrs;
  std::size_t from_bytes, to_bytes;

  Prepared(Primitive own, const ArrayType& in, const ArrayType& out, Attrs with)
      : primitive(std::move(own)),
        operand(in),
        attrs(std::move(with)),
        from_bytes(byte_count(in)),
        to_bytes(byte_count(out)) {}

  processes::Pending start(std::byte* from, std::byte* to, std::shared_ptr<Staged>& staged) const {
    if (lets_go_of_memory(attrs)) return start_process_exchange(primitive, operand, attrs, from, to, nullptr);
    staged = std::make_shared<Staged>();
    staged->from.assign(from, from + from_bytes);
    staged->to.resize(to_bytes);
    return start_process_exchange(primitive, operand, attrs, staged->from.data(), staged->to.data(), staged);
  }
};

void finish(const processes::Pending& pending, const std::shared_ptr<Staged>& staged, std::byte* to) {
  if (!staged) return pending.wait_out();
  pending.wait();
  if (!staged->to.empty()) std::memcpy(to, staged->to.data(), staged->to.size());
}

}  // namespace

const Primitive& exchange_start() {
  static const Primitive start = [] {
    PrimitiveRecord record;
    record.name = "exchange_start";
    record.doc = "Starts an exchange between processes.";
    record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
      TypeResult result = primitive(attrs.text("exchange"))->type(types, attrs);
      result.types.push_back(ArrayType{{}, DType::uint64});
      return result;
    };
    return Primitive(std::make_shared<const PrimitiveRecord>(std::move(record)));
  }();
  return start;
}

const Primitive& exchange_wait() {
  static const Primitive wait = [] {
    PrimitiveRecord record;
    record.name = "exchange_wait";
    record.doc = "Waits for an exchange between processes.";
    record.type = [](std::span<const ArrayType> types, const Attrs&) { return TypeResult(Types{types[0]}); };
    return Primitive(std::make_shared<const PrimitiveRecord>(std::move(record)));
  }();
  return wait;
}

Attrs start_attrs(const Equation& exchange) { return exchange.attrs.with("exchange", exchange.primitive.name()); }

// ---- started but not yet waited for -----------------------------------------------------------------------------

struct ExchangesUnderWay::Started {
  processes::Pending pending;
  std::shared_ptr<Staged> staged;
  bool over = false;
};

ExchangesUnderWay::ExchangesUnderWay() : outer_(innermost) { innermost = this; }

ExchangesUnderWay::~ExchangesUnderWay() {
  innermost = outer_;
  if (!started_) return;
  for (const Started& one : *started_) {
    if (one.over || one.staged) continue;
    try {
      one.pending.wait_out();
    } catch (...) {
      // The run already ends with an error of its own.
    }
  }
}

// ---- kernels ----------------------------------------------------------------------------------------------------

HostKernel make_exchange(const Primitive& primitive, const KernelRequest& request) {
  return [own = Prepared(primitive, request.inputs[0], request.outputs[0], request.attrs)](std::byte* const* buffers) {
    std::shared_ptr<Staged> staged;
    const processes::Pending pending = own.start(buffers[0], buffers[1], staged);
    finish(pending, staged, buffers[1]);
  };
}

HostKernel make_exchange_start(const KernelRequest& request) {
  const Primitive exchange = primitive(request.attrs.text("exchange"));
  return [own = Prepared(exchange, request.inputs[0], request.outputs[0], request.attrs)](std::byte* const* buffers) {
    if (!innermost) throw InternalError("exchange_start: no program runs on this thread");
    if (!innermost->started_) innermost->started_ = std::make_unique<std::vector<ExchangesUnderWay::Started>>();
    std::vector<ExchangesUnderWay::Started>& started = *innermost->started_;
    std::shared_ptr<Staged> staged;
    const processes::Pending pending = own.start(buffers[0], buffers[1], staged);
    const uint64_t number = started.size();
    started.push_back({pending, std::move(staged)});
    std::memcpy(buffers[2], &number, sizeof number);
  };
}

HostKernel make_exchange_wait(const KernelRequest&) {
  return [](std::byte* const* buffers) {
    uint64_t number = 0;
    std::memcpy(&number, buffers[1], sizeof number);
    ExchangesUnderWay::Started& one = innermost->started_->at(number);
    one.over = true;  // even if it fails: it is no longer in flight then
    finish(one.pending, one.staged, buffers[0]);
    one.staged.reset();
  };
}

}  // namespace capibara::cpu
