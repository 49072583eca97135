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

foreach(module capibara_lapack capibara_cpu capibara_pjrt capibara_mpi capibara_http)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
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
  foreach(module capibara_lapack capibara_cpu capibara_pjrt capibara_mpi capibara_http)
    if(TARGET ${module})
      install(TARGETS ${module} LIBRARY DESTINATION capibara COMPONENT python)
    endif()
  endforeach()
endif()
