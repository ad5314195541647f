// SPDX-License-Identifier: Apache-2.0
#include "record/part.hpp"

#include <cstdlib>
#include <memory>

#include "record/bench_session.hpp"
#include "support/board.hpp"

namespace bench {

bool run_part(const Subject& subject, const PartOptions& options, Figures& figures) {
    struct Scratch {
        alignas(64) plumb::detail::Record records[scratch_records];
    };
    const auto first = std::make_unique<Scratch>();
    const auto second = std::make_unique<Scratch>();
    Bench bench{subject, figures, {}, {}};
    bench.rounds = options.rounds;
    bench.scratch[0] = first->records;
    bench.scratch[1] = second->records;
    const bool ok = measure_bursts(bench) && measure_device_scope(bench);
    if (!ok || !options.full) {
        return ok;
    }
    return measure_single_scopes(bench) && measure_body(bench) && measure_busy_drain(bench) &&
           measure_sustained(bench) && measure_bytes(bench);
}

int part_main(int argc, char** argv, const Subject& subject) {
    const Options options =
        parse_options(argc, argv, "One part of bench record.", {{"--rounds", "N   rounds per kind"}});
    PartOptions part;
    part.full = false;
    part.rounds = static_cast<unsigned>(std::atoi(options.value("--rounds", "15").c_str()));
    Figures figures;
    return run_part(subject, part, figures) && (options.json.empty() || write_json(options.json, figures)) ? 0 : 2;
}

} // namespace bench
