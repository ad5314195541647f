// SPDX-License-Identifier: Apache-2.0
#include "backends/token_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace plumb::backends {
namespace {

struct Payload {
    std::uint64_t owner = 0;
};
using Pool = TokenPool<Payload>;

struct Memory {
    explicit Memory(std::uint32_t capacity)
        : bytes(::operator new(Pool::bytes(capacity), std::align_val_t{64})), pool(bytes, capacity) {}
    ~Memory() { ::operator delete(bytes, std::align_val_t{64}); }
    void* bytes;
    Pool pool;
};

TEST(TokenPool, a_spent_token_stays_invalid_when_its_slot_is_used_again) {
    Memory memory(1);
    Pool& pool = memory.pool;
    DeviceToken first, second;
    TokenState found;
    ASSERT_NE(pool.acquire(first), nullptr);
    pool.release(first);
    ASSERT_NE(pool.acquire(second), nullptr);
    pool.put(second, TokenState::open);
    EXPECT_NE(first.value, second.value);
    EXPECT_EQ(pool.take(first, TokenState::open, found), nullptr);
    EXPECT_EQ(found, TokenState::unknown);
    EXPECT_NE(pool.take(second, TokenState::open, found), nullptr);
}

TEST(TokenPool, tokens_that_were_never_given_are_unknown) {
    Memory memory(4);
    TokenState found;
    for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 24, std::uint64_t{5}}) {
        EXPECT_EQ(memory.pool.take({value}, TokenState::ended, found), nullptr);
        EXPECT_EQ(found, TokenState::unknown);
    }
}

TEST(TokenPool, no_more_slots_are_given_than_there_are) {
    Memory memory(3);
    std::vector<DeviceToken> tokens(4);
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_NE(memory.pool.acquire(tokens[i]), nullptr);
    }
    EXPECT_EQ(memory.pool.acquire(tokens[3]), nullptr);
    EXPECT_EQ(memory.pool.in_flight(), 3u);
    memory.pool.release(tokens[1]);
    EXPECT_NE(memory.pool.acquire(tokens[3]), nullptr);
}

TEST(TokenPool, threads_that_share_a_small_pool_never_share_a_slot) {
    Memory memory(3);
    std::atomic<int> collisions{0};
    std::vector<std::thread> threads;
    for (std::uint64_t id = 1; id <= 4; ++id) {
        threads.emplace_back([&, id] {
            for (int i = 0; i < 20'000;) {
                DeviceToken token;
                Payload* payload = memory.pool.acquire(token);
                if (payload == nullptr) {
                    std::this_thread::yield();
                    continue;
                }
                ++i;
                payload->owner = id;
                memory.pool.put(token, TokenState::open);
                TokenState found;
                payload = memory.pool.take(token, TokenState::open, found);
                if (payload == nullptr || payload->owner != id) {
                    ++collisions;
                }
                memory.pool.release(token);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(collisions, 0);
    EXPECT_EQ(memory.pool.in_flight(), 0u);
}

TEST(TokenPool, of_many_threads_that_take_one_token_exactly_one_gets_it) {
    Memory memory(1);
    for (int round = 0; round < 500; ++round) {
        DeviceToken token;
        ASSERT_NE(memory.pool.acquire(token), nullptr);
        memory.pool.put(token, TokenState::ended);
        std::atomic<int> winners{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&] {
                TokenState found;
                if (memory.pool.take(token, TokenState::ended, found) != nullptr) {
                    ++winners;
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        ASSERT_EQ(winners, 1);
        memory.pool.release(token);
    }
}

} // namespace
} // namespace plumb::backends
