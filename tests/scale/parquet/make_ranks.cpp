// SPDX-License-Identifier: Apache-2.0
// Recordings of some ranks of a decode that computes nothing, as large as is asked for: PREFIX-0.plumb, PREFIX-1.plumb, …
// usage: plumb_make_ranks PREFIX RANKS SCOPES [SETTINGS]   (so many scopes of each rank; settings as in PLUMB=)
#include <cstdio>
#include <cstdlib>
#include <plumb/plumb.hpp>
#include <string>

namespace {

constexpr int layers = 16;
constexpr long scopes_of_a_layer = 6;

void step(plumb::Profiler& prof, int kv) {
    using plumb::Brick;
    PLUMB_STEP(prof, plumb::host, kv == 0 ? plumb::Phase::prefill : plumb::Phase::decode,
               plumb::tokens(kv == 0 ? 64 : 1), plumb::sequences(1), plumb::kv_length(64 + kv));
    for (int layer = 0; layer < layers; ++layer) {
        PLUMB_LAYER(prof, layer);
        { PLUMB_BRICK(prof, plumb::host, Brick::rms_norm); }
        { PLUMB_BRICK(prof, plumb::host, Brick::qkv_projection, plumb::bytes(1 << 20), plumb::flops(1 << 21)); }
        { PLUMB_BRICK(prof, plumb::host, Brick::attention, plumb::bytes_per_kv(256)); }
        { PLUMB_BRICK(prof, plumb::host, Brick::all_reduce, plumb::bytes(4096)); }
        { PLUMB_BRICK(prof, plumb::host, Brick::down_projection, plumb::bytes(3 << 20), plumb::flops(3 << 21)); }
        { PLUMB_BRICK(prof, plumb::host, Brick::all_reduce, plumb::bytes(4096)); }
    }
    PLUMB_BRICK(prof, plumb::host, Brick::lm_head, plumb::bytes(1 << 24));
}

bool record(const std::string& path, long scopes, const std::string& settings) {
    plumb::Result<plumb::Config> config = plumb::Config::parse("on,out=" + path + settings);
    if (!config) {
        std::fprintf(stderr, "%s\n", config.error().message.c_str());
        return false;
    }
    plumb::Profiler prof(*config);
    long recorded = 0;
    for (int kv = 0; recorded < scopes; ++kv) {
        step(prof, kv % 2048);
        recorded += layers * scopes_of_a_layer + 1;
        if (kv % 100 == 0 && !prof.flush(60)) { // the drain keeps up, so nothing is dropped
            return false;
        }
    }
    return prof.close().ok();
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: plumb_make_ranks PREFIX RANKS SCOPES [SETTINGS]\n");
        return 2;
    }
    const std::string settings = argc > 4 ? std::string(",") + argv[4] : "";
    for (int rank = 0; rank < std::atoi(argv[2]); ++rank) {
        setenv("RANK", std::to_string(rank).c_str(), 1);
        if (!record(std::string(argv[1]) + "-" + std::to_string(rank) + ".plumb", std::atol(argv[3]), settings)) {
            return 1;
        }
    }
    return 0;
}
