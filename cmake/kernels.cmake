# Lists the fused kernels from the files that exist, so a new one needs no edit of a list: src/kernels/NAME.cpp defines it,
# src/backends/cpu/kernels/SUBJECT/NAME.cpp and src/backends/cuda/SUBJECT/NAME.cu are a backend's code for it.

file(GLOB CAPIBARA_KERNEL_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/*.cpp)
file(GLOB_RECURSE CAPIBARA_CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*.cu)
set(CAPIBARA_KERNELS "")
set(CAPIBARA_CPU_KERNELS "")
set(CAPIBARA_CUDA_KERNELS "")
set(CAPIBARA_CPU_KERNEL_FILES "")
set(CAPIBARA_CUDA_CLAIMS "")
foreach(file ${CAPIBARA_KERNEL_FILES})
  get_filename_component(name ${file} NAME_WE)
  if(name STREQUAL "family" OR name STREQUAL "composed")
    continue()
  endif()
  string(APPEND CAPIBARA_KERNELS " each(${name})")
  file(GLOB native CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/*/${name}.cpp)
  if(native)
    string(APPEND CAPIBARA_CPU_KERNELS " each(${name})")
    # NAME_loops.cpp has the inner loops of a long one.
    file(GLOB loops CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/*/${name}_loops.cpp)
    list(APPEND CAPIBARA_CPU_KERNEL_FILES ${native} ${loops})
  endif()
  file(GLOB claims CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/cuda/*/${name}.cu)
  if(claims)
    string(APPEND CAPIBARA_CUDA_KERNELS " each(${name})")
    list(APPEND CAPIBARA_CUDA_CLAIMS ${claims})
  endif()
endforeach()
# Next to the batches, so that all build folders of a tree use the same file and ccache serves one from another.
configure_file(${PROJECT_SOURCE_DIR}/cmake/fused_kernels.h.in ${CAPIBARA_BATCHES_FOLDER}/fused_kernels.h @ONLY)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/family.cpp ${PROJECT_SOURCE_DIR}/src/backends/cpu/kernels/fused.cpp
                            ${PROJECT_SOURCE_DIR}/src/backends/pjrt/calls/cuda_kernels.cpp
                            PROPERTIES INCLUDE_DIRECTORIES ${CAPIBARA_BATCHES_FOLDER})

# Each file has a `compose` of its own. As in generated code, a multiplication and an addition may be fused.
set_source_files_properties(${CAPIBARA_KERNEL_FILES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set_source_files_properties(${CAPIBARA_KERNEL_FILES} PROPERTIES COMPILE_OPTIONS -O1)  # they trace programs, like the rooms with -O1
endif()
set_source_files_properties(${CAPIBARA_CPU_KERNEL_FILES} PROPERTIES
                            COMPILE_OPTIONS "${CAPIBARA_LOOP_OPTIMIZATION};-ffp-contract=fast" SKIP_UNITY_BUILD_INCLUSION ON)

# Without nvcc a file of the CUDA backend is plain C++: it says which equations its kernel takes. That half is in the library.
set_source_files_properties(${CAPIBARA_CUDA_CLAIMS} PROPERTIES LANGUAGE CXX SKIP_UNITY_BUILD_INCLUSION ON)
list(REMOVE_ITEM CAPIBARA_KERNEL_SOURCES ${CAPIBARA_CPU_KERNEL_FILES})
list(APPEND CAPIBARA_PLUGIN_SOURCES ${CAPIBARA_CPU_KERNEL_FILES} ${CAPIBARA_CUDA_CLAIMS})

# The kernels of the demo (cmake/demo.cmake) are a part of their own, so that it is built without the others.
list(JOIN CAPIBARA_DEMO_KERNELS "|" demo_kernels)
set(CAPIBARA_FUSED_SOURCES ${CAPIBARA_PLUGIN_SOURCES})
list(FILTER CAPIBARA_FUSED_SOURCES INCLUDE REGEX
     "/src/kernels/((attention|recurrence)/|(composed|${demo_kernels})[.]cpp)|/cpu/kernels/[a-z]+/(${demo_kernels})(_loops)?[.]cpp")
list(REMOVE_ITEM CAPIBARA_PLUGIN_SOURCES ${CAPIBARA_FUSED_SOURCES})
# Writes the list of these kernels, and a source that compiles the two readers of the list again for the demo.
function(capibara_list_demo_kernels folder)
  set(CAPIBARA_KERNELS "")
  set(CAPIBARA_CPU_KERNELS "")
  set(CAPIBARA_CUDA_KERNELS "")
  foreach(name ${CAPIBARA_DEMO_KERNELS})
    string(APPEND CAPIBARA_KERNELS " each(${name})")
    if("${CAPIBARA_CPU_KERNEL_FILES}" MATCHES "/${name}[.]cpp")
      string(APPEND CAPIBARA_CPU_KERNELS " each(${name})")
    endif()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/fused_kernels.h.in ${folder}/fused_kernels.h @ONLY)
  file(CONFIGURE OUTPUT ${folder}/demo_kernels.cpp CONTENT
       "// The fused kernels of the demo.\n#include \"kernels/family.cpp\"\n#include \"backends/cpu/kernels/fused.cpp\"\n")
endfunction()
capibara_list_demo_kernels(${CAPIBARA_BATCHES_FOLDER}/demo)
