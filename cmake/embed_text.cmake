# SPDX-License-Identifier: Apache-2.0
# cmake -D IN= -D OUT= -D HEADER= -D NAMESPACE= -D FUNCTION= -P embed_text.cmake: a file as a function that returns its bytes.
file(READ "${IN}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUT}" "// Made from ${IN}.
#include \"${HEADER}\"
namespace ${NAMESPACE} {
namespace {
const unsigned char text[] = {
${bytes}};
}
std::string_view ${FUNCTION}() { return {reinterpret_cast<const char*>(text), sizeof text}; }
} // namespace ${NAMESPACE}
")
