# Collects the source files by room, so that a new file needs no edit here.

file(GLOB_RECURSE CAPIBARA_CORE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
# These are modules of their own: they need libraries that the core must not link.
list(FILTER CAPIBARA_CORE_SOURCES EXCLUDE REGEX "/src/(backends/(lapack|cpu/llvm|cuda|pjrt/server)|core/processes/mpi|io/http)/")
# Instead of src/assembly/whole.cpp, for the demo.
set(CAPIBARA_NATIVE_ASSEMBLY ${PROJECT_SOURCE_DIR}/src/assembly/native.cpp)
list(REMOVE_ITEM CAPIBARA_CORE_SOURCES ${CAPIBARA_NATIVE_ASSEMBLY})

# Moves the sources whose path matches out of the core into a part that is compiled separately, see CMakeLists.txt.
function(capibara_take_out list expression)
  set(sources ${CAPIBARA_CORE_SOURCES})
  list(FILTER sources INCLUDE REGEX ${expression})
  set(rest ${CAPIBARA_CORE_SOURCES})
  list(FILTER rest EXCLUDE REGEX ${expression})
  set(${list} ${sources} PARENT_SCOPE)
  set(CAPIBARA_CORE_SOURCES ${rest} PARENT_SCOPE)
endfunction()
capibara_take_out(CAPIBARA_MODEL_SOURCES "/src/models/(named|serving)/")
capibara_take_out(CAPIBARA_LIBRARY_SOURCES "/src/library/([^/]*[.]cpp|([a-qs-z][^/]*)/)")  # all but the random numbers
capibara_take_out(CAPIBARA_TRAINING_SOURCES "/src/models/(protocol|training)/")
capibara_take_out(CAPIBARA_PLUGIN_SOURCES
  "/src/(kernels|compiler/stablehlo|backends/(ffi|pjrt))/|/(whole|exported|jit_object|jit_text|cpu/kernels/fused)[.]|/cpu/object/")
capibara_take_out(CAPIBARA_TPU_SOURCES "/src/tpu/")
capibara_take_out(CAPIBARA_PRIMITIVE_SOURCES "/src/lax/")
capibara_take_out(CAPIBARA_PARTITION_SOURCES "/src/compiler/partition/")
capibara_take_out(CAPIBARA_REPORT_SOURCES "/src/operate/")
# The CPU backend's kernels by folder of src/backends/cpu/kernels. src/assembly/native.cpp lists only the first and the last.
capibara_take_out(CAPIBARA_GEMM_SOURCES "/cpu/kernels/gemm/")
capibara_take_out(CAPIBARA_CONVOLUTION_SOURCES "/cpu/kernels/(convolution|fft|linalg)/")
capibara_take_out(CAPIBARA_WINDOW_SOURCES "/cpu/kernels/(functions/|planes/|window/|sort/(order|vector_sort)[.]cpp)")
capibara_take_out(CAPIBARA_KERNEL_SOURCES "/src/backends/cpu/kernels/")

# The vectorised functions of src/lax/math, and the loops over planes: a multiplication and an addition may be fused,
# and -O3 would only take longer to compile.
file(GLOB CAPIBARA_FUNCTION_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/functions/*.cpp
     ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/planes/*.cpp)
set_source_files_properties(${CAPIBARA_FUNCTION_SOURCES} PROPERTIES
                            COMPILE_OPTIONS "${CAPIBARA_VECTOR_OPTIMIZATION};-ffp-contract=fast;-fno-math-errno")
# Loops over bytes and elements: checksums, and the sums of reductions between processes.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/io/files/crc32c.cpp ${PROJECT_SOURCE_DIR}/src/core/processes/reduce.cpp
                            PROPERTIES COMPILE_OPTIONS ${CAPIBARA_LOOP_OPTIMIZATION})
# Templates of vector code that take long to compile: each alone.
file(GLOB CAPIBARA_VECTOR_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/fft/*.cpp
     ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/sort/vector_sort.cpp)
set_source_files_properties(${CAPIBARA_VECTOR_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

file(GLOB CAPIBARA_LAPACK_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/lapack/*.cpp)
file(GLOB CAPIBARA_SERVER_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/pjrt/server/*.cpp)
file(GLOB CAPIBARA_CURL_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/io/http/*.cpp)
file(GLOB CAPIBARA_MPI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/core/processes/mpi/*.cpp)
file(GLOB CAPIBARA_CPU_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/llvm/*.cpp)
file(GLOB CAPIBARA_COMMAND_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capibara/*.cpp)
set(CAPIBARA_COMMAND_MAIN ${PROJECT_SOURCE_DIR}/tools/capibara/main.cpp)
# The commands that train, which the program of the demo has too, and its main.
file(GLOB CAPIBARA_TRAINING_COMMANDS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capibara/training/*.cpp)
set(CAPIBARA_DEMO_MAIN ${PROJECT_SOURCE_DIR}/tools/capibara/training/main.cpp)
list(REMOVE_ITEM CAPIBARA_TRAINING_COMMANDS ${CAPIBARA_DEMO_MAIN})
file(GLOB CAPIBARA_PYTHON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cpp)
file(GLOB_RECURSE CAPIBARA_PYTHON_MODULES CONFIGURE_DEPENDS
     RELATIVE ${PROJECT_SOURCE_DIR}/python ${PROJECT_SOURCE_DIR}/python/capibara/*.py
     ${PROJECT_SOURCE_DIR}/python/capibara/*.pyi ${PROJECT_SOURCE_DIR}/python/capibara/*.json
     ${PROJECT_SOURCE_DIR}/python/jax_plugins/*.py)
