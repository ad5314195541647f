// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_place.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "import/rules/placing.hpp"

namespace plumb::imported {
namespace {

using Pass = std::vector<KernelLabel>;

bool is_gemm(const KernelLabel& label) { return label.anchor == Anchor::gemm && label.piece != "split_k"; }
bool is_moe(const KernelLabel& label) { return label.brick.starts_with("moe_"); }
bool is_attention(const KernelLabel& label) { return label.anchor == Anchor::attention; }
bool is_norm(const KernelLabel& label) { return label.anchor == Anchor::norm; }
bool is_all_reduce(const KernelLabel& label) { return label.brick == "all_reduce"; } // which may hold a norm
bool is_activation(const KernelLabel& label) { return label.brick == "activation"; }

/// The kernels of one layer in order: what is before its attention, the attention, its output, the MLP. Of two micro-batches each
/// has its own, whichever stands first.
class LayerReader {
  public:
    explicit LayerReader(std::span<KernelLabel* const> layer)
        : layer_(layer),
          experts_(find(0, [](const KernelLabel& label) { return label.brick == "moe_experts"; }) < layer.size()) {}

    void read() {
        const std::size_t core = find(0, is_attention);
        if (core == layer_.size()) {
            return;
        }
        if (const std::size_t second = second_attention(core); second != layer_.size()) {
            part(0, second).read();
            part(second, layer_.size()).read();
            return;
        }
        std::size_t behind = layer_.size();
        while (!is_attention(*layer_[behind - 1])) {
            --behind;
        }
        const std::size_t mlp = mlp_begin(core, behind);
        read_before(core);
        place_in_attention(core, behind);
        place_gemms(behind, mlp, "output_projection");
        part(behind, mlp).read_pieces(false);
        part(mlp, layer_.size()).read_mlps();
    }

  private:
    [[nodiscard]] LayerReader part(std::size_t from, std::size_t to) const {
        LayerReader made = *this;
        made.layer_ = layer_.subspan(from, to - from);
        return made;
    }

    void read_mlps() {
        const std::size_t second = second_mlp();
        LayerReader first = part(0, second);
        if (first.find(0, is_moe) != second) {
            first.read_experts();
        } else {
            first.read_dense();
        }
        first.read_pieces(true);
        if (second != layer_.size()) {
            part(second, layer_.size()).read_mlps();
        }
    }

    template <class Is>
    [[nodiscard]] std::size_t find(std::size_t from, Is is) const {
        while (from < layer_.size() && !is(*layer_[from])) {
            ++from;
        }
        return from;
    }
    [[nodiscard]] std::vector<std::size_t> gemms(std::size_t from) const { return gemms(from, layer_.size()); }
    [[nodiscard]] std::vector<std::size_t> gemms(std::size_t from, std::size_t to) const {
        std::vector<std::size_t> found;
        for (std::size_t i = from; i < to; ++i) {
            if (is_gemm(*layer_[i])) {
                found.push_back(i);
            }
        }
        return found;
    }
    void place_gemms(std::size_t from, std::size_t to, std::string_view brick) {
        for (const std::size_t i : gemms(from, to)) {
            place(*layer_[i], brick);
        }
    }
    /// Several GEMMs between two attentions may be the output of one and the projections of the other.
    void place_in_attention(std::size_t core, std::size_t behind) {
        for (std::size_t part = core; part < behind;) {
            const std::size_t next = find(part + 1, is_attention);
            if (next < behind && gemms(part, next).size() == 1) {
                place_gemms(part, next, "attention");
            }
            part = next;
        }
    }

