# The MPI module: collectives between processes, opened by the core at first use.

if(CAPIBARA_MPI AND CAPIBARA_MPI_SOURCES)
  # Only the C functions are needed, not Open MPI's C++ bindings.
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    add_library(capibara_mpi MODULE ${CAPIBARA_MPI_SOURCES})
    target_include_directories(capibara_mpi PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(capibara_mpi PRIVATE MPI::MPI_CXX capibara_compile_options)
    target_link_options(capibara_mpi PRIVATE -Wl,--as-needed)
    capibara_hide_symbols(capibara_mpi)
    message(STATUS "capibara: processes over MPI ${MPI_CXX_VERSION} from ${MPI_CXX_LIBRARIES}")
  else()
    message(STATUS "capibara: no MPI found (libopenmpi-dev openmpi-bin): collectives between processes will report it missing")
  endif()
endif()
