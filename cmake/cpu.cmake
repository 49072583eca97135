# The native compiler: LLVM, static and hidden inside a module that the core opens at its first compilation.

if(CAPIBARA_CPU AND CAPIBARA_CPU_SOURCES)
  # The version that the tests run with comes first; others are used where the system has them.
  find_package(LLVM CONFIG QUIET
    HINTS /usr/lib/llvm-19 /usr/lib/llvm-20 /usr/lib/llvm-18 /usr/local/opt/llvm)
  set(CAPIBARA_LLVM_COMPONENTS aarch64codegen aarch64desc aarch64info x86codegen x86asmparser x86desc x86info runtimedyld)
  if(LLVM_FOUND AND LLVM_VERSION_MAJOR GREATER_EQUAL 18)
    llvm_map_components_to_libnames(CAPIBARA_LLVM_LIBRARIES ${CAPIBARA_LLVM_COMPONENTS})
    foreach(library ${CAPIBARA_LLVM_LIBRARIES})
      if(NOT TARGET ${library})
        set(CAPIBARA_LLVM_LACKS ${library})
      endif()
    endforeach()
  else()
    set(CAPIBARA_LLVM_LACKS "LLVM 18 or later (llvm-19-dev, libzstd-dev)")
  endif()
  if(CAPIBARA_LLVM_LACKS)
    message(STATUS "capibara: no native compiler, for want of ${CAPIBARA_LLVM_LACKS}: programs run on the reference backend")
  else()
    add_library(capibara_cpu MODULE ${CAPIBARA_CPU_SOURCES})
    target_include_directories(capibara_cpu PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(capibara_cpu SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    # A cheap -O: the time goes into LLVM's own code, and its headers are slow to compile.
    target_compile_options(capibara_cpu PRIVATE -O1 -g0 -fvisibility=hidden -fvisibility-inlines-hidden)
    if(NOT LLVM_ENABLE_RTTI)
      target_compile_options(capibara_cpu PRIVATE -fno-rtti)
    endif()
    target_link_libraries(capibara_cpu PRIVATE ${CAPIBARA_LLVM_LIBRARIES} capibara_compile_options)
    target_link_options(capibara_cpu PRIVATE -Wl,--as-needed -Wl,--gc-sections -Wl,--build-id -s)
    capibara_hide_symbols(capibara_cpu)
    capibara_compile_in_batches(capibara_cpu 40)
    # Where this backend is built, programs run on it by default.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/core/runtime/config.cpp
                                PROPERTIES COMPILE_DEFINITIONS CAPIBARA_HAS_CODE_GENERATOR)
    message(STATUS "capibara: native compiler from LLVM ${LLVM_PACKAGE_VERSION}")
  endif()
endif()
