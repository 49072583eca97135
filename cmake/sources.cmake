# Collects the source files by room, so that a new file needs no edit here.

file(GLOB_RECURSE CAPIBARA_CORE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
# These backends are modules of their own: they need libraries that the core must not link.
list(FILTER CAPIBARA_CORE_SOURCES EXCLUDE REGEX "/src/backends/(lapack|cpu/llvm|cuda)/")

file(GLOB CAPIBARA_LAPACK_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/lapack/*.cpp)
file(GLOB CAPIBARA_CPU_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/llvm/*.cpp)
file(GLOB CAPIBARA_COMMAND_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/capibara/*.cpp)
file(GLOB CAPIBARA_PYTHON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cpp)
file(GLOB_RECURSE CAPIBARA_PYTHON_MODULES CONFIGURE_DEPENDS
     RELATIVE ${PROJECT_SOURCE_DIR}/python ${PROJECT_SOURCE_DIR}/python/capibara/*.py
     ${PROJECT_SOURCE_DIR}/python/capibara/*.pyi ${PROJECT_SOURCE_DIR}/python/capibara/*.json)

# The loops of the native kernels are fast in every build type; in products a multiplication and an addition may become one operation.
file(GLOB CAPIBARA_KERNEL_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/*.cpp)
set_source_files_properties(${CAPIBARA_KERNEL_SOURCES} PROPERTIES COMPILE_OPTIONS "-O3")
set(CAPIBARA_PRODUCT_SOURCES ${CAPIBARA_KERNEL_SOURCES})
list(FILTER CAPIBARA_PRODUCT_SOURCES INCLUDE REGEX "/(gem[a-z0-9_]*|convolution|dot_general)\\.cpp$")
set_source_files_properties(${CAPIBARA_PRODUCT_SOURCES} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast")

# Some sources of these folders share names that they define for themselves.
file(GLOB CAPIBARA_SINGLE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/*/*.cpp
     ${PROJECT_SOURCE_DIR}/src/backends/pjrt/*.cpp)
list(FILTER CAPIBARA_SINGLE_SOURCES EXCLUDE REGEX "/cpu/(kernels|llvm)/")
set_source_files_properties(${CAPIBARA_SINGLE_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
