# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: what nearly every file of a kind includes, read by the compiler once. They hold headers of the system
# alone, never ours, and hide nothing: the package check builds every room, and the fuzz preset every room and tool, without.
#
# plumb_pch(<target> <kind>): the target's sources start with the headers of that kind: room, small_room, test, or room_test.
# A small_room is optimised for size where a room is optimised at all. A room_test is not optimised, whatever the preset: the
# compiler spends more on the code of a room's test than the test does. What is tested is optimised, but for inline functions;
# those are by what lies in tests/. No test has symbols for a debugger where what ships is built: the preset dev is for that.
#
# One is made for each kind, by an object library with the very flags of its users. A source with flags of its own
# that change what the headers define sets SKIP_PRECOMPILE_HEADERS.
option(PLUMB_PCH "Precompile the standard headers (g++ only)" ${PROJECT_IS_TOP_LEVEL})

set(PLUMB_PCH_room
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint> <cstring> <deque> <functional> <limits> <map>
  <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <vector>)
set(PLUMB_PCH_small_room ${PLUMB_PCH_room})
set(PLUMB_SMALL $<$<CONFIG:Release,RelWithDebInfo>:-Os>)
set(PLUMB_PCH_small_room_OPTIONS ${PLUMB_SMALL})
set(PLUMB_PCH_test ${PLUMB_PCH_room} <filesystem> <fstream> <random> <sstream> <gtest/gtest.h>)
set(PLUMB_PCH_test_LIBRARIES GTest::gtest)
set(PLUMB_PCH_test_OPTIONS $<$<CONFIG:Release>:-g0>)
set(PLUMB_PCH_room_test ${PLUMB_PCH_test})
set(PLUMB_PCH_room_test_LIBRARIES GTest::gtest)
set(PLUMB_PCH_room_test_OPTIONS -O0 ${PLUMB_PCH_test_OPTIONS})

function(plumb_pch target kind)
  target_compile_options(${target} PRIVATE ${PLUMB_PCH_${kind}_OPTIONS})
  if(kind STREQUAL "room")
    plumb_unity(${target} ALL)
  else()
    plumb_unity(${target})
  endif()
  if(NOT PLUMB_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  plumb_precompiled(${kind})
  target_precompile_headers(${target} REUSE_FROM plumb_pch_${kind})
  target_compile_options(${target} PRIVATE ${PLUMB_PCH_REUSED})
endfunction()

# Unity: a target's sources as a few files that include them, since most of what a compiler does for one is its headers. What runs
# while a program records, and is optimised for speed, is compiled source by source where it ships. So is everything in the preset dev,
# where a forgotten include shows.
set(PLUMB_UNITY OFF CACHE STRING "Which sources are compiled several at a time: OFF, MOST or ALL")

# plumb_unity(<target> [ALL]): the target's are; with ALL only where PLUMB_UNITY is that.
function(plumb_unity target)
  if(PLUMB_UNITY STREQUAL "ALL" OR (PLUMB_UNITY STREQUAL "MOST" AND NOT ARGN))
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    # A name at the head of one source is no mistake in the next one.
    target_compile_options(${target} PRIVATE -Wno-shadow -Wno-subobject-linkage)
  endif()
endfunction()

# plumb_unity_by(<room> <words>): of the room's sources only those are compiled together whose paths within their folder begin
# with the same of these words. For rooms whose parts use the same names.
function(plumb_unity_by room)
  foreach(target IN ITEMS plumb_${room} plumb_small_${room})
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    foreach(word IN LISTS ARGN)
      set(group ${sources})
      list(FILTER group INCLUDE REGEX "(^|/)${word}[^/]*(/[^/]*)?$")
      set_property(SOURCE ${group} PROPERTY UNITY_GROUP ${word})
    endforeach()
  endforeach()
endfunction()

# For ccache: its preprocessed text names the precompiled file. And g++ 12 forgets of what comes from a precompiled file that
# it lies in a header of the system, whose warnings are off: these are false alarms in std::string (GCC 105329, 105651).
set(PLUMB_PCH_REUSED -fpch-preprocess -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)

# The library plumb_pch_<kind>, made once.
function(plumb_precompiled kind)
  set(pch plumb_pch_${kind})
  if(TARGET ${pch})
    return()
  endif()
  set(empty "${PROJECT_BINARY_DIR}/generated/${pch}.cpp")
  file(CONFIGURE OUTPUT "${empty}" CONTENT "// Generated: a library needs a source.\n")
  add_library(${pch} OBJECT EXCLUDE_FROM_ALL "${empty}")
  plumb_target(${pch})
  target_link_libraries(${pch} PRIVATE Threads::Threads ${PLUMB_PCH_${kind}_LIBRARIES})
  if(kind MATCHES "test") # -fPIE, as executables are compiled
    set_target_properties(${pch} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${pch} PRIVATE -fPIE)
  endif()
  target_compile_options(${pch} PRIVATE ${PLUMB_PCH_${kind}_OPTIONS})
  target_precompile_headers(${pch} PRIVATE ${PLUMB_PCH_${kind}})
  plumb_pch_checksum(${pch} ${PLUMB_PCH_${kind}})
endfunction()

# What ccache takes for the content of a precompiled header (CCACHE_PCH_EXTSUM): what it was made from. The file itself
# holds absolute paths, so another copy of the tree would never hit.
function(plumb_pch_checksum pch)
  set(content "${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_BUILD_TYPE} ${PLUMB_SANITIZE} ${ARGN}")
  string(APPEND content " ${GTest_VERSION}")
  foreach(header IN LISTS ARGN)
    string(REGEX REPLACE "[<>]" "" name "${header}")
    unset(folder)
    find_path(folder "${name}" PATHS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES} NO_CACHE)
    if(folder)
      file(SHA256 "${folder}/${name}" hash)
      string(APPEND content " ${hash}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${name}")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${pch}.dir/cmake_pch.hxx.gch.sum" CONTENT "${content}\n")
endfunction()