    /// Where what is before another attention begins: at the norm before its first GEMM, or behind the reduction that holds it. Parts of
    /// one attention have no norm and GEMM between them.
    [[nodiscard]] std::size_t second_attention(std::size_t core) const {
        std::size_t norm = layer_.size();
        bool projected = false;
        bool reduced = false; // the output of an attention
        for (std::size_t i = core + 1; i < layer_.size(); ++i) {
            const KernelLabel& label = *layer_[i];
            if (is_attention(label) && norm < i && projected) {
                return norm;
            }
            if (is_norm(label) && (norm == layer_.size() || !projected || is_norm_of_layer(i))) {
                norm = i;
                projected = false;
            } else if (is_all_reduce(label) && reduced) {
                norm = i + 1;
                projected = false;
            }
            projected |= norm <= i && is_gemm(label);
            reduced |= is_gemm(label);
        }
        return layer_.size();
    }

    /// Where the MLP of another micro-batch begins, of the same kind as the first: as before a second attention.
    [[nodiscard]] std::size_t second_mlp() const {
        std::size_t norm = layer_.size();
        bool projected = false;
        bool chosen = false; // what tells an MLP stood there
        for (std::size_t i = 0; i < layer_.size(); ++i) {
            const KernelLabel& label = *layer_[i];
            const bool telling = is_activation(label) || is_moe(label);
            if (telling && projected && is_moe_in(0, norm) == is_moe_in(norm, layer_.size())) {
                return norm;
            }
            if (chosen && (is_norm(label) || is_all_reduce(label))) {
                norm = is_norm(label) ? i : i + 1;
                projected = false;
            }
            projected |= norm <= i && is_gemm(label);
            chosen |= telling;
        }
        return layer_.size();
    }
    [[nodiscard]] bool is_moe_in(std::size_t from, std::size_t to) const { return find(from, is_moe) < to; }
    /// One of queries and keys has only other norms, pieces and RoPE between it and the attention.
    [[nodiscard]] bool is_norm_of_layer(std::size_t norm) const {
        const std::size_t next =
            find(norm, [](const KernelLabel& label) { return is_gemm(label) || is_attention(label); });
        return next < layer_.size() && is_gemm(*layer_[next]);
    }

    /// The norm behind the attention; where none is named, what can be no output projection any more.
    [[nodiscard]] std::size_t mlp_begin(std::size_t core, std::size_t behind) const {
        std::size_t from = behind;
        if (layer_[core]->brick == "linear_attention") { // which has a norm of its own before its output projection
            const std::size_t output = find(behind, is_gemm);
            from = find(output, is_norm) < layer_.size() ? output : behind;
        }
        if (const std::size_t norm = find(from, is_norm); norm < layer_.size()) {
            return norm;
        }
        const auto ends_output = [](const KernelLabel& label) {
            return label.brick == "fused" || is_moe(label);
        };
        const std::vector<std::size_t> all = gemms(behind);
        return std::min(find(all.empty() ? behind : all[0], ends_output), all.size() > 1 ? all[1] : layer_.size());
    }

    void read_before(std::size_t core) {
        bool projected = false;
        std::size_t turned = core; // the last neg or cat
        for (std::size_t i = 0; i < core; ++i) {
            KernelLabel& label = *layer_[i];
            const std::string_view piece = label.brick == "elementwise" ? label.piece : std::string_view();
            if (is_gemm(label)) {
                place(label, "qkv_projection");
                projected = true;
            } else if (is_norm(label) && projected) {
                place(label, "qk_norm");
                for (; i + 1 < core && layer_[i + 1]->brick == "rms_norm" && !is_norm(*layer_[i + 1]); ++i) {
                    place(*layer_[i + 1], "qk_norm"); // the rest of an eager one
                }
            } else if (piece == "neg" || piece == "cat") {
                place(label, "rope_embedding");
                turned = i;
            } else if (piece == "mul" && projected) {
                place(label, "rope_embedding");
            } else if (piece == "add" && turned < i && i - turned <= 6) {
                place(label, "rope_embedding");
            } else if (piece == "add" && !projected) { // behind the projection it may be a bias
                place(label, "residual_add");
            }
        }
    }

