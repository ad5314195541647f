// SPDX-License-Identifier: Apache-2.0
#include "import/device_parts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace plumb::imported {
namespace {

constexpr double most_beside =
    0.1; // of the kernels: with more of them beside those of another device, devices take no turns
constexpr std::size_t least_part =
    2; // a device with less than one in so many of the kernels of the busiest one helps it

struct DevicePart {
    std::vector<std::uint32_t> ops;
    std::size_t kernels = 0, attentions = 0;
    bool embeds = false, samples = false;
};

/// Whether kernels of several devices run at the same time. Those of one device alone do not count.
bool run_beside(const Trace& trace, const std::vector<std::uint32_t>& ops) {
    std::map<std::uint32_t, std::size_t> last; // of each device, the kernel that ends last: position in ops
    std::vector<bool> beside(ops.size(), false);
    std::size_t kernels = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const DeviceOp& op = trace.ops[ops[i]];
        if (op.kind != DeviceOpKind::kernel) {
            continue;
        }
        ++kernels;
        const std::uint32_t device = trace.streams[op.stream].device;
        for (const auto& [other, at] : last) {
            if (other != device && trace.ops[ops[at]].end_ns > op.start_ns) {
                beside[at] = beside[i] = true;
            }
        }
        const auto [own, is_new] = last.try_emplace(device, i);
        if (!is_new && trace.ops[ops[own->second]].end_ns <= op.end_ns) {
            own->second = i;
        }
    }
    return static_cast<double>(std::count(beside.begin(), beside.end(), true)) >
           most_beside * static_cast<double>(kernels);
}

/// Whether several devices do what makes up a pass.
bool are_alike(const std::map<std::uint32_t, DevicePart>& parts) {
    std::size_t most = 0, attending = 0;
    for (const auto& [device, part] : parts) {
        most = std::max(most, part.kernels);
        attending += part.attentions > 0 ? 1 : 0;
    }
    const auto busy = std::count_if(parts.begin(), parts.end(), [most](const auto& part) {
        return part.second.kernels > 0 && least_part * part.second.kernels >= most;
    });
    return attending == 0 ? busy > 1 : attending > 1;
}

bool are_spread(const std::map<std::uint32_t, DevicePart>& parts) {
    bool embeds = false, samples = false, both = false;
    for (const auto& [device, part] : parts) {
        embeds = embeds || part.embeds;
        samples = samples || part.samples;
        both = both || (part.embeds && part.samples);
    }
    return embeds && samples && !both;
}

void add_doubt(LabelledPass& pass, std::string doubt) {
    pass.certain = false;
    if (std::find(pass.doubts.begin(), pass.doubts.end(), doubt) == pass.doubts.end()) {
        pass.doubts.push_back(std::move(doubt));
    }
}

/// "12, 13": each number once.
std::string all_of(const std::set<std::size_t>& numbers) {
    std::string text;
    for (const std::size_t number : numbers) {
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    }
    return text;
}

/// One pass of each device that has it.
LabelledPass agreed_pass(const std::vector<const LabelledPass*>& passes) {
    std::map<std::uint32_t, std::size_t> counts;
    std::set<std::size_t> numbers;
    for (const LabelledPass* pass : passes) {
        ++counts[pass->layers];
        numbers.insert(pass->layers);
    }
    const std::uint32_t layers = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                                     return a.second < b.second;
                                 })->first;
    LabelledPass made = **std::find_if(passes.begin(), passes.end(),
                                       [layers](const LabelledPass* pass) { return pass->layers == layers; });
    for (const LabelledPass* pass : passes) {
        made.certain = made.certain && pass->certain;
        for (const std::string& doubt : pass->doubts) {
            add_doubt(made, doubt);
        }
    }
    if (numbers.size() > 1) {
        add_doubt(made, "the devices of the step tell of different layers: " + all_of(numbers));
    }
    return made;
}

} // namespace

DeviceParts device_parts(const Trace& trace, std::vector<std::uint32_t> ops,
                         const std::function<Anchor(std::uint32_t)>& anchor_of) {
    const auto device_of = [&trace](std::uint32_t op) {
        return trace.streams[trace.ops[op].stream].device;
    };
    DeviceParts made;
    const bool several =
        std::any_of(ops.begin(), ops.end(), [&](std::uint32_t op) { return device_of(op) != device_of(ops.front()); });
    if (!several || !run_beside(trace, ops)) {
        made.ops.push_back(std::move(ops));
        return made;
    }
    std::map<std::uint32_t, DevicePart> parts;
    for (const std::uint32_t op : ops) {
        DevicePart& part = parts[device_of(op)];
        part.ops.push_back(op);
        if (trace.ops[op].kind == DeviceOpKind::kernel) {
            const Anchor anchor = anchor_of(op);
            ++part.kernels;
            part.attentions += anchor == Anchor::attention ? 1 : 0;
            part.embeds = part.embeds || anchor == Anchor::embedding;
            part.samples = part.samples || anchor == Anchor::sampling;
        }
    }
    if (!are_alike(parts)) {
        made.ops.push_back(std::move(ops));
        return made;
    }
    made.spread = are_spread(parts);
    for (auto& [device, part] : parts) {
        made.ops.push_back(std::move(part.ops));
    }
    return made;
}

std::vector<LabelledPass> agreed(const std::vector<std::vector<LabelledPass>>& devices, bool spread) {
    std::vector<LabelledPass> made;
    std::set<std::size_t> counts; // of passes, of devices that have any
    for (const std::vector<LabelledPass>& passes : devices) {
        if (!passes.empty()) {
            counts.insert(passes.size());
        }
    }
    for (std::size_t i = 0; !counts.empty() && i < *counts.rbegin(); ++i) {
        std::vector<const LabelledPass*> passes;
        for (const std::vector<LabelledPass>& of_device : devices) {
            if (i < of_device.size()) {
                passes.push_back(&of_device[i]);
            }
        }
        LabelledPass& pass = made.emplace_back(agreed_pass(passes));
        if (counts.size() > 1) {
            add_doubt(pass, "the devices of the step tell of different numbers of passes: " + all_of(counts));
        }
        if (spread) {
            add_doubt(pass, "one device begins the pass and another ends it: layers may be spread over them");
        }
    }
    return made;
}

} // namespace plumb::imported
