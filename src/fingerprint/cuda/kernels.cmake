# SPDX-License-Identifier: Apache-2.0
# The fingerprint kernels as PTX text, built in: sets PLUMB_FINGERPRINT_PTX_SOURCE.
set(folder "${CMAKE_CURRENT_SOURCE_DIR}/cuda")
plumb_embed_ptx(PLUMB_FINGERPRINT_PTX_SOURCE PACKED
  SOURCE "${folder}/fingerprint.cu"
  HEADER fingerprint/cuda/fingerprint_ptx.hpp
  NAMESPACE plumb::fingerprint
  SYMBOL fingerprint_ptx
  DEPENDS "${folder}/kernel_body.hpp" "${folder}/kernel_types.hpp" "${folder}/row_math.hpp"
          "${CMAKE_CURRENT_SOURCE_DIR}/definition.hpp")
