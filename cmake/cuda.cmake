# The module of CUDA kernels, built where nvcc is found: one shared object that the PJRT backend opens when a GPU is there.

option(CAPIBARA_CUDA "Build the CUDA kernels where nvcc is found" ON)
file(GLOB CAPIBARA_CUDA_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.h)
if(CAPIBARA_CUDA AND CAPIBARA_CUDA_SOURCES)
  find_program(CAPIBARA_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(CAPIBARA_NVCC)
    set(launcher ${CAPIBARA_CCACHE})  # it takes nvcc too, and these files take minutes
    if(NOT CAPIBARA_CCACHE)
      set(launcher "")
    endif()
    # Hopper's own code, and an intermediate form for what comes before and after it. The runtime is linked statically.
    set(CAPIBARA_CUDA_OBJECTS "")
    foreach(source ${CAPIBARA_CUDA_SOURCES})
      get_filename_component(name ${source} NAME_WE)
      set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
      add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
        COMMAND ${launcher} ${CAPIBARA_NVCC} -std=c++17 -O3 -ccbin ${CMAKE_CXX_COMPILER} -Xcompiler -fPIC,-fvisibility=hidden
                --diag-suppress=1427
                -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=compute_80
                -I${PROJECT_SOURCE_DIR}/src -I${CMAKE_BINARY_DIR}/generated -c ${source} -o ${object}
        DEPENDS ${source} ${CAPIBARA_CUDA_HEADERS} ${PROJECT_SOURCE_DIR}/src/backends/pjrt/ffi.h
                ${CMAKE_BINARY_DIR}/generated/fused_kernels.h)
      list(APPEND CAPIBARA_CUDA_OBJECTS ${object})
    endforeach()
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib
      COMMAND ${CAPIBARA_NVCC} -shared -cudart static -ccbin ${CMAKE_CXX_COMPILER} ${CAPIBARA_CUDA_OBJECTS} -o ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so
      DEPENDS ${CAPIBARA_CUDA_OBJECTS})
    add_custom_target(capibara_cuda ALL DEPENDS ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so)
    install(FILES ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
    message(STATUS "capibara: CUDA kernels with ${CAPIBARA_NVCC}")
  else()
    message(STATUS "capibara: no nvcc: programs on a GPU run without our own kernels")
  endif()
endif()
