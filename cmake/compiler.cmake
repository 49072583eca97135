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

# Compiles the sources of a folder in batches: most of the time goes into headers that all of them include. What the sources of
# a folder define for themselves must differ in name; flags of its own keep a source out of its batch.
function(capibara_compile_in_batches target)
  if(NOT CAPIBARA_BATCHES)
    return()
  endif()
  set(batch_size 8)
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    if(NOT DEFINED ${folder}_count)
      set(${folder}_count 0)
    endif()
    math(EXPR batch "${${folder}_count} / ${batch_size}")
    math(EXPR ${folder}_count "${${folder}_count} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # a source inside a batch is no header
endfunction()

# The precompiled header of the tests: std headers that nearly every file includes.
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
