// SPDX-License-Identifier: Apache-2.0
// PLUMB_OP: an operation as engines have them: a brick around a block, the tensors it reads handed over before, those it
// writes handed over after it. Off, it costs one relaxed load, and its arguments are not evaluated.
// Thread rule: as PLUMB_BRICK and PLUMB_TENSOR, which it stands for.
#pragma once

#include <new>

#include "plumb/record.hpp"
#include "plumb/tensor.hpp"

namespace plumb {
inline namespace v1 {

namespace detail {

/// A tensor of an operation, as in() and out() make it.
template <TensorRole Role>
struct OpTensor {
    Tensor tensor;
    TensorTags tags;
};
template <TensorRole Role>
inline constexpr bool says_work<OpTensor<Role>> = false;
template <TensorRole Role>
constexpr void apply(Work&, const OpTensor<Role>&) noexcept {}

} // namespace detail

/// A tensor that the operation reads. Tags as those of PLUMB_TENSOR: position(), sequence(), logits.
template <class... Tags>
detail::OpTensor<detail::TensorRole::input> in(const Tensor& tensor, Tags... tags) noexcept {
    detail::OpTensor<detail::TensorRole::input> made{tensor, {}};
    (detail::apply_tensor_tag(made.tags, tags), ...);
    return made;
}
/// A tensor that the operation writes; at most 4 of one operation.
template <class... Tags>
detail::OpTensor<detail::TensorRole::output> out(const Tensor& tensor, Tags... tags) noexcept {
    detail::OpTensor<detail::TensorRole::output> made{tensor, {}};
    (detail::apply_tensor_tag(made.tags, tags), ...);
    return made;
}

namespace detail {

inline constexpr unsigned most_outputs = 4;

template <class Tag>
inline constexpr bool is_op_output = false;
template <>
inline constexpr bool is_op_output<OpTensor<TensorRole::output>> = true;

/// The outputs of an operation, until its block has ended. May not change threads.
class OpOutputs {
  public:
    OpOutputs() noexcept {} // NOLINT: what is not there is not written, so that an operation that is off costs nothing
    /// Hands over the inputs, at once, and keeps the outputs.
    template <class... Tags>
    OpOutputs(Recorder& recorder, Queue queue, Name name, const Tags&... tags) noexcept
        : recorder_(&recorder), queue_(queue), name_(name) {
        static_assert((0U + ... + unsigned{is_op_output<Tags>}) <= most_outputs, "an operation has at most 4 out(…)");
        (take(tags), ...);
    }
    OpOutputs(const OpOutputs&) = delete;
    OpOutputs& operator=(const OpOutputs&) = delete;
    PLUMB_ALWAYS_INLINE ~OpOutputs() {
        if (PLUMB_UNLIKELY(recorder_ != nullptr)) {
            hand_over();
        }
    }

  private:
    template <class Tag>
    void take(const Tag&) noexcept {} // work
    void take(const OpTensor<TensorRole::input>& read) noexcept {
        take_tensor(*recorder_, queue_, name_, TensorRole::input, read.tensor, read.tags);
    }
    void take(const OpTensor<TensorRole::output>& written) noexcept {
        ::new (static_cast<void*>(outputs_[count_++])) OpTensor<TensorRole::output>(written);
    }
    PLUMB_NOINLINE void hand_over() const noexcept {
        for (unsigned i = 0; i < count_; ++i) {
            const auto& output = *std::launder(reinterpret_cast<const OpTensor<TensorRole::output>*>(outputs_[i]));
            take_tensor(*recorder_, queue_, name_, TensorRole::output, output.tensor, output.tags);
        }
    }

    Recorder* recorder_ = nullptr; // null: tensors are not looked at
    Queue queue_;
    Name name_;
    unsigned count_ = 0;
    alignas(OpTensor<TensorRole::output>) unsigned char outputs_[most_outputs][sizeof(OpTensor<TensorRole::output>)];
};

template <class Site, class Given, class... Tags>
OpOutputs take_op(Recorder& recorder, Site, Queue queue, Given&& name, const Tags&... tags) noexcept {
    return OpOutputs(recorder, queue, name_at<Site, Given>(static_cast<Given&&>(name)), tags...);
}

template <class Site, class Given, class... Tags>
PLUMB_ALWAYS_INLINE Scope open_op(Recorder& recorder, std::uint32_t mode, Site, Queue queue, Given&& name,
                                  const Tags&... tags) noexcept {
    return Scope(recorder, mode, queue, name_at<Site, Given>(static_cast<Given&&>(name)), tags...);
}

} // namespace detail
} // namespace v1
} // namespace plumb

#if defined(PLUMB_DISABLE)

#define PLUMB_OP(prof, ...)                                                      \
    if ((void)sizeof((::plumb::detail::take_op((prof), 0, __VA_ARGS__),          \
                      ::plumb::detail::open_op((prof), 0u, 0, __VA_ARGS__), 0)); \
        false) {                                                                 \
    } else

#else

/// PLUMB_OP(prof, queue, brick, in(x), out(y), tags…) { … }: the block is the brick; `in` are handed to PLUMB_TENSOR's sink
/// before it, `out` after it, however it is left. Tags in any order. It is an if: put it into braces where it is the only
/// statement of another if. break, continue and return in the block mean what they mean without it.
#define PLUMB_OP(prof, ...)                                                                                    \
    if (const ::std::uint32_t PLUMB_JOIN(plumb_op_mode_, __LINE__) = (prof).mode(); false) {                   \
    } else if (const ::plumb::detail::OpOutputs PLUMB_JOIN(plumb_op_outputs_, __LINE__) =                      \
                   PLUMB_UNLIKELY((PLUMB_JOIN(plumb_op_mode_, __LINE__) & ::plumb::detail::mode_tensors) != 0) \
                       ? ::plumb::detail::take_op((prof), PLUMB_SITE, __VA_ARGS__)                             \
                       : ::plumb::detail::OpOutputs();                                                         \
               false) {                                                                                        \
    } else if (const ::plumb::Scope PLUMB_JOIN(plumb_op_scope_, __LINE__) =                                    \
                   PLUMB_UNLIKELY((PLUMB_JOIN(plumb_op_mode_, __LINE__) & ::plumb::detail::mode_on) != 0)      \
                       ? ::plumb::detail::open_op((prof), PLUMB_JOIN(plumb_op_mode_, __LINE__), PLUMB_SITE,    \
                                                  __VA_ARGS__)                                                 \
                       : ::plumb::Scope();                                                                     \
               false) {                                                                                        \
    } else

#endif
