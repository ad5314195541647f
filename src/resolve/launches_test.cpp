// SPDX-License-Identifier: Apache-2.0
// Which launch began which device scope: exact where the recording says it, whatever else is lost, and inferred for recordings
// that do not say it.
#include "resolve/launches.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/layout.hpp"
#include "planted/tape.hpp"
#include "resolve/resolve.hpp"

namespace plumb::resolve {
namespace {

using planted::Tape;
using planted::us;

constexpr std::uint32_t first_host = 1, other_host = 2, first_queue = 0x80000001, other_queue = 0x80000002;
constexpr Brick brick = Brick::attention;

/// An engine whose n-th launch begins at n us.
class Engine {
  public:
    explicit Engine(bool tells = true) : tells_(tells) {
        source.track(first_host);
        source.track(other_host, "other");
        for (const std::uint32_t id : {first_queue, other_queue}) {
            recording::TrackInfo info;
            info.id = id;
            info.kind = recording::TrackKind::device_queue;
            info.name = "stream";
            info.source = "cuda_event";
            source.device_track(info);
        }
    }
    NodeKey launch(std::uint32_t thread = first_host, std::uint32_t to = first_queue, Name name = brick) {
        const std::int64_t begin = ++launched * us;
        return source.submit_scope(thread, name, to, begin, begin + us / 2);
    }
    /// In the recording nothing is left of it.
    NodeKey lost_launch(std::uint32_t thread = first_host) {
        ++launched;
        const NodeKey key{thread, source.written(thread) + 1};
        source.lose(thread, 2);
        return key;
    }
    void ran(NodeKey cause, std::uint32_t where = first_queue, Name name = brick) {
        source.deliver(first_host); // a writer writes no scope before its launch
        source.deliver(other_host);
        if (tells_) {
            source.cause(where, cause);
        }
        const std::int64_t begin = 500 * us + ++run * 10 * us;
        source.device_scope(where, name, 0, 3, begin, begin + 5 * us);
    }

    /// Of the scopes in the order they ran: which launch each had, "-" for none, "?" before an inferred one.
    std::vector<std::string> links() {
        std::vector<std::string> all;
        const auto read = resolve_samples(source, {}, [&](const ResolvedBatch& batch) {
            for (const Sample& sample : batch.samples) {
                if (sample.launch == no_launch) {
                    all.emplace_back("-");
                    continue;
                }
                const Launch& launch = batch.launches[sample.launch];
                EXPECT_EQ(launch.end_ns - launch.begin_ns, us / 2);
                all.push_back((launch.inferred ? "?" : "") + std::to_string(launch.begin_ns / us) +
                              (launch.track == first_host ? "" : " of another"));
            }
        });
        EXPECT_TRUE(read.ok());
        return all;
    }

    Tape source;
    std::int64_t launched = 0, run = 0;

