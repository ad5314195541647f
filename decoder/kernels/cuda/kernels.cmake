# SPDX-License-Identifier: Apache-2.0
# The decoder's CUDA kernels, built in where nvcc is found (cmake/PlumbPtx.cmake looks for it): machine code for sm_80, sm_90 and
# sm_100, and PTX for what comes later, compressed. Sets PLUMB_DECODER_CUDA_IMAGE, a source that defines kernels_image().
set(PLUMB_DECODER_CUDA_IMAGE "${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels_image.cpp")
set(fatbin "${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels.fatbin")
set(folder "${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda")
if(PLUMB_NVCC AND PLUMB_NVCC_WORKS)
  add_custom_command(
    OUTPUT "${fatbin}"
    COMMAND "${PLUMB_NVCC}" -std=c++17 --expt-relaxed-constexpr -fatbin -compress-mode=size -I "${PROJECT_SOURCE_DIR}"
            -gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90,code=sm_90
            -gencode arch=compute_100,code=sm_100 -o "${fatbin}" "${folder}/kernels.cu"
    DEPENDS "${folder}/kernels.cu" "${folder}/kernels.hpp" "${folder}/best_kernels.hpp" "${folder}/fill.hpp" "${folder}/split_kernels.hpp"
            "${folder}/packed.hpp" "${folder}/arguments.hpp"
            "${CMAKE_CURRENT_SOURCE_DIR}/kernels/type.hpp" "${CMAKE_CURRENT_SOURCE_DIR}/sampling/random.hpp"
    COMMENT "Compiling the decoder's CUDA kernels" VERBATIM)
  add_custom_command(
    OUTPUT "${PLUMB_DECODER_CUDA_IMAGE}"
    COMMAND "${CMAKE_COMMAND}" -D "IN=${fatbin}" -D "OUT=${PLUMB_DECODER_CUDA_IMAGE}"
            -D HEADER=decoder/kernels/cuda/device.hpp -D NAMESPACE=plumb::decoder::cuda -D FUNCTION=kernels_image
            -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    DEPENDS "${fatbin}" "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
    COMMENT "Building the decoder's CUDA kernels in" VERBATIM)
else()
  file(CONFIGURE OUTPUT "${PLUMB_DECODER_CUDA_IMAGE}" @ONLY CONTENT
"// Generated where nvcc was not found.
#include \"decoder/kernels/cuda/device.hpp\"

std::string_view plumb::decoder::cuda::kernels_image() { return {}; }
")
endif()