    /// GEMMs between two activations are the last of one MLP and the first of another, as many as stand at the ends.
    void read_dense() {
        std::vector<std::size_t> activations; // that have GEMMs before and behind them
        for (std::size_t i = find(0, is_gemm); i < layer_.size(); ++i) {
            if (is_activation(*layer_[i]) && find(i, is_gemm) < layer_.size() &&
                (activations.empty() || !gemms(activations.back(), i).empty())) {
                activations.push_back(i);
            }
        }
        if (activations.size() < 2 || gemms(0).size() < 4) {
            read_dense(gemms(0), find(0, is_activation));
            return;
        }
        const std::size_t up = gemms(0, activations.front()).size(), down = gemms(activations.back()).size();
        std::vector<std::vector<std::size_t>> mlps(1, gemms(0, activations.front()));
        for (std::size_t n = 0; n < activations.size(); ++n) {
            const std::vector<std::size_t> between =
                gemms(activations[n], n + 1 < activations.size() ? activations[n + 1] : layer_.size());
            if (n + 1 < activations.size() && between.size() != up + down) {
                return; // of no known role
            }
            const auto end = between.begin() + static_cast<std::ptrdiff_t>(down);
            mlps.back().insert(mlps.back().end(), between.begin(), end);
            mlps.emplace_back(end, between.end());
        }
        for (std::size_t n = 0; n < activations.size(); ++n) {
            read_dense(mlps[n], activations[n]);
        }
    }
    void read_dense(const std::vector<std::size_t>& all, std::size_t activation) {
        constexpr std::string_view three[] = {"gate_projection", "up_projection", "down_projection"};
        for (std::size_t n = 0; n < all.size(); ++n) {
            const bool up = all.size() == 2 ? n == 0 : all[n] < activation;
            place(*layer_[all[n]], all.size() == 3 ? three[n] : up ? "gate_up_projection" : "down_projection");
        }
    }

    /// The last GEMM before the first kernel that routes is the router's.
    void read_experts() {
        const std::size_t first = find(0, is_moe);
        std::vector<std::size_t> all = gemms(0);
        const auto router = std::lower_bound(all.begin(), all.end(), first);
        if (router != all.begin()) {
            place(*layer_[*(router - 1)], "moe_router");
            all.erase(router - 1);
        }
        for (const std::size_t i : all) {
            place(*layer_[i], experts_ ? "shared_expert" : "moe_experts");
        }
        for (std::size_t i = first; i < layer_.size() && !experts_; ++i) {
            if (layer_[i]->brick == "fused") {
                place(*layer_[i], "moe_combine");
            }
        }
    }

    /// Behind the attention.
    void read_pieces(bool mlp) {
        std::size_t last_moe = layer_.size();
        bool activated = false;
        for (std::size_t i = 0; i < layer_.size(); ++i) {
            last_moe = is_moe(*layer_[i]) ? i : last_moe;
            activated |= mlp && is_activation(*layer_[i]);
        }
        for (std::size_t i = 0; i < layer_.size(); ++i) {
            KernelLabel& label = *layer_[i];
            const std::string_view piece = label.brick == "elementwise" ? label.piece : std::string_view();
            if (piece == "add") {
                place(label, "residual_add");
            } else if (piece == "mul" && activated) {
                place(label, i > last_moe ? "moe_combine" : "activation");
            }
        }
    }

