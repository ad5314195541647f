// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_place.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "import/rules/placing.hpp"

namespace plumb::imported {
namespace {

using Pass = std::vector<KernelLabel>;

bool is_gemm(const KernelLabel& label) { return label.anchor == Anchor::gemm && label.piece != "split_k"; }
bool is_moe(const KernelLabel& label) { return label.brick.starts_with("moe_"); }

/// The kernels [begin, end) of one layer: what is before its attention, the attention, its output, the MLP.
class LayerReader {
  public:
    LayerReader(Pass& pass, std::size_t begin, std::size_t end) : pass_(pass), begin_(begin), end_(end) {}

    void read() {
        const auto core = find(begin_, [](const KernelLabel& label) { return label.anchor == Anchor::attention; });
        if (!core) {
            return;
        }
        std::size_t behind = end_;
        while (pass_[behind - 1].anchor != Anchor::attention) {
            --behind;
        }
        const std::size_t mlp = mlp_begin(behind);
        read_before_attention(*core);
        for (std::size_t i = *core; i < behind; ++i) {
            if (is_gemm(pass_[i])) {
                place(pass_[i], "attention");
            }
        }
        for (std::size_t i = behind; i < mlp; ++i) {
            if (is_gemm(pass_[i])) {
                place(pass_[i], "output_projection");
            }
        }
        if (std::any_of(at(mlp), at(end_), is_moe)) {
            read_experts(mlp);
        } else {
            read_dense(mlp);
        }
        read_pieces(behind, mlp);
    }

  private:
    [[nodiscard]] Pass::iterator at(std::size_t i) const { return pass_.begin() + static_cast<std::ptrdiff_t>(i); }

    template <class Is>
    [[nodiscard]] std::optional<std::size_t> find(std::size_t from, Is is) const {
        const auto found = std::find_if(at(from), at(end_), is);
        return found == at(end_) ? std::nullopt : std::optional<std::size_t>(found - pass_.begin());
    }
    [[nodiscard]] std::vector<std::size_t> gemms(std::size_t from) const {
        std::vector<std::size_t> found;
        for (std::size_t i = from; i < end_; ++i) {
            if (is_gemm(pass_[i])) {
                found.push_back(i);
            }
        }
        return found;
    }

    /// The norm behind the attention; where none is named, what can be no output projection any more.
    [[nodiscard]] std::size_t mlp_begin(std::size_t behind) const {
        if (const auto norm = find(behind, [](const KernelLabel& label) { return label.anchor == Anchor::norm; })) {
            return *norm;
        }
        if (const auto other =
                find(behind, [](const KernelLabel& label) { return label.brick == "fused" || is_moe(label); })) {
            return *other;
        }
        const std::vector<std::size_t> all = gemms(behind);
        return all.size() > 1 ? all[1] : end_;
    }

    void read_before_attention(std::size_t core) {
        bool projected = false;
        std::size_t turned = core; // the last neg or cat
        for (std::size_t i = begin_; i < core; ++i) {
            KernelLabel& label = pass_[i];
            const std::string_view piece = label.brick == "elementwise" ? label.piece : std::string_view();
            if (is_gemm(label)) {
                place(label, "qkv_projection");
                projected = true;
            } else if (label.anchor == Anchor::norm && projected) {
                place(label, "qk_norm");
                for (; i + 1 < core && pass_[i + 1].brick == "rms_norm" && pass_[i + 1].anchor == Anchor::none; ++i) {
                    place(pass_[i + 1], "qk_norm"); // the rest of an eager one
                }
            } else if (piece == "neg" || piece == "cat") {
                place(label, "rope_embedding");
                turned = i;
            } else if (piece == "mul") {
                place(label, "rope_embedding");
            } else if (piece == "add") {
                place(label, turned < i && i - turned <= 6 ? "rope_embedding" : "residual_add");
            }
        }
    }

    void read_dense(std::size_t mlp) {
        const std::vector<std::size_t> all = gemms(mlp);
        const auto activation = find(mlp, [](const KernelLabel& label) { return label.brick == "activation"; });
        for (std::size_t n = 0; n < all.size(); ++n) {
            const bool up = all.size() == 2 ? n == 0 : !activation || all[n] < *activation;
            place(pass_[all[n]], all.size() == 3 ? (n == 0   ? "gate_projection"
                                                    : n == 1 ? "up_projection"
                                                             : "down_projection")
                                 : up            ? "gate_up_projection"
                                                 : "down_projection");
        }
    }

