# SPDX-License-Identifier: Apache-2.0
# cmake -D PTX= -D OUT= -D VERSION= -D TARGET= -D NVCC= -D FROM= -D HEADER= -D NAMESPACE= -D SYMBOL= -D PACKED= -P embed_ptx.cmake: lowers
# a PTX text, has ptxas assemble it where there is one, and writes it as a C++ source that defines SYMBOL.
cmake_minimum_required(VERSION 3.25)
file(READ "${PTX}" text)
string(REGEX REPLACE "\n\\.version [^\n]*" "\n.version ${VERSION}" text "${text}")
string(REGEX REPLACE "\n\\.target [^\n]*" "\n.target ${TARGET}" text "${text}")
string(REGEX REPLACE "//[^\n]*\n" "\n" text "${text}")
string(REGEX REPLACE "\n\n+" "\n" text "${text}")

file(WRITE "${PTX}.lowered" "${text}")
get_filename_component(folder "${NVCC}" REALPATH)
get_filename_component(folder "${folder}" DIRECTORY)
find_program(PTXAS ptxas HINTS "${folder}")
if(PTXAS)
  execute_process(COMMAND "${PTXAS}" -arch=sm_90 -O1 -o "${PTX}.cubin" "${PTX}.lowered"
    RESULT_VARIABLE result ERROR_VARIABLE why)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The kernels of ${FROM} are no PTX ${VERSION}: ${why}")
  endif()
endif()

if(PACKED)
  file(SIZE "${PTX}.lowered" size)
  file(ARCHIVE_CREATE OUTPUT "${PTX}.zst" PATHS "${PTX}.lowered" FORMAT raw COMPRESSION Zstd COMPRESSION_LEVEL 9)
  file(READ "${PTX}.zst" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  set(include "#include <zstd.h>\n\n")
  set(definition "static std::string unpack() {\n\
    static const unsigned char packed[] = {\n${bytes}};\n\
    std::string text(${size}, ' ');\n\
    return ZSTD_decompress(text.data(), text.size(), packed, sizeof packed) == text.size() ? text : std::string();\n\
}\n\nstd::string (*const ${SYMBOL})() = unpack;")
else()
  set(include "")
  set(definition "#pragma GCC diagnostic ignored \"-Woverlength-strings\" // clang's is for portability to the smallest compilers\n\
const char* const ${SYMBOL} = R\"plumb_ptx(${text})plumb_ptx\";")
endif()
file(WRITE "${OUT}" "// Generated from ${FROM}; edit that instead.\n\
${include}#include \"${HEADER}\"\n\n\
namespace ${NAMESPACE} {\n\n\
${definition}\n\n\
} // namespace ${NAMESPACE}\n")
