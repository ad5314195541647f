# SPDX-License-Identifier: Apache-2.0
# libplumb.a and libplumb.so from the objects of all rooms. Inside this build plumb::plumb is the static one.

function(plumb_add_library target type)
  get_property(rooms GLOBAL PROPERTY plumb_rooms)
  set(objects "")
  foreach(room IN LISTS rooms)
    list(APPEND objects $<TARGET_OBJECTS:plumb_${room}>)
  endforeach()
  add_library(${target} ${type} ${objects})
  add_library(plumb::${target} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME plumb
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(${target} INTERFACE cxx_std_17)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE zstd::libzstd_shared Threads::Threads ${CMAKE_DL_LIBS})
  if(PLUMB_SANITIZE)
    target_link_options(${target} PRIVATE -fsanitize=${PLUMB_SANITIZE})
  endif()
endfunction()

function(plumb_add_libraries)
  get_property(rooms GLOBAL PROPERTY plumb_rooms)
  if(NOT rooms)
    message(FATAL_ERROR "no room was found under src/: the checkout is incomplete")
  endif()
  plumb_add_library(plumb_static STATIC)
  plumb_add_library(plumb_shared SHARED)
  # The drain thread may outlive dlclose(): its code must stay mapped.
  target_link_options(plumb_shared PRIVATE -Wl,-z,nodelete -Wl,-z,defs)
  if(PLUMB_SANITIZE MATCHES "." AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # clang leaves the sanitizer's symbols to the executable
    target_link_options(plumb_shared PRIVATE -Wl,-z,undefs)
  endif()
  add_library(plumb::plumb ALIAS plumb_static)
endfunction()
