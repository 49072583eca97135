# The module of HTTP, opened by the core when first needed: libcurl for object stores.

if(CAPIBARA_HTTP)
  find_package(CURL 7.85 QUIET)
  if(CURL_FOUND)
    message(STATUS "capibara: object stores by libcurl ${CURL_VERSION_STRING}")
    add_library(capibara_http MODULE ${CAPIBARA_CURL_SOURCES})
    target_include_directories(capibara_http PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(capibara_http PRIVATE ${CMAKE_DL_LIBS} capibara_compile_options CURL::libcurl)
    capibara_hide_symbols(capibara_http)
  else()
    message(STATUS "capibara: no libcurl found (libcurl4-openssl-dev): gs:// will not be read or written")
  endif()
endif()
