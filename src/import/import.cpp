// SPDX-License-Identifier: Apache-2.0
#include "import/import.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/natural_order.hpp"
#include "import/formats.hpp"
#include "import/input.hpp"
#include "import/labels.hpp"
#include "import/model_config.hpp"
#include "import/modules.hpp"
#include "import/quality.hpp"
#include "import/steps.hpp"
#include "import/write.hpp"
#include "recording/import_notes.hpp"

namespace plumb::imported {
namespace {

namespace fs = std::filesystem;

struct Files {
    std::vector<std::string> paths;
    std::vector<bool> in_folder; // of each: it was not named itself
};

/// Files of folders in the natural order of their names.
Result<Files> files_of(const std::vector<std::string>& paths) {
    Files files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!fs::exists(path, error)) {
            return Error{ErrorCode::not_found, "cannot read " + path + ": No such file or directory"};
        }
        if (!fs::is_directory(path, error)) {
            files.paths.push_back(path);
            files.in_folder.push_back(false);
            continue;
        }
        std::vector<std::string> inside;
        for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
            if (at->is_regular_file(error)) {
                inside.push_back(at->path().string());
            }
        }
        if (error || inside.empty()) {
            return Error{ErrorCode::not_found, "the folder " + path + " holds no file: name the traces themselves"};
        }
        std::sort(inside.begin(), inside.end(), base::natural_before);
        files.paths.insert(files.paths.end(), inside.begin(), inside.end());
        files.in_folder.resize(files.paths.size(), true);
    }
    return files;
}

/// "run.plumb" and 3: "run-3.plumb".
std::string numbered(const std::string& out, std::size_t number) {
    const fs::path path(out);
    return (path.parent_path() / (path.stem().string() + "-" + std::to_string(number) + path.extension().string()))
        .string();
}

/// The traces of captures, in the order of their files.
Result<std::vector<Trace>> read_captures(const ImportOptions& options) {
    std::vector<Trace> captures;
    InputLimits limits;
    limits.max_size = options.max_size;
    limits.stop = options.stop;
    limits.bytes = options.bytes;
    for (const std::string& file : options.captures) {
        Result<Trace> trace = read_trace(file, limits);
        if (!trace) {
            return trace.error();
        }
        if (!holds_capture(*trace)) {
            return Error{
                ErrorCode::invalid_argument,
                file + " holds no capture of a graph: give --capture the trace that was taken while the graphs were "
                       "captured (cudaStreamBeginCapture to cudaStreamEndCapture)"};
        }
        captures.push_back(*std::move(trace));
    }
    return captures;
}

Error useless_captures(const ImportOptions& options) {
    return {ErrorCode::invalid_argument,
            "no replay of the trace holds the kernels of a capture in " + options.captures.front() +
                (options.captures.size() > 1 ? " or the others" : "") +
                ": give the trace in which this model captured the same graphs, or leave --capture out"};
}

bool may_use(const ImportOptions& options, std::string_view evidence) {
    return options.evidence.empty() ||
           std::find(options.evidence.begin(), options.evidence.end(), evidence) != options.evidence.end();
}

bool is_one_of(const std::string& path, const std::vector<std::string>& files) {
    return std::any_of(files.begin(), files.end(), [&path](const std::string& file) {
        std::error_code error;
        return fs::equivalent(path, file, error);
    });
}

ImportedRun summary_of(const Trace& trace, const EngineSteps& steps, const Labels& labels, const ModuleLabels& modules,
                       const OpTimes& times, std::uint16_t process) {
    ImportedRun run;
    run.tool = trace.facts.tool;
    run.operations = times.operations;
    run.operations_ns = times.ns;
    run.steps = static_cast<std::uint64_t>(std::count_if(
        steps.steps.begin(), steps.steps.end(), [process](const EngineStep& step) { return step.process == process; }));
    run.notes = quality_notes(trace, steps, process);
    run.notes.insert(run.notes.end(), modules.notes.begin(), modules.notes.end());
    const std::vector<std::string> of_labels = label_notes(trace, labels, times, process);
    run.notes.insert(run.notes.end(), of_labels.begin(), of_labels.end());
    return run;
}

} // namespace

