// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <span>

#include "import/rules/kernel_place.hpp"
#include "import/rules/placing.hpp"

namespace plumb::imported {
namespace {

using Pass = std::vector<KernelLabel>;

bool is_piece(const KernelLabel& label, std::initializer_list<std::string_view> pieces) {
    return std::find(pieces.begin(), pieces.end(), label.piece) != pieces.end() ||
           (label.brick == "copy" && label.piece.empty());
}

/// to, pow, mean, + eps, rsqrt, mul, to, mul: a root-mean-square norm written in torch.
void join_eager_norms(Pass& pass) {
    for (std::size_t i = 0; i < pass.size(); ++i) {
        if (pass[i].piece != "rsqrt") {
            continue;
        }
        std::size_t first = i;
        for (int n = 0; n < 5 && first > 0 && is_piece(pass[first - 1], {"self_add", "add", "mean", "pow"}); ++n) {
            --first;
            if (pass[first].brick == "copy") {
                break;
            }
        }
        std::size_t last = i;
        for (int n = 0; n < 3 && last + 1 < pass.size() && is_piece(pass[last + 1], {"mul"}); ++n) {
            ++last;
        }
        for (std::size_t k = first; k <= last; ++k) {
            place(pass[k], "rms_norm");
            pass[k].anchor = k == first ? Anchor::norm : Anchor::none; // one norm, one anchor
        }
        i = last;
    }
}

/// Runs of softmax and top-k with little between them: a router where there is one for four attentions or more, else sampling. One
/// that follows the last layer's router after another norm, without attention between, is sampling in any case.
void find_routers(Pass& pass) {
    const auto of_choice = [](const KernelLabel& label) {
        return label.brick == "sampling" && (label.piece == "softmax" || label.piece == "topk");
    };
    const auto ends_pass = [&](std::size_t router, std::size_t next) {
        const auto between = std::span(pass).subspan(router, next - router);
        const auto is = [](Anchor anchor) {
            return [anchor](const KernelLabel& label) {
                return label.anchor == anchor;
            };
        };
        return std::none_of(between.begin(), between.end(), is(Anchor::attention)) &&
               std::any_of(between.begin(), between.end(), is(Anchor::norm));
    };
    std::vector<std::pair<std::size_t, std::size_t>> chains;
    for (std::size_t i = 0; i < pass.size(); ++i) {
        if (!of_choice(pass[i])) {
            continue;
        }
        bool chooses = false;
        std::size_t last = i;
        for (std::size_t k = i; k < pass.size() && k <= last + 2; ++k) {
            if (of_choice(pass[k])) {
                last = k;
                chooses |= pass[k].piece == "topk";
            } else if (pass[k].brick != "elementwise" && pass[k].brick != "fused" && pass[k].brick != "copy") {
                break;
            }
        }
        if (chooses && (chains.empty() || !ends_pass(chains.back().second, i))) {
            chains.emplace_back(i, last);
        }
        i = last;
    }
    const auto attentions = std::count_if(pass.begin(), pass.end(), [](const KernelLabel& label) {
        return label.anchor == Anchor::attention || (label.brick == "sampling" && label.piece == "softmax");
    });
    if (chains.size() < 2 || 4 * chains.size() < static_cast<std::size_t>(attentions)) {
        return;
    }
    for (const auto& [first, last] : chains) {
        for (std::size_t k = first; k <= last; ++k) {
            place(pass[k], "moe_router");
        }
    }
}

/// GEMM, softmax, GEMM: attention, where no kernel of the pass is named attention.
void find_eager_attention(Pass& pass) {
    const bool named = std::any_of(pass.begin(), pass.end(), [](const KernelLabel& label) {
        return label.anchor == Anchor::attention && label.piece != "softmax";
    });
    if (named) {
        return;
    }
    constexpr std::size_t reach = 6;
    for (std::size_t i = 0; i < pass.size(); ++i) {
        if (pass[i].piece != "softmax") {
            continue;
        }
        std::size_t first = i;
        while (first > 0 && i - first < reach && pass[first].anchor != Anchor::gemm) {
            --first;
        }
        std::size_t last = i;
        while (last + 1 < pass.size() && last - i < reach && pass[last].anchor != Anchor::gemm) {
            ++last;
        }
        if (pass[first].anchor != Anchor::gemm || pass[last].anchor != Anchor::gemm) {
            continue;
        }
        for (std::size_t k = first; k <= last; ++k) {
            place(pass[k], "attention");
        }
        i = last;
    }
}

} // namespace

void read_neighbours(Pass& pass) {
    join_eager_norms(pass);
    find_routers(pass);
    find_eager_attention(pass);
}

} // namespace plumb::imported
