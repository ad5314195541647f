// SPDX-License-Identifier: Apache-2.0
// A stack to run on, and the step from one stack to another. A kernel's thread is one, and changes stacks at each barrier:
// on x86-64 that is a few instructions, elsewhere ucontext. Test-only; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace plumb::decoder::cuda {

class Fibre {
  public:
    using Entry = void (*)(void* argument); // never returns

    /// Begins anew at `entry` when it is entered next.
    void start(Entry entry, void* argument) {
        if (stack_ == nullptr) {
            stack_.reset(new char[stack_bytes]);
        }
#if defined(__SANITIZE_ADDRESS__)
        ASAN_UNPOISON_MEMORY_REGION(stack_.get(), stack_bytes); // frames that were given up are marked as in use
#endif
#if defined(__x86_64__)
        // What switch_stacks() takes off a stack: six registers and the place to go on at. Behind these the stack is
        // aligned as a call wants it.
        auto top = (reinterpret_cast<std::uintptr_t>(stack_.get()) + stack_bytes) & ~std::uintptr_t{15};
        auto* words = reinterpret_cast<std::uintptr_t*>(top) - 9;
        words[0] = words[1] = words[2] = words[5] = 0;
        words[3] = reinterpret_cast<std::uintptr_t>(argument);
        words[4] = reinterpret_cast<std::uintptr_t>(entry);
        words[6] = reinterpret_cast<std::uintptr_t>(&begin);
        inside_ = words;
#else
        getcontext(&inside_);
        inside_.uc_stack.ss_sp = stack_.get();
        inside_.uc_stack.ss_size = stack_bytes;
        inside_.uc_link = nullptr;
        entry_ = entry, argument_ = argument;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        makecontext(&inside_, reinterpret_cast<void (*)()>(&begin), 2, static_cast<unsigned>(self >> 32),
                    static_cast<unsigned>(self));
#endif
    }
    void enter() {
#if defined(__x86_64__)
        switch_stacks(&outside_, inside_);
#else
        swapcontext(&outside_, &inside_);
#endif
    }
    /// Back to whoever called enter(); REQUIRES to be on this stack.
    void leave() {
#if defined(__x86_64__)
        switch_stacks(&inside_, outside_);
#else
        swapcontext(&inside_, &outside_);
#endif
    }

  private:
    static constexpr std::size_t stack_bytes = 64 * 1024;

#if defined(__x86_64__)
    [[gnu::naked, gnu::noinline]] static void switch_stacks(void** save [[maybe_unused]], void* load [[maybe_unused]]) {
        asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
            "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
            "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
    }
    [[gnu::naked, gnu::noinline]] static void begin() { asm("movq %r12, %rdi\n callq *%rbx\n ud2"); }
    void* inside_ = nullptr;
    void* outside_ = nullptr;
#else
    static void begin(unsigned high, unsigned low) {
        auto& self = *reinterpret_cast<Fibre*>(std::uintptr_t{high} << 32 | low);
        self.entry_(self.argument_);
    }
    ucontext_t inside_{}, outside_{};
    Entry entry_ = nullptr;
    void* argument_ = nullptr;
#endif
    std::unique_ptr<char[]> stack_;
};

} // namespace plumb::decoder::cuda
