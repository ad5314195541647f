// SPDX-License-Identifier: Apache-2.0
#include "import/modules.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace plumb::imported {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::string_view module_prefix = "nn.Module: ";
/// No model nests so many. Time and memory of each call are bounded by it, also where modules never end.
constexpr std::size_t deepest_path = 256; // of frames, and of their words

/// "model.layers.3.mlp", also behind "ffn::" and in "{'Module': 'model.layers.3.mlp', …": its words. Empty where it names no layer:
/// then it may be anything.
Words words_of_path(std::string_view text) {
    constexpr std::string_view marker = "'Module': '";
    if (const std::size_t at = text.find(marker); at != text.npos) {
        text.remove_prefix(at + marker.size());
        text = text.substr(0, text.find('\''));
    }
    if (const std::size_t at = text.rfind("::"); at != text.npos) {
        text.remove_prefix(at + 2);
    }
    const bool is_path = std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    });
    Words words;
    while (is_path && !text.empty()) {
        const std::size_t end = std::min(text.find('.'), text.size());
        words.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return layer_of_modules(words) ? words : Words();
}

/// One module that is open on a thread.
struct ModuleFrame {
    std::int64_t end_ns;
    const Words* words; // of a path of names all of them, of a class one
    LabelEvidence evidence;
};

/// Goes through what the host did, with the modules that are open at each call.
class HostWalk {
  public:
    HostWalk(const Trace& trace, bool stacks, bool annotations)
        : trace_(trace), stacks_(stacks), annotations_(annotations) {}

    /// of_call(index in Trace::host, the modules from the outermost to the innermost).
    template <class OfCall>
    void calls(OfCall of_call) {
        std::map<std::uint32_t, std::vector<ModuleFrame>> open; // by thread
        for (std::uint32_t i = 0; i < trace_.host.size(); ++i) {
            const HostOp& op = trace_.host[i];
            const bool call = op.kind == HostOpKind::api;
            const Words* words = call ? nullptr : words_of(op);
            if (!call && words == nullptr) {
                continue;
            }
            std::vector<ModuleFrame>& frames = open[op.thread];
            std::erase_if(frames, [&op](const ModuleFrame& frame) { return frame.end_ns < op.start_ns; });
            if (call) {
                of_call(i, frames);
            } else if (frames.size() < deepest_path) {
                frames.push_back({op.end_ns, words,
                                  op.kind == HostOpKind::module ? LabelEvidence::stack : LabelEvidence::annotation});
            }
        }
    }

  private:
    const Words* words_of(const HostOp& op) {
        if ((op.kind == HostOpKind::module && !stacks_) || (op.kind == HostOpKind::annotation && !annotations_) ||
            op.kind == HostOpKind::profiler_step) {
            return nullptr;
        }
        const auto [found, is_new] = words_.try_emplace({op.name, op.kind});
        if (is_new) {
            const std::string_view name = trace_.names[op.name];
            found->second = op.kind == HostOpKind::annotation ? words_of_path(name)
                            : name.starts_with(module_prefix) ? Words{name.substr(module_prefix.size())}
                                                              : Words();
        }
        return found->second.empty() ? nullptr : &found->second;
    }

    const Trace& trace_;
    bool stacks_, annotations_;
    std::map<std::pair<std::uint32_t, HostOpKind>, Words> words_; // by name
};

bool begins_capture(std::string_view call) { return call.find("StreamBeginCapture") != call.npos; }

/// What was launched into one graph while it was captured.
struct CaptureOfGraph {
    struct Launch {
        std::string_view name; // of the kernel; empty: the trace does not say
        std::uint32_t label;
    };
    std::vector<Launch> launches;
};

class ModuleFinder {
  public:
    ModuleFinder(const Trace& trace, const EngineSteps& steps, const ModuleOptions& options)
        : trace_(trace), steps_(steps), options_(options) {
        made_.labels.emplace_back();
        made_.of_op.assign(trace.ops.size(), 0);
        made_.evidence_of.assign(trace.ops.size(), LabelEvidence::none);
    }

    ModuleLabels find() {
        if (!options_.captures.empty()) {
            read_captures();
        }
        read_host();
        read_kernels();
        return std::move(made_);
    }

  private:
    std::uint32_t label_of(const std::vector<ModuleFrame>& frames) {
        Words path;
        for (const ModuleFrame& frame : frames) {
            const std::size_t room = std::min(deepest_path - path.size(), frame.words->size());
            path.insert(path.end(), frame.words->begin(), frame.words->begin() + static_cast<std::ptrdiff_t>(room));
        }
        return label_of(path);
    }

    std::uint32_t label_of(const Words& path) {
        if (path.empty()) {
            return 0;
        }
        const auto [found, is_new] = known_.try_emplace(path, static_cast<std::uint32_t>(made_.labels.size()));
        if (is_new) {
            ModuleLabel label;
            label.rule = module_rule(path);
            if (const auto layer = layer_of_modules(path)) {
                label.layer = layer_number(*layer);
            }
            made_.labels.push_back(label);
        }
        return found->second;
    }

    std::uint32_t layer_number(const LayerOfModel& layer) {
        const auto [found, is_new] =
            layers_.try_emplace({layer.kind, layer.number}, static_cast<std::uint32_t>(made_.layers.size()));
        if (is_new) {
            made_.layers.push_back({std::string(layer.kind), layer.number});
        }
        return found->second;
    }

