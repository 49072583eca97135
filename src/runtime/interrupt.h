// Interruption: long work asks now and then whether it should stop.
#pragma once

#include <functional>

namespace capibara {

// Cheap; asks the handler at most every few milliseconds. The handler stops the work by throwing.
void poll_interrupt();

// Set once by the host language; an empty handler means that nothing interrupts.
void set_interrupt_handler(std::function<void()> handler);

}  // namespace capibara
