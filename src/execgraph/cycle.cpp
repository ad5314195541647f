// SPDX-License-Identifier: Apache-2.0
#include "execgraph/cycle.hpp"

#include <algorithm>

namespace plumb::execgraph {
namespace {

enum class Color : std::uint8_t { fresh, open, done };

struct Frame {
    std::uint32_t vertex;
    std::uint64_t next;
};

} // namespace

std::vector<std::uint32_t> find_cycle(const std::vector<std::uint64_t>& offsets,
                                      const std::vector<std::uint32_t>& targets) {
    const std::size_t vertices = offsets.empty() ? 0 : offsets.size() - 1;
    std::vector<Color> colors(vertices, Color::fresh);
    std::vector<Frame> stack;
    for (std::uint32_t root = 0; root < vertices; ++root) {
        if (colors[root] != Color::fresh) {
            continue;
        }
        colors[root] = Color::open;
        stack.push_back({root, offsets[root]});
        while (!stack.empty()) {
            Frame& top = stack.back();
            if (top.next == offsets[top.vertex + 1]) {
                colors[top.vertex] = Color::done;
                stack.pop_back();
                continue;
            }
            const std::uint32_t to = targets[top.next++];
            if (colors[to] == Color::fresh) {
                colors[to] = Color::open;
                stack.push_back({to, offsets[to]});
            } else if (colors[to] == Color::open) {
                const auto first =
                    std::find_if(stack.begin(), stack.end(), [to](const Frame& frame) { return frame.vertex == to; });
                std::vector<std::uint32_t> cycle;
                for (auto frame = first; frame != stack.end(); ++frame) {
                    cycle.push_back(frame->vertex);
                }
                return cycle;
            }
        }
    }
    return {};
}

} // namespace plumb::execgraph
