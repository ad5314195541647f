// SPDX-License-Identifier: Apache-2.0
// The kernels one by one on their host form: what they compute, and that the host form finds what is planted in them.
#include "decoder/kernels/cuda/kernels.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <random>

#include "decoder/kernels/cuda/host_block_testing.hpp"
#include "support/sanitizers.hpp"

namespace plumb::decoder::cuda {
namespace {

/// Buffers whose addresses are the host's.
class Buffers {
  public:
    template <class T>
    std::uint64_t add(const std::vector<T>& values) {
        auto& kept = kept_.emplace_back((values.size() * sizeof(T) + 15) / 16 * 2);
        std::memcpy(kept.data(), values.data(), values.size() * sizeof(T));
        const auto begin = reinterpret_cast<std::uint64_t>(kept.data());
        ends_[begin] = begin + values.size() * sizeof(T);
        return begin;
    }
    std::uint64_t floats(std::size_t count) {
        std::vector<float> values(count);
        for (float& value : values) {
            value = std::uniform_real_distribution<float>(-1, 1)(random_);
        }
        return add(values);
    }
    static std::vector<float> at(std::uint64_t address, std::size_t count) {
        const auto* begin = reinterpret_cast<const float*>(address);
        return {begin, begin + count};
    }
    void* operator()(std::uint64_t address, std::size_t bytes) const {
        auto next = ends_.upper_bound(address);
        if (next == ends_.begin() || address + bytes > (--next)->second) {
            return nullptr;
        }
        return reinterpret_cast<void*>(address);
    }

  private:
    std::list<std::vector<std::uint64_t>> kept_;
    std::map<std::uint64_t, std::uint64_t> ends_;
    std::mt19937 random_{1};
};

enum class Fault { none, no_barrier, one_does_not_come, store_beyond, load_beyond, load_askew, shared_beyond };

/// A lane on which one thing is wrong.
struct FaultyLane {
    HostBlock::Lane& lane;
    Fault fault;

    [[nodiscard]] unsigned thread() const { return lane.thread(); }
    [[nodiscard]] unsigned threads() const { return lane.threads(); }
    [[nodiscard]] unsigned block_x() const { return lane.block_x(); }
    [[nodiscard]] unsigned block_y() const { return lane.block_y(); }
    [[nodiscard]] unsigned block_z() const { return lane.block_z(); }
    [[nodiscard]] bool last() const { return thread() + 1 == threads(); }
    template <class T>
    T load(std::uint64_t address) {
        return lane.load<T>(fault == Fault::load_beyond  ? address + (1U << 20)
                            : fault == Fault::load_askew ? address + 2
                                                         : address);
    }
    template <class T>
    T stream(std::uint64_t address) {
        return load<T>(address);
    }
    template <class T>
    void store(std::uint64_t address, T value) {
        lane.store(fault == Fault::store_beyond ? address + (1U << 20) : address, value);
    }
    static float from_half(std::uint16_t bits) { return HostBlock::Lane::from_half(bits); }
    static std::uint32_t bits_of(float value) { return HostBlock::Lane::bits_of(value); }
    float shared(unsigned i) { return lane.shared(i); }
    void set_shared(unsigned i, float value) { lane.set_shared(fault == Fault::shared_beyond ? i + 10000 : i, value); }
    void sync() {
        if (fault == Fault::no_barrier || (fault == Fault::one_does_not_come && last())) {
            return;
        }
        lane.sync();
    }
    float sum(float value) { return lane.sum(value); }
    template <class T>
    T exchange(T value, unsigned mask) {
        return lane.exchange(value, mask);
    }
};

class CudaKernels : public testing::Test {
  protected:
    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
    }
    template <class Arguments, class Body>
    std::string run(const HostLaunch& shape, Body body, const Arguments& arguments, Fault fault = Fault::none) {
        return block_.launch(
            shape,
            [&](HostBlock::Lane& lane, const Arguments& a) {
                FaultyLane faulty{lane, fault};
                body(faulty, a);
            },
            arguments);
    }

