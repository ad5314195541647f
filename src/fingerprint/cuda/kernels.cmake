# SPDX-License-Identifier: Apache-2.0
# The fingerprint kernels as PTX text, built in where nvcc is found: sets PLUMB_FINGERPRINT_PTX_SOURCE. The text is lowered
# to what every driver since 11.8 compiles for every device since sm_70; ptxas proves that it may be.
find_program(PLUMB_NVCC nvcc PATHS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin /opt/cuda/bin
  DOC "CUDA compiler, for the fingerprint kernels only; without it PLUMB_CHECK says that device tensors are unsupported")
set(PLUMB_PTX_VERSION 7.8)
set(PLUMB_PTX_TARGET sm_70)
set(PLUMB_FINGERPRINT_PTX_SOURCE "${CMAKE_CURRENT_BINARY_DIR}/fingerprint_ptx.cpp")
set(folder "${CMAKE_CURRENT_SOURCE_DIR}/cuda")

if(PLUMB_NVCC AND NOT DEFINED PLUMB_NVCC_WORKS)
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/try.cu" "#include <cstdint>\nextern \"C\" __global__ void empty() {}\n")
  execute_process(
    COMMAND "${PLUMB_NVCC}" -std=c++17 -ptx -o "${CMAKE_CURRENT_BINARY_DIR}/try.ptx" "${CMAKE_CURRENT_BINARY_DIR}/try.cu"
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(PLUMB_NVCC_WORKS ON CACHE INTERNAL "nvcc compiles")
  else()
    set(PLUMB_NVCC_WORKS OFF CACHE INTERNAL "nvcc compiles")
    message(STATUS "nvcc does not compile here: no fingerprints of device tensors")
  endif()
endif()

if(PLUMB_NVCC AND PLUMB_NVCC_WORKS)
  add_custom_command(
    OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/fingerprint.ptx"
    COMMAND "${PLUMB_NVCC}" -std=c++17 -ptx -I "${PROJECT_SOURCE_DIR}/src"
            -o "${CMAKE_CURRENT_BINARY_DIR}/fingerprint.ptx" "${folder}/fingerprint.cu"
    DEPENDS "${folder}/fingerprint.cu" "${folder}/kernel_body.hpp" "${folder}/kernel_types.hpp"
            "${folder}/row_math.hpp" "${CMAKE_CURRENT_SOURCE_DIR}/definition.hpp"
    COMMENT "Compiling the fingerprint kernels" VERBATIM)
  add_custom_command(
    OUTPUT "${PLUMB_FINGERPRINT_PTX_SOURCE}"
    COMMAND "${CMAKE_COMMAND}" -D "PTX=${CMAKE_CURRENT_BINARY_DIR}/fingerprint.ptx" -D "OUT=${PLUMB_FINGERPRINT_PTX_SOURCE}"
            -D "VERSION=${PLUMB_PTX_VERSION}" -D "TARGET=${PLUMB_PTX_TARGET}" -D "NVCC=${PLUMB_NVCC}"
            -P "${folder}/embed_ptx.cmake"
    DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/fingerprint.ptx" "${folder}/embed_ptx.cmake"
    COMMENT "Building the fingerprint kernels in" VERBATIM)
else()
  file(CONFIGURE OUTPUT "${PLUMB_FINGERPRINT_PTX_SOURCE}" @ONLY CONTENT
"// Generated where nvcc was not found.
#include \"fingerprint/cuda/fingerprint_ptx.hpp\"

namespace plumb::fingerprint {

const char* const fingerprint_ptx = nullptr;

} // namespace plumb::fingerprint
")
endif()
