# capibara_add_program(<target> <file> [NAME <function>] [TARGETS <target>...] [WEIGHTS <file>]): a program as a C function.
#
# <file> is any input of `capibara compile --object`: a program serialized by jax.export, or StableHLO. It is compiled at
# build time; <target> is a static library that needs only libm, and its users can include the header, <function>.h. NAME is
# the function's name and defaults to the file's name. TARGETS are native (the default), x86-64-v3, x86-64-v4, aarch64;
# several levels of one architecture become one function. WEIGHTS is a file for large constants, to which the function then
# takes a pointer; a relative path is in the build folder. CAPIBARA_COMMAND names another command line to compile with.

function(capibara_add_program target file)
  cmake_parse_arguments(PARSE_ARGV 2 program "" "NAME;WEIGHTS" "TARGETS")
  set(usage "expected capibara_add_program(<target> <file> [NAME <function>] [TARGETS <target>...] [WEIGHTS <file>])")
  if(program_UNPARSED_ARGUMENTS OR program_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "capibara_add_program: ${usage}, got '${ARGV}'")
  endif()
  if(TARGET ${target})
    message(FATAL_ERROR "capibara_add_program: there is a target '${target}' already; ${usage}")
  endif()
  if(NOT program_NAME)
    get_filename_component(program_NAME ${file} NAME_WE)
  endif()
  if(NOT program_NAME MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "capibara_add_program: '${program_NAME}' is no name of a C function; give one as NAME")
  endif()
  if(NOT program_TARGETS)
    if(CMAKE_CROSSCOMPILING)
      message(FATAL_ERROR "capibara_add_program: TARGETS is needed where another machine is compiled for: x86-64-v3, x86-64-v4 or aarch64")
    endif()
    set(program_TARGETS native)
  endif()
  list(JOIN program_TARGETS "," levels)
  if(CAPIBARA_COMMAND)
    set(command ${CAPIBARA_COMMAND})
  elseif(TARGET capibara::command)
    set(command capibara::command)
  else()
    message(FATAL_ERROR "capibara_add_program: this capibara was installed without its command line; set CAPIBARA_COMMAND to one")
  endif()
  get_filename_component(source ${file} ABSOLUTE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.program)
  set(object ${folder}/${program_NAME}.o)
  set(header ${folder}/${program_NAME}.h)
  file(MAKE_DIRECTORY ${folder})
  set(weights "")
  set(weights_arguments "")
  if(program_WEIGHTS)
    get_filename_component(weights ${program_WEIGHTS} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_BINARY_DIR})
    set(weights_arguments --weights ${weights})
  endif()
  add_custom_command(
    OUTPUT ${object} ${header} ${weights}
    COMMAND ${command} compile ${source} --object ${object} --header ${header} --name ${program_NAME} --target ${levels}
            ${weights_arguments}
    DEPENDS ${source} ${command}
    COMMENT "Compiling ${file} for ${levels}" VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(${target} STATIC ${object} ${header})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${target} INTERFACE ${folder})
  target_link_libraries(${target} INTERFACE m)
endfunction()