  private:
    bool tells_;
};

using Links = std::vector<std::string>;

TEST(Launches, of_equal_names_in_one_layer_each_has_its_own_though_some_never_ran) {
    Engine engine;
    std::vector<NodeKey> made;
    for (int i = 0; i < 5; ++i) {
        made.push_back(engine.launch());
    }
    for (const std::size_t i : {0u, 2u, 4u}) { // the time of the second and fourth never came
        engine.ran(made[i]);
    }
    EXPECT_EQ(engine.links(), (Links{"1", "3", "5"}));
}

TEST(Launches, a_lost_record_of_the_host_unlinks_its_scope_and_no_other) {
    Engine engine;
    std::vector<NodeKey> made{engine.launch(), engine.lost_launch(), engine.launch(), engine.launch()};
    for (const NodeKey& key : made) {
        engine.ran(key);
    }
    EXPECT_EQ(engine.links(), (Links{"1", "-", "3", "4"}));
}

TEST(Launches, a_lost_record_of_the_device_unlinks_its_scope_and_no_other) {
    Engine engine;
    std::vector<NodeKey> made{engine.launch(), engine.launch(), engine.launch(), engine.launch()};
    engine.ran(made[0]);
    engine.source.lose(first_queue, 4); // the second scope, with what stands around it
    engine.source.cause(first_queue, made[2]);
    engine.source.lose(first_queue, 1); // the context of the third
    engine.source.device_scope(first_queue, brick, 0, 3, 800 * us, 801 * us);
    engine.ran(made[3]);
    EXPECT_EQ(engine.links(), (Links{"1", "-", "4"}))
        << "what stood before the gap says nothing about what is behind it";
}

TEST(Launches, two_threads_that_launch_on_one_queue_are_told_apart) {
    Engine engine;
    const NodeKey a = engine.launch(first_host), b = engine.launch(other_host), c = engine.launch(other_host),
                  d = engine.launch(first_host);
    for (const NodeKey& key : {b, a, d, c}) {
        engine.ran(key);
    }
    EXPECT_EQ(engine.links(), (Links{"2 of another", "1", "4", "3 of another"}));
}

TEST(Launches, scopes_that_are_written_in_another_order_keep_their_launches) {
    Engine engine;
    std::vector<NodeKey> made;
    for (int i = 0; i < 4; ++i) {
        made.push_back(engine.launch(first_host, i % 2 == 0 ? first_queue : other_queue));
    }
    engine.ran(made[2]); // a command buffer that was submitted first
    engine.ran(made[0]);
    engine.ran(made[3], other_queue);
    engine.ran(made[1], other_queue);
    EXPECT_EQ(engine.links(), (Links{"3", "1", "4", "2"}));
}

TEST(Launches, a_scope_that_does_not_tell_gets_none_where_others_do) {
    Engine engine;
    const NodeKey a = engine.launch(), b = engine.launch();
    engine.ran(a);
    engine.source.device_scope(first_queue, brick, 0, 3, 800 * us, 801 * us);
    engine.ran(b);
    EXPECT_EQ(engine.links(), (Links{"1", "-", "2"}));
}

TEST(Launches, what_contradicts_its_launch_is_not_linked) {
    Engine engine;
    const NodeKey a = engine.launch(), b = engine.launch(), c = engine.launch();
    engine.ran(a, other_queue);
    engine.ran(b, first_queue, Brick::rms_norm);
    engine.ran({first_host, c.sequence - 1}); // no launch, but the record before it
    engine.ran({77, c.sequence});
    engine.ran({first_host, ~std::uint64_t{0}});
    engine.ran(c);
    engine.ran(c); // a launch begins one scope
    EXPECT_EQ(engine.links(), (Links{"-", "-", "-", "-", "3", "-", "-"})) << "the other queue comes last";
}

TEST(Launches, a_launch_without_a_time_is_none) {
    Engine engine;
    engine.source.raw(first_host, {1, pack(RecordKind::device_scope, Name(brick).id, first_queue)});
    engine.ran({first_host, 0});
    EXPECT_EQ(engine.links(), Links{"-"});
}

/// By any names, on any queue.
TEST(Launches, a_linked_replay_begins_many_scopes_and_another_one_none) {
    Engine engine;
    const auto replay = [&](std::uint16_t flags) {
        const std::int64_t begin = ++engine.launched * us;
        return engine.source.launch(first_host, 64, flags, first_queue, begin, begin + us / 2);
    };
    const NodeKey first = replay(launch_linked), plain = replay(0), second = replay(launch_linked | launch_gapless);
    const NodeKey eager = engine.launch();
    engine.ran(first);
    engine.ran(second, other_queue);
    engine.ran(plain);
    engine.ran(first, first_queue, Brick::rms_norm);
    engine.ran(eager);
    engine.ran(first, other_queue);
    EXPECT_EQ(engine.links(), (Links{"1", "-", "1", "4", "3", "1"})) << "the other queue comes last";
}

TEST(Launches, the_latest_replays_are_remembered) {
    Launches launches(true);
    Submission made;
    made.timed = made.graph = true;
    made.flags = launch_linked;
    made.track = first_host;
    for (std::uint64_t i = 0; i <= Launches::max_replays; ++i) {
        made.begin_ns = static_cast<std::int64_t>(i);
        launches.submitted(made, i);
    }
    EXPECT_FALSE(launches.of({}, Cause{first_host, 0}));
    EXPECT_EQ(launches.of({}, Cause{first_host, 1})->begin_ns, 1);
    EXPECT_TRUE(launches.of({}, Cause{first_host, 1})->replay);
}

TEST(Launches, of_a_recording_that_does_not_tell_they_are_inferred_by_name_and_layer_and_marked) {
    Engine engine(false);
    const NodeKey outside = engine.launch();
    (void)outside;
    engine.source.context(first_host, 0, 3);
    for (const Name name : {Name(brick), Name(Brick::rms_norm), Name(brick)}) {
        (void)engine.launch(first_host, first_queue, name);
    }
    engine.ran({});
    engine.ran({});
    engine.ran({}, first_queue, Brick::rms_norm);
    engine.ran({}, other_queue);
    EXPECT_EQ(engine.links(), (Links{"?2", "?4", "?3", "-"}));
}

TEST(Launches, numbers_are_those_of_what_something_on_a_device_may_come_from) {
    Engine engine;
    const NodeKey a = engine.launch();
    engine.source.launch(first_host, 64, 0, first_queue, 2 * us, 3 * us);
    engine.source.launch(first_host, 64, launch_instrumented, first_queue, 4 * us, 5 * us);
    engine.source.launch(first_host, 64, launch_linked, first_queue, 6 * us, 7 * us);
    engine.source.raw(first_host, {1, pack(RecordKind::device_scope, Name(brick).id, first_queue)});
    const NodeKey b = engine.launch();
    engine.ran(b);
    engine.ran(a);
    std::vector<std::uint64_t> numbers, linked;
    ASSERT_TRUE(resolve_samples(engine.source, {}, [&](const ResolvedBatch& batch) {
                    for (const Submission& made : batch.submissions) {
                        numbers.push_back(made.number);
                    }
                    for (const Sample& sample : batch.samples) {
                        ASSERT_NE(sample.launch, no_launch);
                        linked.push_back(batch.launches[sample.launch].number);
                    }
                }).ok());
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 0, 2, 3, 0, 4}));
    EXPECT_EQ(linked, (std::vector<std::uint64_t>{4, 1}));
}

TEST(Launches, what_waits_longest_is_given_up_first_and_memory_is_bounded) {
    Launches launches(true);
    Submission made;
    made.timed = true;
    made.track = first_host;
    made.queue = first_queue;
    made.name = Name(brick).id;
    Sample scope;
    scope.track = first_queue;
    scope.name = made.name;
    const std::uint64_t count = Launches::max_waiting + 1;
    for (std::uint64_t i = 0; i < count; ++i) {
        made.begin_ns = static_cast<std::int64_t>(i);
        launches.submitted(made, i);
    }
    EXPECT_FALSE(launches.of(scope, Cause{first_host, 0}));
    EXPECT_FALSE(launches.of(scope, Cause{first_host, Launches::max_waiting / 2 - 1}));
    const auto kept = launches.of(scope, Cause{first_host, Launches::max_waiting / 2});
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->begin_ns, static_cast<std::int64_t>(Launches::max_waiting / 2));
    EXPECT_TRUE(launches.of(scope, Cause{first_host, count - 1}));
}

} // namespace
} // namespace plumb::resolve