    /// Each kernel that has a barrier.
    template <class See>
    void each_with_barriers(See&& see) {
        NormArgs norm{buffers_.floats(500), buffers_.floats(500), buffers_.floats(500), 500, 1e-5F};
        see("rms_norm", [=, this](Fault fault) {
            return run(
                {{1, 1, 1}, 128, 16}, [](auto& m, const NormArgs& a) { rms_norm(m, a); }, norm, fault);
        });
        ProductArgs product;
        product.parts[0] = {
            {buffers_.floats(70 * 64), 0, 70, 64}, buffers_.floats(70), buffers_.floats(40 * 70), 0, 70};
        product.in = buffers_.floats(40 * 64);
        product.count = 1;
        product.rows = 40;
        see("tile", [=, this](Fault fault) {
            return run(
                {{2, 2, 1}, tile_threads, tile_shared_bytes},
                [](auto& m, const ProductArgs& a) { tile<Type::f32>(m, a); }, product, fault);
        });
        product.split = 4;
        see("gemv", [=, this](Fault fault) {
            return run(
                {{35, 10, 1}, gemv_threads, 8 * 4 * 4}, [](auto& m, const ProductArgs& a) { gemv<Type::f32, 4>(m, a); },
                product, fault);
        });
        AttendArgs attend;
        attend.cache = {buffers_.floats(2 * 50 * 32),
                        buffers_.floats(2 * 50 * 32),
                        0,
                        50,
                        buffers_.add(std::vector<std::int32_t>{41}),
                        1,
                        32};
        attend.queries = buffers_.floats(4 * 32);
        attend.out = buffers_.floats(4 * 32);
        attend.heads = 4, attend.group = 2;
        see("attend", [=, this](Fault fault) {
            return run(
                {{4, 1, 1}, attend_threads, 16 * 34 * 4}, [](auto& m, const AttendArgs& a) { attend_32(m, a); }, attend,
                fault);
        });
        const LargestArgs largest{buffers_.floats(900), buffers_.floats(2), buffers_.floats(1), 900, 1};
        see("largest_of_part", [=, this](Fault fault) {
            return run(
                {{1, 1, 1}, largest_threads, 64}, [](auto& m, const LargestArgs& a) { largest_of_part(m, a); }, largest,
                fault);
        });
        const OrderArgs order{buffers_.add(std::vector<std::int32_t>{3, 1, 0, 3}), buffers_.floats(4),
                              buffers_.floats(9), 8, 4};
        see("order_by_expert", [=, this](Fault fault) {
            return run(
                {{1, 1, 1}, 32, 128}, [](auto& m, const OrderArgs& a) { order_by_expert(m, a); }, order, fault);
        });
    }

