# SPDX-License-Identifier: Apache-2.0
# cmake -D IN= -D OUT= -D HEADER= -D NAMESPACE= -D FUNCTION= [-D PACKED=ON] -P embed_text.cmake: a file as a function that returns its
# bytes: as std::string_view or, packed by zstd, as std::string.
cmake_minimum_required(VERSION 3.25)
set(type std::string_view)
set(include "")
set(packed "${IN}")
set(body "return {reinterpret_cast<const char*>(bytes), sizeof bytes};")
if(PACKED)
  set(type std::string)
  set(include "#include <zstd.h>\n\n")
  set(packed "${OUT}.zst")
  file(ARCHIVE_CREATE OUTPUT "${packed}" PATHS "${IN}" FORMAT raw COMPRESSION Zstd COMPRESSION_LEVEL 9)
  file(SIZE "${IN}" size)
  set(body "std::string text(${size}, ' ');
    return ZSTD_decompress(text.data(), text.size(), bytes, sizeof bytes) == text.size() ? text : std::string();")
endif()
file(READ "${packed}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUT}" "// Made from ${IN}.
${include}#include \"${HEADER}\"
namespace ${NAMESPACE} {
namespace {
const unsigned char bytes[] = {
${bytes}};
}
${type} ${FUNCTION}() {
    ${body}
}
} // namespace ${NAMESPACE}
")
