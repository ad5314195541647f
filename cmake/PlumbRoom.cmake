# SPDX-License-Identifier: Apache-2.0
#
# plumb_room(<name>
#   [SMALL]                        # optimised for size: nothing here runs for each record or element
#   SOURCES a.cpp b.cpp            # listed once, relative to the room
#   [SMALL_SOURCES c.cpp …]        # those of which that is true in a room that is not SMALL
#   [THREAD_LOCAL a.cpp …]         # those of both that use thread-local variables, in a room of libplumb-attach (its exports_test finds others)
#   [TESTS a_test.cpp …]           # becomes plumb_<name>_test; test-only helpers (.cpp) go here too
#   [MOCKS virtual_x.cpp …]        # stand-ins its tests need, relative to tests/mocks; tests then see tests/
#   [DEPENDS room …]               # the rooms it includes; whatever those depend on comes along
#   [TEST_DEPENDS room …]          # rooms that only its tests use
#   [LIBRARIES pkg::tgt …]         # what its sources use: zstd::libzstd_shared, plumb::xxhash, …
#   [TEST_LIBRARIES pkg::tgt …])   # what only its tests use: nlohmann_json::nlohmann_json, GTest::gmock, …
#
# A room is an OBJECT library plumb_<name>, and plumb_small_<name> for its small sources; plumb_objects() gives what they made. It
# ends in libplumb, or in libplumb-analysis (PLUMB_ANALYSIS_ROOMS).
# Its tests link the objects of this room and of the rooms it depends on, never the whole library: a call to a room
# further up does not link, and an edit elsewhere does not relink these tests.
#
# Stand-ins and TEST_LIBRARIES of a backend's room go into the conformance suite as well.
#
# Each test carries the room's name as its ctest label.
#
# Both link zstd, threads and dl, nothing else: other LIBRARIES of a room must be header-only, but for PLUMB_COMMAND_ROOMS,
# which are in neither.

