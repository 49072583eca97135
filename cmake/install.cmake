# Install rules and the package that find_package(capibara) reads.

include(CMakePackageConfigHelpers)
set(CAPIBARA_PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/capibara)

install(TARGETS capibara EXPORT capibara_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/capibara DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT capibara_targets NAMESPACE capibara:: DESTINATION ${CAPIBARA_PACKAGE_FOLDER})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/capibara-config.cmake.in
  ${CMAKE_BINARY_DIR}/generated/capibara-config.cmake INSTALL_DESTINATION ${CAPIBARA_PACKAGE_FOLDER})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/capibara-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/capibara-config.cmake
              ${CMAKE_BINARY_DIR}/generated/capibara-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/capibara_add_program.cmake
        DESTINATION ${CAPIBARA_PACKAGE_FOLDER})

# For projects without CMake: pkg-config --cflags --libs capibara.
file(RELATIVE_PATH CAPIBARA_PREFIX_OF_PKGCONFIG "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file(${PROJECT_SOURCE_DIR}/cmake/capibara.pc.in ${CMAKE_BINARY_DIR}/generated/capibara.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/capibara.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/examples/data/pride_and_prejudice.txt  # of the demo
        DESTINATION ${CMAKE_INSTALL_DATADIR}/capibara)
# tools/packages/archives.py makes these of what the program prints, and of CHANGELOG.md.
set(CAPIBARA_PAGES ${CMAKE_BINARY_DIR}/generated/pages)
install(FILES ${CAPIBARA_PAGES}/capibara.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
install(FILES ${CAPIBARA_PAGES}/completion RENAME capibara DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
install(FILES ${CAPIBARA_PAGES}/copyright ${CAPIBARA_PAGES}/changelog.gz ${CAPIBARA_PAGES}/CHANGELOG.md.gz
        ${CAPIBARA_PAGES}/capibara.cdx.json
        DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)

foreach(module capibara_lapack capibara_cpu capibara_pjrt capibara_mpi capibara_http)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CAPIBARA_MODULE_FOLDER})
  endif()
endforeach()
if(TARGET capibara_command)
  set_target_properties(capibara_command PROPERTIES EXPORT_NAME command)  # for capibara_add_program
  install(TARGETS capibara_command EXPORT capibara_targets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET capibara_python AND SKBUILD)
  # The package includes its modules: they are found next to the extension.
  set_target_properties(capibara_python PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS capibara_python LIBRARY DESTINATION capibara COMPONENT python)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/stubs/ DESTINATION capibara COMPONENT python OPTIONAL)
  install(FILES ${PROJECT_SOURCE_DIR}/examples/data/pride_and_prejudice.txt DESTINATION capibara/data COMPONENT python)
  foreach(module capibara_lapack capibara_cpu capibara_pjrt capibara_mpi capibara_http)
    if(TARGET ${module})
      install(TARGETS ${module} LIBRARY DESTINATION capibara COMPONENT python)
    endif()
  endforeach()
endif()

# cpack -G DEB and -G TGZ, which tools/packages/archives.py calls.
set(CPACK_PACKAGE_NAME capibara)
set(CPACK_PACKAGE_CONTACT "The authors of capibara <capibara@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "JAX's programming model as a C++20 library, with a command line")
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Arrays, automatic differentiation, batching, compilation to machine code and
sharding for programs in C++: a library with its headers, CMake and
pkg-config files, and the program capibara, which trains language models,
runs and compiles StableHLO, and shows what a machine has.")
# Modules are opened at first use: what they need of the system is recommended, and said where it is missing.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libstdc++6 (>= 12), libgcc-s1, libzstd1, zlib1g")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas0-pthread | libopenblas0")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcurl4, libopenmpi3, openmpi-bin, g++, cmake, pkgconf")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${CMAKE_BINARY_DIR}/generated/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/generated/triggers)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
include(CPack)
