# Compiler settings that everything in the tree shares: warnings, exact arithmetic, sanitizers, ccache.

add_library(capibara_compile_options INTERFACE)
target_compile_options(capibara_compile_options INTERFACE
  -Wall -Wextra
  -Wno-missing-field-initializers  # options are aggregates, and callers set a few fields
  -Wno-unused-parameter            # rules share one signature
  -Wno-psabi                       # notes on g++ 9's ABI for pairs
  -ffp-contract=off)               # numerics follow the source, on every machine
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(capibara_compile_options INTERFACE -Wno-maybe-uninitialized)  # false positives inside std::variant
endif()

# Linked after those options: a multiplication and an addition may be fused into one operation.
add_library(capibara_contract_products INTERFACE)
target_compile_options(capibara_contract_products INTERFACE -ffp-contract=fast)

# A module exports nothing but its entry point.
function(capibara_hide_symbols target)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/module_symbols.map)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/module_symbols.map)
  capibara_make_portable(${target})
endfunction()

# With CAPIBARA_PORTABLE, the libstdc++ and the glibc of another Linux system may be older than those here.
function(capibara_make_portable target)
  if(CAPIBARA_PORTABLE)
    target_link_options(${target} PRIVATE -static-libstdc++)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/arc4random.cpp)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/cmake/arc4random.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# A source with flags of its own or with SKIP_UNITY_BUILD_INCLUSION is compiled alone; so are files in the build folder.
function(capibara_compiled_alone result source)
  set(alone FALSE)
  foreach(property SKIP_UNITY_BUILD_INCLUSION COMPILE_DEFINITIONS COMPILE_OPTIONS INCLUDE_DIRECTORIES)
    get_source_file_property(value ${source} ${property})
    if(value)
      set(alone TRUE)
    endif()
  endforeach()
  if(source MATCHES "^[$]<")  # objects of another target
    set(alone TRUE)
  endif()
  string(FIND ${source} "${CMAKE_BINARY_DIR}/" position)
  if(position EQUAL 0)
    set(alone TRUE)
  endif()
  set(${result} ${alone} PARENT_SCOPE)
endfunction()

# Folders on the path of every call. g++ inlines less in a large file; here it inlines as much as in each source alone,
# which costs a fifth of the compile time. The others trace and compile programs; -O1 saves a third of their compile
# time, and no benchmark shows the difference.
set(CAPIBARA_FAST_ROOMS
    src_core_array src_core_runtime src_program_trace src_backends src_backends_cpu_execution src_backends_cpu_kernels src_transforms
    python_src)

# Compiles the sources of a room, or of a folder of a large room, in batches of about `batch_size`: much of the time goes into
# headers that all of them include. Internal definitions of two sources in a room therefore need different names. All build
# folders of a tree share the same batch files, so ccache serves one build from another; CMake's own unity builds have files
# per build folder. The batches are made once the whole folder has been read: until then a source may still get its own flags.
function(capibara_compile_in_batches target batch_size)
  if(CAPIBARA_BATCHES)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL capibara_make_batches ${target} ${batch_size})")
  endif()
endfunction()

function(capibara_make_batches target batch_size)
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(rooms "")
  set(compiled "")
  foreach(source ${sources})
    capibara_compiled_alone(alone ${source})
    if(alone)
      list(APPEND compiled ${source})
      continue()
    endif()
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    set(rooms_by_folder "backends|compiler|core|io|library|models|operate|program")
    string(REGEX MATCH "^(src/backends/cpu/(execution|kernels)|src/(${rooms_by_folder})/[^/]+|[^/]+/[^/]+)/" room ${path})
    string(MAKE_C_IDENTIFIER "${room}" room)
    list(APPEND rooms ${room})
    list(APPEND sources_of_${room} ${source})
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room ${rooms})
    # The last batch takes the remaining sources if they would make too small a batch.
    list(LENGTH sources_of_${room} count)
    math(EXPR last "(${count} + ${batch_size} / 2) / ${batch_size} - 1")
    set(index 0)
    set(batches "")
    foreach(source ${sources_of_${room}})
      math(EXPR batch "${index} / ${batch_size}")
      if(batch GREATER last AND NOT last LESS 0)
        set(batch ${last})
      endif()
      math(EXPR index "${index} + 1")
      list(APPEND batches ${batch})
      file(RELATIVE_PATH path ${CAPIBARA_BATCHES_FOLDER}/${target} ${source})
      string(APPEND text_${batch} "#include \"${path}\"\n")
    endforeach()
    list(REMOVE_DUPLICATES batches)
    foreach(batch ${batches})
      string(SHA1 content "${text_${batch}}")  # a batch may differ between presets
      string(SUBSTRING ${content} 0 6 content)
      set(file ${CAPIBARA_BATCHES_FOLDER}/${target}/${room}${batch}_${content}.cpp)
      file(CONFIGURE OUTPUT ${file} CONTENT "${text_${batch}}" @ONLY)
      list(APPEND compiled ${file})
      unset(text_${batch})
      string(REGEX REPLACE "_$" "" name "${room}")
      if(name IN_LIST CAPIBARA_FAST_ROOMS)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CAPIBARA_SANITIZE)
          set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS --param=large-unit-insns=1000000)
        endif()
      elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -O1)
      elseif(CAPIBARA_SANITIZE AND NOT CAPIBARA_FUZZ)
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -O0)  # half the time to compile
      endif()
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${compiled}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # a source inside a batch is not a header
  endif()
endfunction()

# The precompiled header of the tests: std headers that nearly every file includes.
set(CAPIBARA_PRECOMPILED_HEADERS
  <algorithm> <array> <cmath> <complex> <cstdint> <cstring> <functional> <map> <memory> <numeric> <optional> <span>
  <sstream> <stdexcept> <string> <tuple> <unordered_map> <utility> <variant> <vector>)

# For loops over elements, and for loops written with vectors. With sanitizers, these would take five times as long to compile.
set(CAPIBARA_LOOP_OPTIMIZATION -O3)
set(CAPIBARA_VECTOR_OPTIMIZATION -O2)
if(CAPIBARA_SANITIZE)
  set(CAPIBARA_LOOP_OPTIMIZATION -O1)
  set(CAPIBARA_VECTOR_OPTIMIZATION -O1)
  add_compile_options(-fsanitize=${CAPIBARA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CAPIBARA_SANITIZE})
  if(CAPIBARA_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

find_program(CAPIBARA_CCACHE ccache)
if(CAPIBARA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this sloppiness ccache refuses files that use a precompiled header; the base directory lets checkouts share objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${CAPIBARA_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
