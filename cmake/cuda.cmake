# The module of CUDA kernels, built where nvcc is found: one shared object that the PJRT backend opens when a GPU is there.

option(CAPIBARA_CUDA "Build the CUDA kernels where nvcc is found" ON)
# Machine code for Hopper, and PTX for older and newer GPUs.
set(CAPIBARA_CUDA_ARCHITECTURES "90a-real;80-virtual" CACHE STRING "GPUs to compile for, as CMAKE_CUDA_ARCHITECTURES names them")
option(CAPIBARA_CUDA_OPTIMIZED "Optimise the CUDA kernels: five times as long to compile, needed where they run" ON)
file(GLOB_RECURSE CAPIBARA_CUDA_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.h)
if(CAPIBARA_CUDA AND CAPIBARA_CUDA_SOURCES)
  find_program(CAPIBARA_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
  if(CAPIBARA_NVCC)
    set(launcher ${CAPIBARA_CCACHE})  # ccache handles nvcc too, and these files take minutes
    if(NOT CAPIBARA_CCACHE)
      set(launcher "")
    endif()
    set(architectures "")
    foreach(architecture ${CAPIBARA_CUDA_ARCHITECTURES})
      if(NOT architecture MATCHES "^([0-9]+[af]?)-(real|virtual)$")
        message(FATAL_ERROR "CAPIBARA_CUDA_ARCHITECTURES: expected names like 90a-real or 80-virtual, got '${architecture}'")
      endif()
      set(number ${CMAKE_MATCH_1})
      string(REPLACE "virtual" "compute" kind ${CMAKE_MATCH_2})
      string(REPLACE "real" "sm" kind ${kind})
      list(APPEND architectures -gencode arch=compute_${number},code=${kind}_${number})
    endforeach()
    set(optimization -O3)
    if(NOT CAPIBARA_CUDA_OPTIMIZED)
      set(optimization -Xcicc -O1 -Xptxas -O1)
    endif()
    # The runtime is linked statically.
    set(CAPIBARA_CUDA_OBJECTS "")
    foreach(source ${CAPIBARA_CUDA_SOURCES})
      get_filename_component(name ${source} NAME_WE)
      set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
      add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
        COMMAND ${launcher} ${CAPIBARA_NVCC} -std=c++17 ${optimization} -ccbin ${CMAKE_CXX_COMPILER} -Xcompiler -fPIC,-fvisibility=hidden
                --diag-suppress=1427
                ${architectures} -I${PROJECT_SOURCE_DIR}/src -I${CAPIBARA_BATCHES_FOLDER} -c ${source} -o ${object}
        DEPENDS ${source} ${CAPIBARA_CUDA_HEADERS} ${PROJECT_SOURCE_DIR}/src/backends/pjrt/calls/ffi.h
                ${CAPIBARA_BATCHES_FOLDER}/fused_kernels.h
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})  # ccache hashes the working directory
      list(APPEND CAPIBARA_CUDA_OBJECTS ${object})
    endforeach()
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib
      COMMAND ${CAPIBARA_NVCC} -shared -cudart static -ccbin ${CMAKE_CXX_COMPILER} ${CAPIBARA_CUDA_OBJECTS} -o ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so
      DEPENDS ${CAPIBARA_CUDA_OBJECTS})
    add_custom_target(capibara_cuda ALL DEPENDS ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so)
    install(FILES ${CMAKE_BINARY_DIR}/lib/libcapibara_cuda.so DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
    set(speed "")
    if(NOT CAPIBARA_CUDA_OPTIMIZED)
      set(speed ", hardly optimised: only to see that they compile")
    endif()
    message(STATUS "capibara: CUDA kernels for ${CAPIBARA_CUDA_ARCHITECTURES} with ${CAPIBARA_NVCC}${speed}")
  else()
    message(STATUS "capibara: no nvcc: programs on a GPU run without our own kernels")
  endif()
endif()