    /// The last GEMM before the first kernel that routes is the router's.
    void read_experts(std::size_t mlp) {
        const std::size_t first = *find(mlp, is_moe);
        const bool named =
            std::any_of(at(mlp), at(end_), [](const KernelLabel& label) { return label.brick == "moe_experts"; });
        std::vector<std::size_t> all = gemms(mlp);
        const auto router = std::partition_point(all.begin(), all.end(), [&](std::size_t i) { return i < first; });
        if (router != all.begin()) {
            place(pass_[*(router - 1)], "moe_router");
            all.erase(router - 1);
        }
        for (const std::size_t i : all) {
            place(pass_[i], named ? "shared_expert" : "moe_experts");
        }
        for (std::size_t i = first; i < end_; ++i) {
            if (pass_[i].brick == "fused" && !named) {
                place(pass_[i], "moe_combine");
            }
        }
    }

    void read_pieces(std::size_t behind, std::size_t mlp) {
        std::size_t last_moe = end_;
        bool activated = false;
        for (std::size_t i = mlp; i < end_; ++i) {
            last_moe = is_moe(pass_[i]) ? i : last_moe;
            activated |= pass_[i].brick == "activation";
        }
        for (std::size_t i = behind; i < end_; ++i) {
            if (pass_[i].brick == "elementwise" && pass_[i].piece == "add") {
                place(pass_[i], "residual_add");
            } else if (i >= mlp && activated && pass_[i].brick == "elementwise" && pass_[i].piece == "mul") {
                place(pass_[i], i > last_moe ? "moe_combine" : "activation");
            }
        }
    }

    Pass& pass_;
    std::size_t begin_, end_;
};

/// Behind the last layer: the longest GEMM is lm_head, what follows it chooses the token.
void read_tail(Pass& pass, const std::vector<PlaceInLayer>& places, std::size_t begin) {
    std::size_t head = begin;
    for (std::size_t i = begin; i < pass.size(); ++i) {
        if (is_gemm(pass[i]) && (!is_gemm(pass[head]) || places[i].ns > places[head].ns)) {
            head = i;
        }
    }
    if (head == pass.size() || !is_gemm(pass[head])) {
        return;
    }
    place(pass[head], "lm_head");
    for (std::size_t i = head + 1; i < pass.size(); ++i) {
        if (pass[i].anchor == Anchor::embedding) {
            place(pass[i], "embedding"); // of the next pass
            break;
        }
        if (pass[i].anchor == Anchor::sampling ||
            (pass[i].brick == "moe_router" && pass[i].evidence == LabelEvidence::place) ||
            (pass[i].certainty == Certainty::weak && pass[i].anchor != Anchor::gemm && pass[i].brick != "fill")) {
            place(pass[i], "sampling");
        }
    }
}

/// What adds up the parts of a GEMM is that GEMM's.
void read_split_k(Pass& pass) {
    for (std::size_t i = 1; i < pass.size(); ++i) {
        if (pass[i].piece == "split_k" && pass[i - 1].evidence == LabelEvidence::place) {
            place(pass[i], pass[i - 1].brick);
        }
    }
}

/// A kernel that is not known well takes the brick that most of its slot have.
void vote(Pass& pass, const std::vector<PlaceInLayer>& places) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<std::string_view, std::size_t>> slots;
    for (std::size_t i = 0; i < pass.size(); ++i) {
        if (places[i].slot != PlaceInLayer::none && pass[i].certainty == Certainty::strong) {
            ++slots[{places[i].unit, places[i].slot}][pass[i].brick];
        }
    }
    for (std::size_t i = 0; i < pass.size(); ++i) {
        const auto slot = slots.find({places[i].unit, places[i].slot});
        if (slot == slots.end() || pass[i].certainty == Certainty::strong) {
            continue;
        }
        const auto most = std::max_element(slot->second.begin(), slot->second.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        std::size_t all = 0;
        for (const auto& [brick, count] : slot->second) {
            all += count;
        }
        if (most->second >= 2 && 3 * most->second >= 2 * all) {
            place(pass[i], most->first);
        }
    }
}

} // namespace

void read_places(Pass& pass, const std::vector<PlaceInLayer>& places) {
    std::size_t behind = 0;
    for (std::size_t i = 0; i < pass.size();) {
        std::size_t end = i + 1;
        while (end < pass.size() && places[end].layer == places[i].layer) {
            ++end;
        }
        if (places[i].layer != PlaceInLayer::none) {
            LayerReader(pass, i, end).read();
            for (std::size_t k = i; k < end; ++k) {
                if (pass[k].brick == "embedding" && pass[k].piece == "gather") {
                    place(pass[k], "elementwise");
                    pass[k].certainty = Certainty::weak;
                }
            }
            behind = end;
        } else if (behind == 0) {
            for (std::size_t k = i; k < end; ++k) {
                if (pass[k].brick == "fused" || pass[k].anchor == Anchor::embedding) {
                    place(pass[k], "embedding");
                }
            }
        }
        i = end;
    }
    if (behind != 0) {
        read_tail(pass, places, behind);
    }
    read_split_k(pass);
    vote(pass, places);
}

} // namespace plumb::imported
