// The loops of the selective scan over the steps of a chunk, for the widest vectors of this processor.
#pragma once

#include <cstdint>

namespace capibara::cpu {

// `width` channels; arrays are [steps][width], [states][width], [steps][states][width].
template <class C>
struct ScanPass {
  int64_t steps, states;
  const C *step, *driven;     // step * u
  const C *B, *C_;            // [steps][states]
  const C* A;                 // times log2(e)
  const std::uint8_t* reset;  // [steps], or null
  C* h;                       // before the chunk, then after it
  C* y;                       // without skip and gate
  C *decays, *before;         // backward: kept; the states before each step
};

// Operands of the backward pass through a chunk, after run_forward kept its decays and states.
template <class C>
struct ScanBack {
  const ScanPass<C>& forward;
  const C *dy, *u;  // [steps][width]; dy: gradient of y before the gate
  const C* A;       // [states][width], not multiplied by log2(e)
  C *g, *dA;        // [states][width]; g: gradient of the state after, then before the chunk; dA: added to
  C *du, *dstep;    // [steps][width]: without the skip
  C *dB, *dC;       // [steps][states][lanes]: added to
};

// Arrays are [steps][channels], parameters [channels]. Channels per call: forward_width, and width backward.
template <class C>
struct ScanCode {
  int forward_width, width, lanes;
  void (*forward)(const ScanPass<C>&);
  void (*keep)(const ScanPass<C>&);  // forward, keeping decays and states; `width` channels, as all below
  void (*backward)(const ScanBack<C>&);
  // Computes the steps from delta, in place; if requested, also the derivative of the softplus. Forward, backward.
  void (*make_steps[2])(C* step, C* derivative, const C* bias, int64_t steps, bool has_softplus);
  void (*multiply)(const C* x, const C* y, C* out, int64_t count);
  // y = (y + D * u) * silu(z); no gate if z is null. `forward_width` channels.
  void (*finish)(C* y, const C* u, const C* D, const C* z, int64_t steps);
  // The gate's backward pass: z becomes its gradient, dy that of the gated sum; y has no skip.
  void (*open_gate)(C* dy, C* z, const C* y, const C* u, const C* D, int64_t steps);
  // du += D * dy and the sums over steps of dD and dbias; dstep becomes the gradient of delta.
  void (*finish_gradients)(C* du, C* dstep, const C* dy, const C* u, const C* derivative, const C* D, C* dD, C* dbias,
                           int64_t steps, int64_t width);
};

template <class C>
ScanCode<C> scan_code();  // float or double

}  // namespace capibara::cpu
