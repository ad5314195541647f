# SPDX-License-Identifier: Apache-2.0
#
# Tests on the virtual GPU (tests/mocks/virtual_gpu, docs/internals/virtual_gpu.md).
#
# plumb_with_virtual_gpu(<target> …): the test executables link the stand-in libcuda.so.1, so that dlopen("libcuda.so.1")
#   finds it wherever they are started, and may include "virtual_gpu/control.hpp".
#   plumb_room(… TEST_LIBRARIES plumb::virtual_gpu) is the same for a room's test.
# plumb_add_virtual_gpu_test(NAME <name> COMMAND …): a ctest entry that runs a program which knows nothing of it, with the
#   stand-ins in LD_LIBRARY_PATH, in real time.

function(plumb_with_virtual_gpu)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE plumb::virtual_gpu)
  endforeach()
endfunction()

function(plumb_add_virtual_gpu_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME" "COMMAND")
  add_test(NAME ${test_NAME} COMMAND ${test_COMMAND})
  set_tests_properties(${test_NAME} PROPERTIES
    ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:plumb_virtual_gpu>:$ENV{LD_LIBRARY_PATH}"
    LABELS virtual_gpu)
endfunction()
