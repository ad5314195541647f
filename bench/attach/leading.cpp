// SPDX-License-Identifier: Apache-2.0
// The door that only this benchmark has: leads the engine's slots back to the engine's own functions, and to ours again.
#include <array>
#include <vector>

#include "attach/ggml/engine.hpp"
#include "attach/slots.hpp"
#include "plumb/api.hpp"

using namespace plumb::attach;

namespace {

struct Both { // of one slot: where it leads while we are there, and without us
    void* ours = nullptr;
    void* theirs = nullptr;
};

struct Led {
    std::vector<Pinned> libraries = pin_libraries_with(ggml::function_symbols);
    std::vector<std::array<Both, ggml::functions>> slots{libraries.size()};

    Led() {
        for (std::size_t library = 0; library < libraries.size(); ++library) {
            for (std::size_t symbol = 0; symbol < ggml::functions; ++symbol) {
                slots[library][symbol].theirs = find_symbol(libraries[library], ggml::function_symbols[symbol]);
            }
        }
        (void)redirect(libraries, ggml::function_symbols, [this](const Slot& slot) -> void* {
            auto* const leads_to = reinterpret_cast<void*>(slot.leads_to);
            if (is_ours(leads_to)) {
                at(slot).ours = leads_to;
            }
            return nullptr;
        });
    }
    Both& at(const Slot& slot) { return slots[static_cast<std::size_t>(slot.library - libraries.data())][slot.symbol]; }
};

} // namespace

/// How many slots were led. One thread, while the engine computes nothing.
extern "C" PLUMB_API int plumb_bench_lead(bool to_us);
int plumb_bench_lead(bool to_us) {
    static Led led;
    int count = 0;
    (void)redirect(led.libraries, ggml::function_symbols, [&](const Slot& slot) -> void* {
        const Both& both = led.at(slot);
        if (both.ours == nullptr || both.theirs == nullptr) {
            return nullptr;
        }
        ++count;
        return to_us ? both.ours : both.theirs;
    });
    return count;
}