function(plumb_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "SMALL" "" "SOURCES;SMALL_SOURCES;THREAD_LOCAL;TESTS;MOCKS;DEPENDS;TEST_DEPENDS;LIBRARIES;TEST_LIBRARIES")
  if(room_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "plumb_room(${name}): unknown arguments: ${room_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT room_SOURCES)
    message(FATAL_ERROR "plumb_room(${name}): SOURCES is empty; a room without sources is not created yet")
  endif()

  set(closure ${name})
  foreach(dependency IN LISTS room_DEPENDS)
    if(NOT TARGET plumb_${dependency})
      message(WARNING "plumb_room(${name}): the room ${dependency} is not there; its tests may not link")
      continue()
    endif()
    get_property(below GLOBAL PROPERTY plumb_closure_${dependency})
    list(APPEND closure ${below})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_property(GLOBAL PROPERTY plumb_closure_${name} ${closure})
  set_property(GLOBAL PROPERTY plumb_libraries_${name} ${room_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY plumb_rooms ${name})
  foreach(dependency IN LISTS room_TEST_DEPENDS)
    get_property(below GLOBAL PROPERTY plumb_closure_${dependency})
    list(APPEND closure ${below})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  list(TRANSFORM room_MOCKS PREPEND "${PROJECT_SOURCE_DIR}/tests/mocks/")
  set_property(GLOBAL PROPERTY plumb_mocks_${name} ${room_MOCKS})
  set_property(GLOBAL PROPERTY plumb_test_libraries_${name} ${room_TEST_LIBRARIES})

  # Where nothing is optimised for size one library is enough.
  if(PLUMB_UNITY STREQUAL "ALL")
    list(APPEND room_SOURCES ${room_SMALL_SOURCES})
    set(room_SMALL_SOURCES "")
  endif()
  set(kind room)
  if(room_SMALL)
    set(kind small_room)
  endif()
  plumb_room_library(plumb_${name} ${kind} ${room_SOURCES})
  if(room_SMALL_SOURCES)
    plumb_room_library(plumb_small_${name} small_room ${room_SMALL_SOURCES})
  endif()
  if(room_THREAD_LOCAL)
    plumb_late_room(${name} ${room_THREAD_LOCAL})
  endif()

  if(PLUMB_BUILD_TESTS AND room_TESTS)
    add_executable(plumb_${name}_test ${room_TESTS} ${room_MOCKS})
    plumb_target(plumb_${name}_test)
    target_include_directories(plumb_${name}_test PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
    plumb_use_rooms(plumb_${name}_test ${closure})
    target_link_libraries(plumb_${name}_test PRIVATE
      GTest::gtest_main Threads::Threads ${CMAKE_DL_LIBS} ${room_TEST_LIBRARIES})
    plumb_pch(plumb_${name}_test room_test)
    plumb_test(plumb_${name}_test PROPERTIES LABELS ${name})
  endif()
endfunction()

# One of the libraries of a room; in plumb_room() alone.
macro(plumb_room_library target kind)
  add_library(${target} OBJECT ${ARGN})
  plumb_target(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PRIVATE Threads::Threads ${room_LIBRARIES})
  plumb_pch(${target} ${kind})
  if(name IN_LIST PLUMB_ANALYSIS_ROOMS OR name IN_LIST PLUMB_COMMAND_ROOMS)
    plumb_unity(${target})
  endif()
  if(NOT name IN_LIST PLUMB_ANALYSIS_ROOMS)
    # libplumb is small: what it does not use of a room is left out of it.
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  endif()
endmacro()

# plumb_objects(<variable> <room> …): the objects of these rooms.
function(plumb_objects out)
  set(objects "")
  foreach(room IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:plumb_${room}>)
    if(TARGET plumb_small_${room})
      list(APPEND objects $<TARGET_OBJECTS:plumb_small_${room}>)
    endif()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# plumb_use_rooms(<target> <room> …): the target takes the objects of these rooms, and what they use.
function(plumb_use_rooms target)
  plumb_objects(objects ${ARGN})
  target_sources(${target} PRIVATE ${objects})
  foreach(room IN LISTS ARGN)
    get_property(libraries GLOBAL PROPERTY plumb_libraries_${room})
    target_link_libraries(${target} PRIVATE ${libraries})
  endforeach()
endfunction()

# plumb_late_room(<name> <source> …): these sources of the room once more, as plumb_late_<name>, for libplumb-attach: a program loads that at
# any time, when there may be no room left for thread-local variables that are found without a call.
function(plumb_late_room name)
  set(late plumb_late_${name})
  add_library(${late} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  plumb_target(${late})
  foreach(property IN ITEMS INCLUDE_DIRECTORIES LINK_LIBRARIES COMPILE_OPTIONS)
    get_target_property(value plumb_${name} ${property})
    set_property(TARGET ${late} PROPERTY ${property} "${value}")
  endforeach()
  set_property(TARGET ${late} PROPERTY DISABLE_PRECOMPILE_HEADERS ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(${late} PRIVATE -mtls-dialect=gnu2) # descriptors, which aarch64 has without being asked
  endif()
  target_compile_definitions(${late} PRIVATE PLUMB_TLS_MODEL=)
  set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON) # so that their objects are told apart by name
  string(REPLACE ";" "|" names "${ARGN}")
  set_property(GLOBAL PROPERTY plumb_late_objects_${name} "/(${names})[.]o$")
endfunction()

# plumb_late_objects(<variable> <room> …): the objects of these rooms, as libplumb-attach takes them.
function(plumb_late_objects out)
  set(objects "")
  foreach(room IN LISTS ARGN)
    plumb_objects(usual ${room})
    if(TARGET plumb_late_${room})
      get_property(late GLOBAL PROPERTY plumb_late_objects_${room})
      list(TRANSFORM usual REPLACE "(.+)" "$<FILTER:\\1,EXCLUDE,${late}>")
      list(APPEND usual $<TARGET_OBJECTS:plumb_late_${room}>)
    endif()
    list(APPEND objects ${usual})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# plumb_backend_registry(<source> <rooms>): for each word of PLUMB_BACKENDS adds the folder src/backends/<word>, which calls
#   plumb_room(backends_<word> SOURCES … TESTS … DEPENDS record)
# and writes the registry. Sets <source> to the generated .cpp and <rooms> to the list backends_<word> …
# src/backends/CMakeLists.txt then reads
#   plumb_backend_registry(registry_source backend_rooms)
#   plumb_room(backends SOURCES ${registry_source} … DEPENDS record ${backend_rooms})
function(plumb_backend_registry out_source out_rooms)
  set(rooms "")
  set(PLUMB_BACKEND_DECLARATIONS "")
  set(PLUMB_BACKEND_ADDRESSES "")
  foreach(backend IN LISTS PLUMB_BACKENDS)
    add_subdirectory("${PROJECT_SOURCE_DIR}/src/backends/${backend}" "backends_${backend}")
    list(APPEND rooms backends_${backend})
    string(APPEND PLUMB_BACKEND_DECLARATIONS "Backend& ${backend}_backend();\n")
    string(APPEND PLUMB_BACKEND_ADDRESSES "      &${backend}_backend(),\n")
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/backend_registry.cpp.in"
                 "${PROJECT_BINARY_DIR}/generated/backend_registry.cpp" @ONLY)
  set(${out_source} "${PROJECT_BINARY_DIR}/generated/backend_registry.cpp" PARENT_SCOPE)
  set(${out_rooms} ${rooms} PARENT_SCOPE)
endfunction()
