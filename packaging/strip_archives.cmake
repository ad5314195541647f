# SPDX-License-Identifier: Apache-2.0
# CPack runs this before it packs: archives without what only debuggers read.
file(GLOB_RECURSE archives "${CPACK_TEMPORARY_DIRECTORY}/*.a")
find_program(STRIP strip REQUIRED)
foreach(archive IN LISTS archives)
  execute_process(COMMAND "${STRIP}" --strip-debug --remove-section=.comment --remove-section=.note "${archive}"
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
