// SPDX-License-Identifier: Apache-2.0
#include "read/read.hpp"

#include <gtest/gtest.h>

#include <string>

#include "planted/tape.hpp"

namespace {

using namespace plumb;
using planted::Tape;

constexpr std::uint32_t host = 1, queue = 0x80000001;

/// Three steps of two bricks, one of them on a queue.
Tape engine() {
    Tape source;
    source.track(host);
    recording::TrackInfo info;
    info.id = queue;
    info.kind = recording::TrackKind::device_queue;
    source.device_track(info);
    for (std::uint64_t step = 0; step < 3; ++step) {
        const auto t = static_cast<std::int64_t>(step) * 1'000'000;
        source.step_begin(host, step, Phase::decode, t);
        source.scope(host, Brick::sampling, t, t + 1'000);
        source.submit_scope(host, Brick::attention, queue, t + 2'000, t + 3'000);
        source.device_scope(queue, Brick::attention, step, 0, t + 4'000, t + 5'000);
        source.step_end(host, Phase::decode, t, t + 900'000);
    }
    return source;
}

/// Writes down what it is told.
class Diary final : public read::Observer {
  public:
    explicit Diary(bool looks = false) : looks_(looks) {}

    [[nodiscard]] bool looks_at(const recording::TrackInfo& track) const override {
        return looks_ && track.kind == recording::TrackKind::device_queue;
    }
    void look(const resolve::ResolvedBatch& batch) override {
        for (const resolve::Sample& sample : batch.samples) {
            looked += static_cast<int>(sample.phase == Phase::none && sample.step != resolve::no_step);
            on_host += static_cast<int>(sample.track == host);
        }
        order += consumed == 0 && order.find('k') == std::string::npos ? "l" : "!";
    }
    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) override {
        order += "k";
        all_steps = steps.size();
        all_tracks = tracks.size();
    }
    void consume(const resolve::ResolvedBatch& batch) override {
        for (const resolve::Sample& sample : batch.samples) {
            consumed += static_cast<int>(sample.phase == Phase::decode);
        }
    }
    void finish(const resolve::Resolution& resolution) override {
        order += "f";
        losses = resolution.losses.unresolved();
    }

    std::string order;
    int looked = 0, on_host = 0, consumed = 0;
    std::size_t all_steps = 0, all_tracks = 0;
    std::uint64_t losses = 0;

  private:
    bool looks_;
};

TEST(Reading, feeds_any_number_of_observers_in_two_passes) {
    Tape source = engine();
    Diary first, second, looking(true);
    ASSERT_TRUE(read::read(source, {&first, &looking, &second}).ok());
    EXPECT_EQ(source.passes_, 2);
    for (const Diary* diary : {&first, &second, &looking}) {
        EXPECT_EQ(diary->consumed, 9) << "three steps, three scopes on the host, three on the queue";
        EXPECT_EQ(diary->all_steps, 3u);
        EXPECT_EQ(diary->all_tracks, 2u);
    }
    EXPECT_EQ(first.order, "kf");
}

TEST(Reading, shows_samples_before_the_steps_are_known_to_who_asks_and_of_the_tracks_it_asks_for) {
    Tape source = engine();
    source.deliver_all();
    Diary looking(true), other;
    ASSERT_TRUE(read::read(source, {&looking, &other}).ok());
    EXPECT_EQ(looking.order, "lkf");
    EXPECT_EQ(looking.looked, 3) << "without a phase, with their steps";
    EXPECT_EQ(looking.on_host, 0);
    EXPECT_EQ(other.looked, 0);
    EXPECT_EQ(other.order, "kf");
}

TEST(Reading, counts_what_it_loses_once_though_it_was_looked_at_twice) {
    Tape source = engine();
    source.raw(queue, {7, pack(RecordKind::scope, Name(Brick::attention).id, 1)}); // long before its clock was read
    Diary plain, looking(true);
    ASSERT_TRUE(read::read(source, {&plain}).ok());
    ASSERT_TRUE(read::read(source, {&looking}).ok());
    EXPECT_EQ(plain.losses, 1u);
    EXPECT_EQ(looking.losses, 1u);
}

TEST(Reading, an_error_of_the_stream_is_the_answer_and_nobody_is_finished) {
    Tape source = engine();
    recording::RecordedRun run = source;
    run.for_each_batch = [](const auto&) {
        return Status(Error{ErrorCode::corrupt, "the disk is gone"});
    };
    Diary diary;
    const Status status = read::read(run, {&diary});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "the disk is gone");
    EXPECT_EQ(diary.order, "");
}

} // namespace