    Buffers buffers_;
    HostBlock block_{[this](std::uint64_t address, std::size_t bytes) {
        return buffers_(address, bytes);
    }};
};

TEST_F(CudaKernels, run_clean_and_what_is_planted_in_them_is_found) {
    each_with_barriers([](const char* name, auto&& launch) {
        EXPECT_EQ(launch(Fault::none), "") << name;
        for (const Fault fault : {Fault::no_barrier, Fault::one_does_not_come}) { // what is read too early shows first
            const std::string found = launch(fault);
            EXPECT_TRUE(found.find("race") != std::string::npos || found.find("before anybody") != std::string::npos ||
                        (fault == Fault::one_does_not_come && found.find("divergent barrier") != std::string::npos))
                << name << ": " << found;
        }
        EXPECT_NE(launch(Fault::store_beyond).find("out-of-bounds store"), std::string::npos) << name;
        EXPECT_NE(launch(Fault::load_beyond).find("out-of-bounds load"), std::string::npos) << name;
        EXPECT_NE(launch(Fault::load_askew).find("misaligned load"), std::string::npos) << name;
        EXPECT_NE(launch(Fault::shared_beyond).find("shared memory overrun"), std::string::npos) << name;
        EXPECT_EQ(launch(Fault::none), "") << name << ", after all of these";
    });
}

TEST_F(CudaKernels, one_element_too_many_is_found) {
    const ElementArgs args{buffers_.floats(1000), buffers_.floats(1000), buffers_.floats(1000), 1001, 0};
    const auto body = [](auto& m, const ElementArgs& a) {
        add(m, a);
    };
    EXPECT_EQ(run({{4, 1, 1}, 256, 0}, body, args), "block 3,0,0 thread 232: out-of-bounds load of 4 bytes");
}

TEST_F(CudaKernels, launches_beyond_the_limits_are_refused) {
    const ElementArgs args{};
    const auto body = [](auto&, const ElementArgs&) {
    };
    EXPECT_EQ(run({{1, 1, 1}, 1024, 48 * 1024}, body, args), "");
    EXPECT_NE(run({{1, 1, 1}, 1056, 0}, body, args), "");
    EXPECT_NE(run({{1, 1, 1}, 33, 0}, body, args), "");
    EXPECT_NE(run({{0, 1, 1}, 32, 0}, body, args), "");
    EXPECT_NE(run({{1, 65536, 1}, 32, 0}, body, args), "");
    EXPECT_NE(run({{1, 1, 65536}, 32, 0}, body, args), "");
    EXPECT_NE(run({{1, 1, 1}, 32, 48 * 1024 + 4}, body, args), "");
}

TEST_F(CudaKernels, a_lane_that_leaves_its_warp_alone_is_found) {
    const ElementArgs args{};
    EXPECT_NE(run(
                  {{1, 1, 1}, 64, 0},
                  [](auto& m, const ElementArgs&) {
                      if (m.thread() != 40) {
                          m.sum(1.0F);
                      }
                  },
                  args)
                  .find("divergent barrier"),
              std::string::npos);
    EXPECT_NE(
        run(
            {{1, 1, 1}, 32, 0}, [](auto& m, const ElementArgs&) { m.exchange(1.0F, m.thread() < 16 ? 1 : 2); }, args)
            .find("different calls"),
        std::string::npos);
}

/// However many warps share an output, and however many rows there are.
TEST_F(CudaKernels, gemv_and_tiles_give_the_same_products) {
    constexpr unsigned outputs = 70, cols = 264, rows = 7;
    const auto weights = buffers_.floats(outputs * cols), in = buffers_.floats(rows * cols);
    const auto bias = buffers_.floats(outputs), out = buffers_.floats(rows * outputs);
    ProductArgs args;
    args.parts[0] = {{weights, 0, outputs, cols}, bias, out, 0, outputs};
    args.in = in, args.count = 1, args.rows = rows;
    const auto check = [&](const std::string& failure) {
        EXPECT_EQ(failure, "");
        const auto w = Buffers::at(weights, outputs * cols), x = Buffers::at(in, rows * cols);
        const auto y = Buffers::at(out, rows * outputs), b = Buffers::at(bias, outputs);
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t o = 0; o < outputs; ++o) {
                double sum = static_cast<double>(b[o]);
                for (std::size_t i = 0; i < cols; ++i) {
                    sum += static_cast<double>(w[o * cols + i]) * static_cast<double>(x[r * cols + i]);
                }
                ASSERT_NEAR(y[r * outputs + o], sum, 1e-5) << r << " " << o;
            }
        }
        std::fill_n(reinterpret_cast<float*>(out), rows * outputs, NAN);
    };
    for (const unsigned split : {1U, 2U, 4U, 8U}) {
        args.split = split;
        const unsigned blocks = (unsigned{outputs} + 8 / split - 1) / (8 / split);
        check(run(
            {{blocks, rows, 1}, gemv_threads, 32}, [](auto& m, const ProductArgs& a) { gemv<Type::f32, 1>(m, a); },
            args));
        check(run(
            {{blocks, 2, 1}, gemv_threads, 128}, [](auto& m, const ProductArgs& a) { gemv<Type::f32, 4>(m, a); },
            args));
    }
    check(run(
        {{2, 1, 1}, tile_threads, tile_shared_bytes}, [](auto& m, const ProductArgs& a) { tile<Type::f32>(m, a); },
        args));
}

