// SPDX-License-Identifier: Apache-2.0
#include "truths/kernels.hpp"

namespace gpu_check {
namespace {

// %clock64 beside it: the share of time that the clock rate took can be told apart later.
constexpr const char* spin_text = R"(
.visible .entry NAME(.param .u64 out)
{
    .reg .u64 %out, %begin, %now, %past, %first, %last;
    .reg .pred %more, %none;

    ld.param.u64 %out, [out];
    mov.u64 %first, %clock64;
    mov.u64 %begin, %globaltimer;
WAIT:
    mov.u64 %now, %globaltimer;
    sub.u64 %past, %now, %begin;
    setp.lt.u64 %more, %past, NANOSECONDS;
    @%more bra WAIT;
    mov.u64 %last, %clock64;
    sub.u64 %last, %last, %first;
    setp.eq.u64 %none, %out, 0;
    @%none bra DONE;
    cvta.to.global.u64 %out, %out;
    st.volatile.global.u64 [%out], %begin;
    st.volatile.global.u64 [%out+8], %now;
    st.volatile.global.u64 [%out+16], %last;
DONE:
    ret;
}
)";

std::string replaced(std::string text, const std::string& word, const std::string& by) {
    const std::size_t at = text.find(word);
    return text.replace(at, word.size(), by);
}

} // namespace

std::string spin_name(unsigned microseconds) { return "check_spin_" + std::to_string(microseconds) + "us"; }

const std::string& kernels_ptx() {
    static const std::string text = [] {
        std::string all = fixed_kernels_ptx;
        for (const unsigned us : spin_microseconds) {
            all += replaced(replaced(spin_text, "NAME", spin_name(us)), "NANOSECONDS", std::to_string(us) + "000");
        }
        return all;
    }();
    return text;
}

} // namespace gpu_check
