// Registry of what clear_caches() empties: tables of traced, transformed and compiled programs.
#pragma once

#include <functional>

namespace capibara {

// `clear` empties a table that lives as long as the process.
void on_clear_caches(std::function<void()> clear);
void clear_caches();
// Counts the calls of clear_caches: programs cached elsewhere are dropped when it changes.
unsigned cache_generation();

}  // namespace capibara
