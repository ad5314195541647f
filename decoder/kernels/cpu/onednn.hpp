// SPDX-License-Identifier: Apache-2.0
// oneDNN, opened when a model is: a command that multiplies no matrices starts a millisecond earlier without it, and works
// where it is not installed. Include this in place of dnnl.hpp.
// REQUIRES of every call of it: has_onednn(). Any thread.
#pragma once

#include <oneapi/dnnl/dnnl.h>

namespace plumb::decoder::cpu {

/// Opens it the first time. False: libdnnl is not installed.
[[nodiscard]] bool has_onednn() noexcept;
inline constexpr const char* no_onednn = "oneDNN is not installed here; install it (Debian: libdnnl2) to run models on "
                                         "the processor";

namespace detail {

/// Of oneDNN, or of a library that it uses.
void* onednn_symbol(const char* name) noexcept;

template <auto* Declared>
decltype(Declared) late(const char* name) noexcept {
    static const auto found = reinterpret_cast<decltype(Declared)>(onednn_symbol(name));
    return found;
}

} // namespace detail

} // namespace plumb::decoder::cpu

// What its C++ interface calls of its C interface, for what is used here; of what is not in this list the linker will tell.
#define PLUMB_LATE(name) (*::plumb::decoder::cpu::detail::late<&::name>(#name))
#define dnnl_engine_create PLUMB_LATE(dnnl_engine_create)
#define dnnl_engine_destroy PLUMB_LATE(dnnl_engine_destroy)
#define dnnl_matmul_desc_init PLUMB_LATE(dnnl_matmul_desc_init)
#define dnnl_memory_create PLUMB_LATE(dnnl_memory_create)
#define dnnl_memory_desc_get_size PLUMB_LATE(dnnl_memory_desc_get_size)
#define dnnl_memory_desc_init_by_strides PLUMB_LATE(dnnl_memory_desc_init_by_strides)
#define dnnl_memory_desc_init_by_tag PLUMB_LATE(dnnl_memory_desc_init_by_tag)
#define dnnl_memory_destroy PLUMB_LATE(dnnl_memory_destroy)
#define dnnl_memory_get_data_handle PLUMB_LATE(dnnl_memory_get_data_handle)
#define dnnl_memory_set_data_handle PLUMB_LATE(dnnl_memory_set_data_handle)
#define dnnl_primitive_attr_create PLUMB_LATE(dnnl_primitive_attr_create)
#define dnnl_primitive_attr_destroy PLUMB_LATE(dnnl_primitive_attr_destroy)
#define dnnl_primitive_attr_set_scratchpad_mode PLUMB_LATE(dnnl_primitive_attr_set_scratchpad_mode)
#define dnnl_primitive_create PLUMB_LATE(dnnl_primitive_create)
#define dnnl_primitive_desc_destroy PLUMB_LATE(dnnl_primitive_desc_destroy)
#define dnnl_primitive_desc_iterator_create PLUMB_LATE(dnnl_primitive_desc_iterator_create)
#define dnnl_primitive_desc_iterator_destroy PLUMB_LATE(dnnl_primitive_desc_iterator_destroy)
#define dnnl_primitive_desc_iterator_fetch PLUMB_LATE(dnnl_primitive_desc_iterator_fetch)
#define dnnl_primitive_desc_query_md PLUMB_LATE(dnnl_primitive_desc_query_md)
#define dnnl_primitive_destroy PLUMB_LATE(dnnl_primitive_destroy)
#define dnnl_primitive_execute PLUMB_LATE(dnnl_primitive_execute)
#define dnnl_sgemm PLUMB_LATE(dnnl_sgemm)
#define dnnl_stream_create PLUMB_LATE(dnnl_stream_create)
#define dnnl_stream_destroy PLUMB_LATE(dnnl_stream_destroy)
#define dnnl_stream_wait PLUMB_LATE(dnnl_stream_wait)

#include <dnnl.hpp>
