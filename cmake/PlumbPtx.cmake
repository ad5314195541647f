# SPDX-License-Identifier: Apache-2.0
# plumb_embed_ptx(<out variable> [PACKED] SOURCE <file.cu> HEADER <header> NAMESPACE <namespace> SYMBOL <name> [DEPENDS <files>])
# CUDA kernels as PTX text, built in where nvcc is found: sets the variable to a generated source that defines
#   const char* const <name>
# as the header declares it; null where there is no nvcc. PACKED, by zstd, it is a pointer to a function
# that gives the text as a std::string. The text is lowered to what every driver since 11.8 compiles for
# every device since sm_70; ptxas proves that it may be.
find_program(PLUMB_NVCC nvcc PATHS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin /opt/cuda/bin
  DOC "CUDA compiler, for our few kernels only; without it what they do is said to be unsupported")
set(PLUMB_PTX_VERSION 7.8)
set(PLUMB_PTX_TARGET sm_70)
set(PLUMB_EMBED_PTX "${CMAKE_CURRENT_LIST_DIR}/embed_ptx.cmake")

if(PLUMB_NVCC AND NOT DEFINED PLUMB_NVCC_WORKS)
  file(WRITE "${PROJECT_BINARY_DIR}/generated/try.cu" "#include <cstdint>\nextern \"C\" __global__ void empty() {}\n")
  execute_process(
    COMMAND "${PLUMB_NVCC}" -std=c++17 -ptx -o "${PROJECT_BINARY_DIR}/generated/try.ptx"
            "${PROJECT_BINARY_DIR}/generated/try.cu"
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(PLUMB_NVCC_WORKS ON CACHE INTERNAL "nvcc compiles")
  else()
    set(PLUMB_NVCC_WORKS OFF CACHE INTERNAL "nvcc compiles")
    message(STATUS "nvcc does not compile here: no fingerprints of device tensors, no peaks of CUDA devices")
  endif()
endif()

function(plumb_embed_ptx out_source)
  cmake_parse_arguments(arg "PACKED" "SOURCE;HEADER;NAMESPACE;SYMBOL" "DEPENDS" ${ARGN})
  get_filename_component(name "${arg_SOURCE}" NAME)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/${arg_SYMBOL}.cpp")
  set(${out_source} "${made}" PARENT_SCOPE)
  if(NOT PLUMB_NVCC OR NOT PLUMB_NVCC_WORKS)
    if(arg_PACKED)
      set(definition "std::string (*const ${arg_SYMBOL})() = nullptr;")
    else()
      set(definition "const char* const ${arg_SYMBOL} = nullptr;")
    endif()
    file(CONFIGURE OUTPUT "${made}" @ONLY CONTENT
"// Generated where nvcc was not found.
#include \"@arg_HEADER@\"

namespace @arg_NAMESPACE@ {

@definition@

} // namespace @arg_NAMESPACE@
")
    return()
  endif()
  set(ptx "${CMAKE_CURRENT_BINARY_DIR}/${arg_SYMBOL}.ptx")
  add_custom_command(
    OUTPUT "${ptx}"
    COMMAND "${PLUMB_NVCC}" -std=c++17 -ptx -I "${PROJECT_SOURCE_DIR}/src" -o "${ptx}" "${arg_SOURCE}"
    DEPENDS "${arg_SOURCE}" ${arg_DEPENDS}
    COMMENT "Compiling the kernels of ${name}" VERBATIM)
  add_custom_command(
    OUTPUT "${made}"
    COMMAND "${CMAKE_COMMAND}" -D "PTX=${ptx}" -D "OUT=${made}" -D "VERSION=${PLUMB_PTX_VERSION}"
            -D "TARGET=${PLUMB_PTX_TARGET}" -D "NVCC=${PLUMB_NVCC}" -D "FROM=${name}" -D "HEADER=${arg_HEADER}"
            -D "PACKED=${arg_PACKED}" -D "NAMESPACE=${arg_NAMESPACE}" -D "SYMBOL=${arg_SYMBOL}" -P "${PLUMB_EMBED_PTX}"
    DEPENDS "${ptx}" "${PLUMB_EMBED_PTX}"
    COMMENT "Building the kernels of ${name} in" VERBATIM)
endfunction()