    void say(std::uint32_t op, std::uint32_t label, LabelEvidence evidence) {
        if (label != 0 && evidence > made_.evidence_of[op]) {
            made_.of_op[op] = label;
            made_.evidence_of[op] = evidence;
        }
    }

    void read_host() {
        std::vector<std::pair<std::uint32_t, LabelEvidence>> of_call(trace_.host.size());
        HostWalk walk(trace_, options_.stacks, options_.annotations);
        walk.calls([&](std::uint32_t call, const std::vector<ModuleFrame>& frames) {
            if (!frames.empty()) {
                of_call[call] = {label_of(frames), frames.back().evidence};
            }
        });
        if (made_.labels.size() == 1) {
            return; // no module was open at any call
        }
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            const std::uint32_t call = trace_.launch_of[i];
            // The module that launches a graph says nothing of its nodes.
            if (call != Trace::no_launch && steps_.replay_of[i] == no_replay) {
                say(i, of_call[call].first, of_call[call].second);
            }
        }
    }

    /// Labels that the program put on nodes of its graphs.
    void read_kernels() {
        std::map<std::uint32_t, std::uint32_t> labels; // by name
        for (std::uint32_t i = 0; options_.annotations && i < trace_.ops.size(); ++i) {
            const std::uint32_t module = trace_.ops[i].module;
            if (module == no_name) {
                continue;
            }
            const auto [found, is_new] = labels.try_emplace(module, 0);
            if (is_new) {
                found->second = label_of(words_of_path(trace_.names[module]));
            }
            say(i, found->second, LabelEvidence::annotation);
        }
    }

    void read_captures() {
        std::vector<CaptureOfGraph> captures;
        for (const Trace* trace : options_.captures) {
            read_capture(*trace, captures);
        }
        std::size_t matched = 0;
        bool named = true;
        for (const Replay& replay : steps_.replays) {
            std::vector<std::uint32_t> kernels;
            for (const std::uint32_t op : replay.ops) {
                if (trace_.ops[op].kind == DeviceOpKind::kernel) {
                    kernels.push_back(op);
                }
            }
            const CaptureOfGraph* found = only_match(captures, kernels);
            if (found == nullptr) {
                continue;
            }
            ++matched;
            for (std::size_t i = 0; i < kernels.size(); ++i) {
                named = named && !found->launches[i].name.empty();
                say(kernels[i], found->launches[i].label, LabelEvidence::capture);
            }
        }
        made_.captured = matched;
        made_.notes.push_back(std::to_string(captures.size()) +
                              (captures.size() == 1 ? " capture was" : " captures were") +
                              " read: " + std::to_string(matched) + " of " + std::to_string(steps_.replays.size()) +
                              " replays hold their kernels" + (named ? "" : ", by their number alone"));
    }

    void read_capture(const Trace& trace, std::vector<CaptureOfGraph>& to) {
        std::map<std::uint32_t, CaptureOfGraph> open; // by thread
        HostWalk walk(trace, true, true);
        walk.calls([&](std::uint32_t call, const std::vector<ModuleFrame>& frames) {
            const HostOp& op = trace.host[call];
            const std::string_view name = trace.names[op.name];
            if (begins_capture(name)) {
                open[op.thread] = {};
            } else if (name.find("StreamEndCapture") != name.npos) {
                if (const auto found = open.find(op.thread); found != open.end()) {
                    to.push_back(std::move(found->second));
                    open.erase(found);
                }
            } else if (name.find("LaunchKernel") != name.npos) {
                if (const auto found = open.find(op.thread); found != open.end()) {
                    const std::string_view kernel =
                        op.target == no_name ? std::string_view() : std::string_view(trace.names[op.target]);
                    found->second.launches.push_back({kernel, label_of(frames)});
                }
            }
        });
    }

    /// Where several captures could be it, none is.
    [[nodiscard]] const CaptureOfGraph* only_match(const std::vector<CaptureOfGraph>& captures,
                                                   const std::vector<std::uint32_t>& kernels) const {
        const CaptureOfGraph* found = nullptr;
        for (const CaptureOfGraph& capture : captures) {
            if (capture.launches.size() != kernels.size() || kernels.empty()) {
                continue;
            }
            bool same = true;
            for (std::size_t i = 0; i < kernels.size() && same; ++i) {
                const std::string_view name = capture.launches[i].name;
                same = name.empty() || name == trace_.names[trace_.ops[kernels[i]].name];
            }
            if (same && found != nullptr) {
                return nullptr;
            }
            found = same ? &capture : found;
        }
        return found;
    }

    const Trace& trace_;
    const EngineSteps& steps_;
    const ModuleOptions& options_;
    std::map<Words, std::uint32_t> known_; // words live in the traces
    std::map<std::pair<std::string_view, std::uint32_t>, std::uint32_t> layers_;
    ModuleLabels made_;
};

} // namespace

bool holds_capture(const Trace& trace) {
    return std::any_of(trace.host.begin(), trace.host.end(), [&trace](const HostOp& op) {
        return op.kind == HostOpKind::api && begins_capture(trace.names[op.name]);
    });
}

ModuleLabels find_modules(const Trace& trace, const EngineSteps& steps, const ModuleOptions& options) {
    return ModuleFinder(trace, steps, options).find();
}

} // namespace plumb::imported