/// Whatever attention is cut into, it sees the same.
TEST_F(CudaKernels, attention_in_stretches_is_attention_at_once) {
    constexpr unsigned heads = 4, context = 90;
    for (const unsigned size : {14U, 32U, 64U, 100U, 256U}) {
        for (const unsigned window : {0U, 20U}) {
            AttendArgs args;
            args.cache = {buffers_.floats(2 * context * size),
                          buffers_.floats(2 * context * size),
                          0,
                          context,
                          buffers_.add(std::vector<std::int32_t>{0, 5, 89}),
                          3,
                          size};
            args.queries = buffers_.floats(3 * heads * size);
            args.out = buffers_.floats(3 * heads * size);
            args.partial = buffers_.floats(3 * heads * 8 * (size + 2));
            args.heads = heads, args.group = 2, args.window = window;
            const unsigned shared = attend_threads / 8 * (size + 2) * 4;
            std::vector<float> first;
            for (const unsigned splits : {1U, 2U, 8U}) {
                args.splits = splits;
                const auto body = [&](auto& m, const AttendArgs& a) {
                    size <= 32    ? attend_32(m, a)
                    : size <= 64  ? attend_64(m, a)
                    : size <= 128 ? attend_128(m, a)
                                  : attend_256(m, a);
                };
                ASSERT_EQ(run({{heads, splits, 3}, attend_threads, shared}, body, args), "");
                if (splits > 1) {
                    ASSERT_EQ(run(
                                  {{heads, 3, 1}, attend_threads, 0},
                                  [](auto& m, const AttendArgs& a) { attend_merge(m, a); }, args),
                              "");
                }
                const auto out = Buffers::at(args.out, std::size_t{3} * heads * size);
                first = first.empty() ? out : first;
                for (std::size_t i = 0; i < out.size(); ++i) {
                    ASSERT_NEAR(out[i], first[i], 1e-5) << size << " " << splits << " " << i;
                }
            }
            // The first row sees itself alone.
            EXPECT_EQ(std::vector<float>(first.begin(), first.begin() + size), Buffers::at(args.cache.values, size));
        }
    }
}

TEST_F(CudaKernels, the_largest_value_is_never_one_that_is_no_number_and_the_first_of_equals) {
    const float nan = NAN;
    std::vector<float> plain(3000, 1.0F), last(3000, nan);
    plain[700] = plain[2900] = 2;
    last[2999] = -INFINITY;
    std::vector<float> rows = plain;
    rows.insert(rows.end(), last.begin(), last.end());
    rows.insert(rows.end(), 3000, nan);
    for (const unsigned parts : {1U, 2U, 33U}) {
        const LargestArgs args{buffers_.add(rows), buffers_.floats(3 * 33 * 2), buffers_.floats(3), 3000, parts};
        ASSERT_EQ(run(
                      {{parts, 3, 1}, largest_threads, 64},
                      [](auto& m, const LargestArgs& a) { largest_of_part(m, a); }, args),
                  "");
        ASSERT_EQ(run(
                      {{3, 1, 1}, 32, 0}, [](auto& m, const LargestArgs& a) { largest_of_parts(m, a); }, args),
                  "");
        const auto* found = reinterpret_cast<const std::int32_t*>(args.out);
        EXPECT_EQ(found[0], 700);
        EXPECT_EQ(found[1], 2999);
        EXPECT_EQ(found[2], 0);
    }
}

} // namespace
} // namespace plumb::decoder::cuda
