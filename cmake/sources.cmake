# Collects the source files by room, so that a new file needs no edit here.

file(GLOB_RECURSE CAPIBARA_CORE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
# These backends are modules of their own: they need libraries that the core must not link.
list(FILTER CAPIBARA_CORE_SOURCES EXCLUDE REGEX "/src/backends/(lapack|cpu/llvm|cuda)/")

file(GLOB CAPIBARA_LAPACK_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/lapack/*.cpp)
file(GLOB CAPIBARA_CPU_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/llvm/*.cpp)
file(GLOB CAPIBARA_COMMAND_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capibara/*.cpp)
file(GLOB CAPIBARA_PYTHON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cpp)
file(GLOB_RECURSE CAPIBARA_PYTHON_MODULES CONFIGURE_DEPENDS
     RELATIVE ${PROJECT_SOURCE_DIR}/python ${PROJECT_SOURCE_DIR}/python/capibara/*.py ${PROJECT_SOURCE_DIR}/python/capibara/*.pyi ${PROJECT_SOURCE_DIR}/python/capibara/*.json)

# The inner loops of the native kernels are fast in every build type; products and sums there may become one operation.
file(GLOB CAPIBARA_LOOP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/gem*.cpp
     ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/convolution.cpp ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/dot_general.cpp)
set_source_files_properties(${CAPIBARA_LOOP_SOURCES} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast")
foreach(kernel cumulative extremes index order random scatter top_k windows)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/${kernel}.cpp PROPERTIES COMPILE_OPTIONS "-O3")
endforeach()
