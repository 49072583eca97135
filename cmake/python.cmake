# The Python extension capibara._core, built with the nanobind of the Python that CMake finds.

if(CAPIBARA_PYTHON AND CAPIBARA_PYTHON_SOURCES)
  if(NOT Python_EXECUTABLE AND NOT SKBUILD AND EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
  endif()
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  if(Python_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                    OUTPUT_VARIABLE CAPIBARA_NANOBIND_FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(CAPIBARA_NANOBIND_FOLDER)
    find_package(nanobind CONFIG QUIET PATHS ${CAPIBARA_NANOBIND_FOLDER} NO_DEFAULT_PATH)
  endif()
  if(nanobind_FOUND)
    nanobind_add_module(capibara_python NB_STATIC NOMINSIZE ${CAPIBARA_PYTHON_SOURCES})
    target_include_directories(capibara_python PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(capibara_python PRIVATE capibara)
    target_compile_options(capibara_python PRIVATE -Wno-missing-field-initializers -ffp-contract=off)
    set_target_properties(capibara_python PROPERTIES
      OUTPUT_NAME _core
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/capibara)
    capibara_hide_symbols(capibara_python)
    capibara_compile_in_batches(capibara_python 20)
    foreach(module capibara_lapack capibara_cpu capibara_pjrt capibara_mpi capibara_http)
      if(TARGET ${module})
        add_dependencies(capibara_python ${module})
      endif()
    endforeach()
    # The modules are symbolic links next to the extension: PYTHONPATH=<build>/python imports the source tree. Links to modules that
    # no longer exist are removed.
    file(GLOB_RECURSE links LIST_DIRECTORIES FALSE ${CMAKE_BINARY_DIR}/python/capibara/* ${CMAKE_BINARY_DIR}/python/jax_plugins/*)
    foreach(link ${links})
      if(IS_SYMLINK ${link} AND NOT EXISTS ${link})
        file(REMOVE ${link})
      endif()
    endforeach()
    foreach(module ${CAPIBARA_PYTHON_MODULES})
      get_filename_component(folder ${CMAKE_BINARY_DIR}/python/${module} DIRECTORY)
      file(MAKE_DIRECTORY ${folder})
      file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/${module} ${CMAKE_BINARY_DIR}/python/${module} SYMBOLIC)
    endforeach()
    # Their bytecode, as in an installed package: where PYTHONDONTWRITEBYTECODE is set or the folder is read-only, each
    # process would otherwise compile all of them again.
    list(TRANSFORM CAPIBARA_PYTHON_MODULES PREPEND ${PROJECT_SOURCE_DIR}/python/ OUTPUT_VARIABLE module_files)
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/python/bytecode
      COMMAND ${Python_EXECUTABLE} -m compileall -q ${CMAKE_BINARY_DIR}/python/capibara
      COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/python/bytecode
      DEPENDS ${module_files})
    add_custom_target(capibara_bytecode DEPENDS ${CMAKE_BINARY_DIR}/python/bytecode)
    add_dependencies(capibara_python capibara_bytecode)
    # The stubs, made from the library's table by the extension: next to it, and in a separate folder for the wheel.
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import numpy, ml_dtypes" RESULT_VARIABLE lacks_numpy OUTPUT_QUIET ERROR_QUIET)
    if(lacks_numpy OR CMAKE_CROSSCOMPILING OR CAPIBARA_SANITIZE)
      message(STATUS "capibara: no type stubs (the build cannot import the extension, or Python has no numpy and ml_dtypes)")
      add_custom_target(capibara_stubs)
    else()
      file(GLOB stub_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/python/*.py ${PROJECT_SOURCE_DIR}/tools/python/stubs/*.pyi)
      add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/python/stubs
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/stubs
        COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${CMAKE_BINARY_DIR}/python JAX_PLATFORMS=cpu ${Python_EXECUTABLE}
                ${PROJECT_SOURCE_DIR}/tools/python/make_stubs.py ${CMAKE_BINARY_DIR}/stubs ${CMAKE_BINARY_DIR}/python/capibara
        COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/python/stubs
        DEPENDS capibara_python capibara ${stub_sources} ${module_files} COMMENT "Writing the type stubs" VERBATIM)
      add_custom_target(capibara_stubs ALL DEPENDS ${CMAKE_BINARY_DIR}/python/stubs)
    endif()
    message(STATUS "capibara: Python extension for ${Python_EXECUTABLE} (${Python_VERSION})")
  else()
    message(STATUS "capibara: no Python extension (needs Python headers and nanobind)")
  endif()
endif()
