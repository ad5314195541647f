# SPDX-License-Identifier: Apache-2.0
# libplumb, which records, and libplumb-analysis, which reads recordings, from the objects of the rooms: each as .a and .so.
# Inside this build plumb::plumb and plumb::analysis are the static ones.

# plumb_add_library(<target> <type> <output name> <room> …)
function(plumb_add_library target type name)
  plumb_objects(objects ${ARGN})
  add_library(${target} ${type} ${objects})
  add_library(plumb::${target} ALIAS ${target})
  plumb_target(${target})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name}
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(${target} INTERFACE cxx_std_17)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set(zstd zstd::libzstd_shared)
  if(type STREQUAL "STATIC")
    set(zstd $<BUILD_INTERFACE:plumb::zstd> $<INSTALL_INTERFACE:zstd::libzstd_shared>)
  endif()
  target_link_libraries(${target} PRIVATE ${zstd} Threads::Threads ${CMAKE_DL_LIBS})
  if(type STREQUAL "SHARED")
    # The drain thread may outlive dlclose(): its code must stay mapped. What a library does not use of a room stays out.
    target_link_options(${target} PRIVATE -Wl,-z,nodelete -Wl,-z,defs -Wl,--gc-sections)
    if(PLUMB_SANITIZE MATCHES "." AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      # clang leaves the sanitizer's symbols to the executable
      target_link_options(${target} PRIVATE -Wl,-z,undefs)
    endif()
  endif()
endfunction()

function(plumb_add_libraries)
  get_property(rooms GLOBAL PROPERTY plumb_rooms)
  if(NOT rooms)
    message(FATAL_ERROR "no room was found under src/: the checkout is incomplete")
  endif()
  list(REMOVE_ITEM rooms ${PLUMB_ANALYSIS_ROOMS} ${PLUMB_COMMAND_ROOMS} attach)
  plumb_add_library(plumb_static STATIC plumb ${rooms})
  list(REMOVE_ITEM rooms metrics)
  plumb_add_library(plumb_shared SHARED plumb ${rooms})
  plumb_add_library(plumb_metrics_shared SHARED plumb-metrics base recording metrics)
  target_sources(plumb_metrics_shared PRIVATE "${PROJECT_SOURCE_DIR}/src/metrics/exported.cpp")
  target_include_directories(plumb_metrics_shared PRIVATE "${PROJECT_SOURCE_DIR}/src")
  add_dependencies(plumb_shared plumb_metrics_shared) # opened, not linked
  if(TARGET plumb_import_rules) # with the rules comes PCRE2, which nobody who links libplumb should need
    plumb_add_library(plumb_naming_shared SHARED plumb-naming base recording layers import_rules)
    target_sources(plumb_naming_shared PRIVATE "${PROJECT_SOURCE_DIR}/src/import/rules/exported.cpp")
    target_include_directories(plumb_naming_shared PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(plumb_naming_shared PRIVATE plumb::pcre2)
    target_link_options(plumb_naming_shared PRIVATE -Wl,--exclude-libs,ALL)
    add_dependencies(plumb_shared plumb_naming_shared) # opened, not linked
  endif()
  plumb_add_library(plumb_analysis_static STATIC plumb-analysis ${PLUMB_ANALYSIS_ROOMS})
  # What both use and neither shows is in both.
  plumb_add_library(plumb_analysis_shared SHARED plumb-analysis base recording ${PLUMB_ANALYSIS_ROOMS})
  foreach(kind IN ITEMS static shared)
    target_link_libraries(plumb_analysis_${kind} PUBLIC plumb_${kind})
    # libplumb refers to it weakly, for which no linker takes a member out of an archive, or keeps a library.
    target_link_options(plumb_analysis_${kind} INTERFACE "LINKER:-u,plumb_analysis_table")
  endforeach()

  target_sources(plumb_shared PRIVATE
    "${PROJECT_SOURCE_DIR}/src/asking/open_analysis.cpp"
    "${PROJECT_SOURCE_DIR}/src/asking/open_beside.cpp"
    "${PROJECT_SOURCE_DIR}/src/asking/open_naming.cpp"
    "${PROJECT_SOURCE_DIR}/src/metrics/open_metrics.cpp")
  set_property(TARGET plumb_shared APPEND PROPERTY COMPILE_OPTIONS ${PLUMB_SMALL})
  target_include_directories(plumb_shared PRIVATE "${PROJECT_SOURCE_DIR}/src")
  foreach(library IN ITEMS analysis metrics naming)
    string(TOUPPER ${library} word)
    target_compile_definitions(plumb_shared PRIVATE
      PLUMB_${word}_FILE="libplumb-${library}.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  endforeach()

  if(TARGET plumb_attach AND NOT PLUMB_SANITIZE) # a sanitizer must be in a program from its start
    plumb_add_attach_library()
  endif()

  add_library(plumb::plumb ALIAS plumb_static)
  add_library(plumb::analysis ALIAS plumb_analysis_static)
endfunction()

# plumb_attach_module(<target> <version script> [source …]): one file that stands in any process. It exports the names of its doors
# alone, and brings along what the process may have in another version: libstdc++, zstd and pcre2.
function(plumb_attach_module target doors)
  get_property(rooms GLOBAL PROPERTY plumb_rooms)
  list(REMOVE_ITEM rooms ${PLUMB_ANALYSIS_ROOMS} ${PLUMB_COMMAND_ROOMS})
  list(APPEND rooms layers import_rules)
  plumb_late_objects(objects ${rooms})
  add_library(${target} MODULE "${PROJECT_SOURCE_DIR}/src/attach/doors.cpp" ${ARGN} ${objects})
  plumb_target(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS "${doors}")
  target_link_libraries(${target} PRIVATE "${PLUMB_STATIC_ZSTD}" "${PLUMB_STATIC_PCRE2}" Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${target} PRIVATE
    -static-libstdc++ -Wl,--version-script=${doors} -Wl,--exclude-libs,ALL
    -Wl,-z,nodelete -Wl,-z,defs -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now)
endfunction()

function(plumb_add_attach_library)
  find_library(PLUMB_STATIC_ZSTD NAMES libzstd.a)
  find_library(PLUMB_STATIC_PCRE2 NAMES libpcre2-8.a)
  if(NOT PLUMB_STATIC_ZSTD OR NOT PLUMB_STATIC_PCRE2)
    message(STATUS "no libzstd.a or no libpcre2-8.a: libplumb-attach is not built, and `plumb run` says so")
    return()
  endif()
  plumb_attach_module(plumb_attach_library "${PROJECT_SOURCE_DIR}/src/attach/doors.map")
  set_target_properties(plumb_attach_library PROPERTIES OUTPUT_NAME plumb-attach)
  # What the Vulkan loader reads lies beside it, here and where it is installed.
  configure_file("${PROJECT_SOURCE_DIR}/src/attach/vulkan/plumb_attach_layer.json"
    "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/plumb_attach_layer.json" COPYONLY)
  if(TARGET plumb_attach_test)
    add_dependencies(plumb_attach_test plumb_attach_library)
  endif()
endfunction()