    std::span<KernelLabel* const> layer_;
    bool experts_; // are named, if in another part of the layer
};

/// Behind the last layer: the longest GEMM is lm_head, what follows it chooses the token.
void read_tail(Pass& pass, const std::vector<PlaceInLayer>& places, std::size_t begin) {
    std::size_t head = pass.size();
    for (std::size_t i = begin; i < pass.size(); ++i) {
        if (is_gemm(pass[i]) && (head == pass.size() || places[i].ns > places[head].ns)) {
            head = i;
        }
    }
    if (head == pass.size()) {
        return;
    }
    place(pass[head], "lm_head");
    for (std::size_t i = begin; i < head; ++i) {
        if (pass[i].piece == "gather") { // of the tokens that lm_head is for
            place(pass[i], "elementwise", Certainty::weak);
        }
    }
    for (std::size_t i = head + 1; i < pass.size() && pass[i].anchor != Anchor::embedding; ++i) {
        if (pass[i].anchor == Anchor::sampling ||
            (pass[i].brick == "moe_router" && pass[i].evidence == LabelEvidence::place) ||
            (pass[i].certainty == Certainty::weak && pass[i].anchor != Anchor::gemm && pass[i].brick != "fill")) {
            place(pass[i], "sampling");
        }
    }
}

/// What clears the memory of a GEMM before it, and what adds up its parts after it, is that GEMM's.
void read_helpers(Pass& pass, const std::vector<bool>& gemms) {
    for (std::size_t i = 0; i < pass.size(); ++i) {
        if (pass[i].piece == "split_k" && i > 0 && pass[i - 1].evidence == LabelEvidence::place) {
            place(pass[i], pass[i - 1].brick);
        } else if (pass[i].piece == "memset" && i + 1 < pass.size() && gemms[i + 1] &&
                   pass[i + 1].evidence == LabelEvidence::place) {
            place(pass[i], pass[i + 1].brick);
        }
    }
}

/// A kernel that its name does not tell takes the brick that most of its slot have.
void vote(Pass& pass, const std::vector<PlaceInLayer>& places) {
    struct Slot {
        std::map<std::string_view, std::size_t> bricks;
        std::size_t known = 0;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Slot> slots;
    for (std::size_t i = 0; i < pass.size(); ++i) {
        if (places[i].slot != PlaceInLayer::none && pass[i].certainty == Certainty::strong) {
            Slot& slot = slots[{places[i].unit, places[i].slot}];
            ++slot.bricks[pass[i].brick];
            ++slot.known;
        }
    }
    for (std::size_t i = 0; i < pass.size(); ++i) {
        const auto slot = slots.find({places[i].unit, places[i].slot});
        const bool named = pass[i].certainty == Certainty::strong && pass[i].evidence != LabelEvidence::place;
        if (slot == slots.end() || named) {
            continue;
        }
        const auto& [brick, count] =
            *std::max_element(slot->second.bricks.begin(), slot->second.bricks.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; });
        if (brick != pass[i].brick && count >= 2 && 3 * count >= 2 * slot->second.known) {
            place(pass[i], brick);
        }
    }
}

} // namespace

void read_places(Pass& pass, const std::vector<PlaceInLayer>& places) {
    std::vector<bool> gemms;
    for (const KernelLabel& label : pass) {
        gemms.push_back(is_gemm(label));
    }
    std::map<std::uint32_t, std::vector<KernelLabel*>> layers;
    std::size_t first = pass.size();
    std::size_t behind = pass.size();
    for (std::size_t i = 0; i < pass.size(); ++i) {
        if (places[i].layer != PlaceInLayer::none) {
            layers[places[i].layer].push_back(&pass[i]);
            first = std::min(first, i);
            behind = i + 1;
        }
    }
    if (layers.empty()) {
        return;
    }
    for (const auto& [number, layer] : layers) {
        LayerReader(layer).read();
        for (KernelLabel* label : layer) {
            if (label->piece == "gather") {
                place(*label, "elementwise", Certainty::weak);
            }
        }
    }
    read_tail(pass, places, behind);
    for (std::size_t i = 0; i < pass.size(); ++i) {
        const bool outside = places[i].layer == PlaceInLayer::none;
        if (outside && ((pass[i].brick == "fused" && i < first) || pass[i].anchor == Anchor::embedding)) {
            place(pass[i], "embedding");
        }
    }
    read_helpers(pass, gemms);
    vote(pass, places);
}

} // namespace plumb::imported
