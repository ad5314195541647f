# SPDX-License-Identifier: Apache-2.0
# What every target of this project shares: language level, visibility, warnings, sanitizers, where
# binaries go, and the libraries that more than one room uses. Consumers inherit none of it.

include(GNUInstallDirs)
find_package(Threads REQUIRED)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  find_program(PLUMB_CCACHE ccache)
  if(PLUMB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Relative paths and no directory hash: a copy of the tree elsewhere (tools/mutations.py) hits the same cache.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
        "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 "${PLUMB_CCACHE}")
  endif()
endif()

if(PLUMB_BUILD_TESTS)
  enable_testing()
  include(GoogleTest)
  find_package(GTest REQUIRED)
  if(NOT TARGET plumb_tests)
    add_custom_target(plumb_tests COMMENT "All tests are built")
  endif()
endif()

# zstd: its own CMake package where there is one, else pkg-config, under one name.
find_package(zstd CONFIG QUIET)
if(NOT TARGET zstd::libzstd_shared)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(plumb_zstd REQUIRED IMPORTED_TARGET GLOBAL libzstd)
  add_library(zstd::libzstd_shared ALIAS PkgConfig::plumb_zstd)
endif()

# plumb_archive(<name> <library> <otherwise>): plumb::<name> is lib<library>.a for the programs of this build, since a shared library
# costs each start of the command about 0.1 ms. It is the target <otherwise> for libraries, for the archive may be only for programs;
# where there is no archive; and with sanitizers.
include(CheckLinkerFlag)
if(PROJECT_IS_TOP_LEVEL AND NOT PLUMB_SANITIZE AND NOT APPLE)
  check_linker_flag(CXX -static-libstdc++ PLUMB_STATIC_RUNTIME)
endif()
function(plumb_archive name library otherwise)
  if(TARGET plumb_${name}) # several folders use it
    return()
  endif()
  add_library(plumb_${name} INTERFACE)
  add_library(plumb::${name} ALIAS plumb_${name})
  set(linked ${otherwise})
  if(PLUMB_STATIC_RUNTIME)
    string(TOUPPER PLUMB_STATIC_${name} archive)
    find_library(${archive} NAMES lib${library}.a)
    if(${archive})
      set(linked $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,${${archive}},${otherwise}>)
    endif()
  endif()
  target_link_libraries(plumb_${name} INTERFACE "${linked}")
endfunction()
plumb_archive(zstd zstd zstd::libzstd_shared)

# xxhash is compiled in (XXH_INLINE_ALL): header-only for us, nothing to link for anybody.
if(NOT TARGET plumb_xxhash)
  find_path(PLUMB_XXHASH_INCLUDE xxhash.h REQUIRED)
  add_library(plumb_xxhash INTERFACE)
  add_library(plumb::xxhash ALIAS plumb_xxhash)
  target_include_directories(plumb_xxhash SYSTEM INTERFACE "${PLUMB_XXHASH_INCLUDE}")
  target_compile_definitions(plumb_xxhash INTERFACE XXH_INLINE_ALL)
endif()

# Of Highway only the headers: its checks for debug builds would need its library, and so would its own choice of target.
if(NOT TARGET plumb_highway)
  find_path(PLUMB_HIGHWAY_INCLUDE hwy/highway.h REQUIRED)
  add_library(plumb_highway INTERFACE)
  add_library(plumb::highway ALIAS plumb_highway)
  target_include_directories(plumb_highway SYSTEM INTERFACE "${PLUMB_HIGHWAY_INCLUDE}")
  target_compile_definitions(plumb_highway INTERFACE HWY_IS_DEBUG_BUILD=0)
endif()

if(PLUMB_SANITIZE MATCHES "address" AND NOT TARGET plumb_asan_options)
  add_library(plumb_asan_options OBJECT "${PROJECT_SOURCE_DIR}/tests/support/asan_options.cpp")
endif()

# plumb_target(<target>): C++20, hidden symbols, this project's warnings, include/ and src/ on the include path.
# Rooms and their tests get it from plumb_room(); decoder, cli, bench and tests call it for their own targets.
function(plumb_target target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(${target} PRIVATE PLUMB_BUILD_VERSION="${PROJECT_VERSION}")
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
    if(PLUMB_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
    # GCC looks for garbage of its own less often: a tenth less time, a third more memory at the most.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=300>)
  endif()
  if(PLUMB_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${PLUMB_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${PLUMB_SANITIZE})
    get_target_property(type ${target} TYPE)
    if(TARGET plumb_asan_options AND type STREQUAL "EXECUTABLE")
      target_link_libraries(${target} PRIVATE plumb_asan_options)
    endif()
  endif()
endfunction()

# plumb_test(<target>): registers a GoogleTest executable with ctest and with the target plumb_tests.
# Tests are built by plumb_tests only, so that building the product stays short.
# Further arguments go to gtest_discover_tests, for example PROPERTIES LABELS slow.
function(plumb_test target)
  set_target_properties(${target} PROPERTIES
    EXCLUDE_FROM_ALL ON
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  add_dependencies(plumb_tests ${target})
  get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
  if(NOT reused)
    plumb_pch(${target} test)
  endif()
  # PoCL, an OpenCL driver, makes its cache as soon as devices are listed: not in the home of whoever runs the tests.
  set(arguments ${ARGN})
  if(NOT PROPERTIES IN_LIST arguments)
    list(APPEND arguments PROPERTIES)
  endif()
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 120 ${arguments}
                       ENVIRONMENT "POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/pocl_cache")
endfunction()

# plumb_fuzzer(<name> SOURCES … [LIBRARIES …]): a libFuzzer executable build/fuzz/fuzz/<name>, only in the preset fuzz; it may
# include from src/ and links both static libraries. Its committed corpus, if any, is tests/fuzz/corpus/<name>/.
if(PLUMB_FUZZ AND NOT TARGET plumb_fuzzers)
  add_custom_target(plumb_fuzzers COMMENT "All fuzz targets are built")
endif()
function(plumb_fuzzer name)
  if(NOT PLUMB_FUZZ)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 fuzzer "" "" "SOURCES;LIBRARIES")
  add_executable(${name} EXCLUDE_FROM_ALL ${fuzzer_SOURCES})
  plumb_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE plumb::analysis Threads::Threads ${fuzzer_LIBRARIES})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  add_dependencies(plumb_fuzzers ${name})
endfunction()