Result<std::vector<ImportedRun>> import_traces(const std::vector<std::string>& paths, const ImportOptions& options) {
    const Result<Files> all = files_of(paths);
    if (!all) {
        return all.error();
    }
    const std::vector<std::string>& files = all->paths;
    Result<KernelRules> rules = KernelRules::load(options.rules);
    if (!rules) {
        return rules.error();
    }
    LabelOptions label_options;
    label_options.names = may_use(options, "name");
    label_options.places = may_use(options, "place");
    label_options.layers = options.layers;
    label_options.stop = options.stop;
    ModuleOptions module_options;
    module_options.stacks = may_use(options, "stack");
    module_options.annotations = may_use(options, "annotation");
    const Result<std::vector<Trace>> captures = read_captures(options);
    if (!captures) {
        return captures.error();
    }
    for (const Trace& capture : *captures) {
        if (may_use(options, "capture")) {
            module_options.captures.push_back(&capture);
        }
    }
    if (!options.config.empty()) {
        const Result<std::uint32_t> layers = layers_of_config(options.config);
        if (!layers) {
            return layers.error();
        }
        label_options.layers = *layers;
    }
    std::vector<ImportedRun> made;
    std::size_t number = 0;
    // Recordings that were made before stay.
    const auto failed = [&made](Error error) {
        if (!made.empty()) {
            error.message += "; written before it: " + made.front().recording +
                             (made.size() > 1 ? " to " + made.back().recording : std::string());
        }
        return error;
    };
    std::vector<std::string> skipped;
    std::uint64_t captured = 0; // replays that a capture explains
    for (std::size_t index = 0; index < files.size(); ++index) {
        const std::string& file = files[index];
        InputLimits limits;
        limits.max_size = options.max_size;
        limits.stop = options.stop;
        limits.bytes = options.bytes;
        const Result<Trace> trace = read_trace(file, limits);
        if (!trace && trace.error().code == ErrorCode::unsupported && all->in_folder[index]) {
            skipped.push_back(trace.error().message);
            continue;
        }
        if (!trace) {
            return failed(trace.error());
        }
        if (trace->processes.empty() && !trace->facts.cut && all->in_folder[index]) {
            skipped.push_back(file + " holds no operation of a device");
            continue;
        }
        StepOptions step_options;
        step_options.annotations = may_use(options, "annotation");
        step_options.phase = options.phase;
        step_options.tokens = options.tokens;
        if (label_options.names) {
            step_options.attention = attention_names(*trace, *rules);
        }
        const EngineSteps steps = find_steps(*trace, step_options);
        const ModuleLabels modules = find_modules(*trace, steps, module_options);
        label_options.modules = &modules;
        const Labels labels = label_operations(*trace, steps, *rules, label_options);
        if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) {
            return failed(stopped_error(file));
        }
        captured += modules.captured;
        if (files.size() == 1 && !module_options.captures.empty() && captured == 0) {
            return failed(useless_captures(options));
        }
        for (const std::uint16_t process : trace->processes) {
            const OpTimes times = op_times(*trace, labels, process);
            ImportedRun run = summary_of(*trace, steps, labels, modules, times, process);
            run.trace = file;
            run.recording = files.size() * trace->processes.size() > 1 ? numbered(options.out, number++) : options.out;
            if (is_one_of(run.recording, files) || is_one_of(run.recording, options.captures)) {
                return failed({ErrorCode::invalid_argument,
                               "the output " + run.recording + " is a trace itself; choose another name with -o"});
            }
            WriteOptions to{run.recording, process, {{recording::trace_key, fs::path(file).filename().string()}}};
            for (std::size_t i = 0; i < run.notes.size(); ++i) {
                to.descriptions.emplace_back(recording::import_note_key + std::to_string(i + 1), run.notes[i]);
            }
            for (const auto& [brick, known] : evidence_of_bricks(labels, times)) {
                to.descriptions.emplace_back(recording::known_by_key + brick, known);
            }
            to.stop = options.stop;
            const Status written = write_recording(*trace, steps, labels, to);
            if (!written.ok()) {
                return failed(written.error());
            }
            made.push_back(std::move(run));
        }
        if (trace->processes.empty()) {
            return failed({ErrorCode::corrupt,
                           trace->facts.cut
                               ? file + " is cut, and holds no operation of a device up to there: copy it again"
                               : file + " holds no operation of a device: was the device traced? With Kineto: "
                                        "activities=[CPU, CUDA]; with nsys: --trace=cuda"});
        }
    }
    if (made.empty()) {
        return Error{ErrorCode::not_found, "the folder holds no trace: " + skipped.front() +
                                               (skipped.size() > 1 ? ", and so on" : "") +
                                               "; name the traces themselves"};
    }
    if (!module_options.captures.empty() && captured == 0) {
        return failed(useless_captures(options));
    }
    if (options.skipped != nullptr) {
        *options.skipped = std::move(skipped);
    }
    return made;
}

} // namespace plumb::imported
