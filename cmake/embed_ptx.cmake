# SPDX-License-Identifier: Apache-2.0
# cmake -D PTX= -D OUT= -D VERSION= -D TARGET= -D NVCC= -D FROM= -D HEADER= -D NAMESPACE= -D SYMBOL= -P embed_ptx.cmake: lowers
# a PTX text, has ptxas assemble it where there is one, and writes it as a C++ source that defines SYMBOL.
cmake_minimum_required(VERSION 3.25)
file(READ "${PTX}" text)
string(REGEX REPLACE "\n\\.version [^\n]*" "\n.version ${VERSION}" text "${text}")
string(REGEX REPLACE "\n\\.target [^\n]*" "\n.target ${TARGET}" text "${text}")
string(REGEX REPLACE "//[^\n]*\n" "\n" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")

get_filename_component(folder "${NVCC}" REALPATH)
get_filename_component(folder "${folder}" DIRECTORY)
find_program(PTXAS ptxas HINTS "${folder}")
if(PTXAS)
  file(WRITE "${PTX}.lowered" "${text}")
  execute_process(COMMAND "${PTXAS}" -arch=sm_90 -O1 -o "${PTX}.cubin" "${PTX}.lowered"
    RESULT_VARIABLE result ERROR_VARIABLE why)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The kernels of ${FROM} are no PTX ${VERSION}: ${why}")
  endif()
endif()

file(WRITE "${OUT}" "// Generated from ${FROM}; edit that instead.\n\
#include \"${HEADER}\"\n\n\
namespace ${NAMESPACE} {\n\n\
#pragma GCC diagnostic ignored \"-Woverlength-strings\" // clang's is for portability to the smallest compilers\n\
const char* const ${SYMBOL} = R\"plumb_ptx(${text})plumb_ptx\";\n\n\
} // namespace ${NAMESPACE}\n")
