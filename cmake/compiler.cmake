# Compiler settings that everything in the tree shares: warnings, exact arithmetic, sanitizers, ccache.

add_library(capibara_compile_options INTERFACE)
target_compile_options(capibara_compile_options INTERFACE
  -Wall -Wextra
  -Wno-missing-field-initializers  # options are aggregates of which the caller names a few
  -Wno-unused-parameter            # rules share one signature
  -ffp-contract=off)               # numerics are what the source says, on every machine

# A module shows nothing but its entry.
function(capibara_hide_symbols target)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/module_symbols.map)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/module_symbols.map)
endfunction()

# The precompiled header of the core: std headers that nearly every file includes.
set(CAPIBARA_PRECOMPILED_HEADERS
  <algorithm> <array> <cmath> <complex> <cstdint> <cstring> <functional> <map> <memory> <numeric> <optional> <span>
  <sstream> <stdexcept> <string> <tuple> <unordered_map> <utility> <variant> <vector>)

if(CAPIBARA_SANITIZE)
  add_compile_options(-fsanitize=${CAPIBARA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CAPIBARA_SANITIZE})
  if(CAPIBARA_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

find_program(CAPIBARA_CCACHE ccache)
if(CAPIBARA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this sloppiness ccache refuses files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CAPIBARA_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
