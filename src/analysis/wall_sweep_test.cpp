// SPDX-License-Identifier: Apache-2.0
// The lanes of the wall account against an independent one: a map of every single nanosecond, filled while random threads
// and queues are simulated. Whole nanoseconds are even, since a planted tick is 2 ns.
#include "analysis/wall_sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analysis/planted_wall_testing.hpp"

namespace plumb::analysis::wall_sweep_test {
namespace {

constexpr std::int64_t length_ns = 1'200'000;
constexpr std::int64_t latency_ns = 3'000;
constexpr std::uint32_t main_thread = 1, helper_thread = 2, first_queue = WallEngine::queue;
constexpr std::size_t queues = 3; // two of one device, one of another
constexpr std::uint16_t first_name = 500, names = 5;

enum Doing : std::uint16_t { outside = 0, launching_for = 1000 }; // + queue; else the name of a scope

struct Map {
    std::vector<std::uint16_t> innermost[2] = {std::vector<std::uint16_t>(length_ns),
                                               std::vector<std::uint16_t>(length_ns)};
    std::vector<std::uint16_t> outer[2] = {std::vector<std::uint16_t>(length_ns),
                                           std::vector<std::uint16_t>(length_ns)};
    std::vector<std::uint8_t> present[2] = {std::vector<std::uint8_t>(length_ns), std::vector<std::uint8_t>(length_ns)};
    std::vector<std::uint8_t> busy[queues], host_bricks = std::vector<std::uint8_t>(length_ns);
    std::vector<std::int64_t> since[2] = {std::vector<std::int64_t>(length_ns), std::vector<std::int64_t>(length_ns)};
    Map() {
        for (auto& line : busy) {
            line.resize(length_ns);
        }
    }
};

struct Command {
    std::size_t queue;
    std::int64_t launch_begin, launch_end, begin, end, before;
};

/// Random bricks, launches and gaps of two threads; what the first one launches, a queue runs in order.
class World {
  public:
    explicit World(std::uint64_t seed) : random_(seed) {
        engine.source.metadata_.warmup_steps = 0;
        for (std::uint16_t i = 2; i < names; ++i) {
            engine.source.names_.push_back(
                {static_cast<std::uint16_t>(first_name + i), Category::other, "name " + std::to_string(i)});
        }
        engine.add_queue();
        engine.add_queue(WallEngine::second_queue);
        engine.add_other_device();
        engine.source.track(helper_thread, "helper");
    }

    void run() {
        now_ = 1'000;
        scope(0, 1'000); // a thread is tracked from its first record on
        for (std::uint64_t step = 0; now_ < length_ns - 200'000; ++step) {
            step_ = step;
            if (step != 0 && random_() % 2 == 0) {
                pass(0, 1'000, outside); // a record behind it shows that the thread was there
            }
            const std::int64_t begun = now_;
            first_ = first_ < 0 ? begun : first_;
            engine.source.step_begin(main_thread, step, Phase::decode, begun);
            while (now_ < begun + 60'000) {
                act(0, true);
            }
            engine.source.step_end(main_thread, Phase::decode, begun, now_);
            last_ = std::max(last_, now_);
            if (random_() % 3 == 0) {
                engine.source.deliver(main_thread);
            }
        }
        now_ = 30'000;
        while (now_ < length_ns - 250'000) {
            act(1, false);
        }
    }

    WallEngine engine;
    Map map;
    std::vector<Command> commands;
    [[nodiscard]] std::int64_t first() const { return first_; }
    [[nodiscard]] std::int64_t last() const { return last_; }

  private:
    std::int64_t some(std::int64_t most) {
        return 2 * static_cast<std::int64_t>(50 + random_() % static_cast<std::uint64_t>(most / 2));
    }

    void pass(int thread, std::int64_t length, std::uint16_t doing, std::uint16_t around = 0) {
        for (std::int64_t t = now_; t < now_ + length; ++t) {
            const auto at = static_cast<std::size_t>(t);
            map.innermost[thread][at] = doing;
            map.outer[thread][at] = around;
            map.present[thread][at] = 1;
            map.since[thread][at] = now_;
        }
        now_ += length;
    }
    void scope(int thread, std::int64_t length, std::uint16_t around = 0) {
        const auto name = static_cast<std::uint16_t>(first_name + 1 + random_() % (names - 1));
        const std::int64_t begun = now_;
        pass(thread, length, name, around);
        for (std::int64_t t = begun; t < now_; ++t) {
            ++map.host_bricks[static_cast<std::size_t>(t)];
        }
        engine.source.scope(thread == 0 ? main_thread : helper_thread, Name{name}, begun, now_);
    }
    void launch(int thread, std::uint16_t around = 0) {
        const std::size_t queue = random_() % queues;
        Command made{};
        made.queue = queue;
        made.launch_begin = now_;
        pass(thread, some(4'000), static_cast<std::uint16_t>(launching_for + queue), around);
        made.launch_end = now_;
        made.before = free_[queue];
        made.begin = std::max(now_ + latency_ns, free_[queue]);
        if (random_() % 5 == 0) {
            made.begin += some(12'000); // it waited for something else
        }
        made.end = made.begin + some(9'000);
        free_[queue] = made.end;
        last_ = std::max(last_, made.end); // a step ends with the last that it gave to a device
        const resolve::NodeKey submission =
            engine.source.submit_scope(main_thread, Brick::attention, id(queue), made.launch_begin, made.launch_end);
        engine.source.cause(id(queue), submission);
        engine.source.device_scope(id(queue), Brick::attention, step_, -1, made.begin, made.end);
        for (std::int64_t t = made.begin; t < made.end; ++t) {
            ++map.busy[queue][static_cast<std::size_t>(t)];
        }
        commands.push_back(made);
        if (random_() % 20 == 0) {
            engine.source.deliver(main_thread); // a writer writes no scope before its launch
            engine.source.deliver(id(queue));
        }
    }
    void act(int thread, bool feeds) {
        const auto choice = random_() % 8;
        if (choice < 3 && feeds) {
            launch(thread);
        } else if (choice < 5) {
            scope(thread, some(6'000));
        } else if (choice == 5) {
            parent(thread, feeds);
        } else {
            pass(thread, some(5'000), outside);
        }
    }
    void parent(int thread, bool feeds) {
        const std::int64_t begun = now_;
        for (int i = 0; i < 3; ++i) {
            pass(thread, some(3'000), first_name, first_name);
            if (feeds && i == 1) {
                launch(thread, first_name);
            } else {
                scope(thread, some(2'000), first_name);
            }
        }
        engine.source.scope(thread == 0 ? main_thread : helper_thread, Name{first_name}, begun, now_);
    }
    static std::uint32_t id(std::size_t queue) { return first_queue + static_cast<std::uint32_t>(queue); }

    std::mt19937_64 random_;
    std::int64_t now_ = 0, first_ = -1, last_ = 0;
    std::int64_t free_[queues] = {};
    std::uint64_t step_ = 0;
};

/// Twice the median from the end of a launch to its command, of commands that found their queue empty.
std::int64_t patience_of(const std::vector<Command>& commands, std::size_t queue) {
    std::vector<std::int64_t> waits;
    for (const Command& command : commands) {
        if (command.queue == queue && command.before <= command.launch_end) {
            waits.push_back(command.begin - command.launch_end);
        }
    }
    std::sort(waits.begin(), waits.end());
    return waits.empty() ? 0 : 2 * waits[waits.size() / 2];
}

struct Truth {
    double busy = 0, busy_sum = 0, host_waits = 0, exposed = 0, host = 0, queued = 0, unnamed = 0, off_cpu = 0;
    std::map<std::uint16_t, double> self, total;
};

Truth count(const World& world, const std::vector<std::size_t>& of_lane) {
    std::vector<std::uint8_t> flying(length_ns), queued(length_ns);
    const auto in_lane = [&](std::size_t queue) {
        return std::find(of_lane.begin(), of_lane.end(), queue) != of_lane.end();
    };
    for (const Command& command : world.commands) {
        if (!in_lane(command.queue)) {
            continue;
        }
        const std::int64_t arrived = command.launch_end + patience_of(world.commands, command.queue);
        for (std::int64_t t = command.launch_end; t < command.begin && t < length_ns; ++t) {
            ++(t < arrived ? flying : queued)[static_cast<std::size_t>(t)];
        }
    }
    Truth truth;
    const Map& map = world.map;
    const auto launches = [&](std::size_t t) {
        const std::uint16_t doing = map.innermost[0][t];
        return doing >= launching_for && in_lane(static_cast<std::size_t>(doing - launching_for));
    };
    for (auto t = static_cast<std::size_t>(world.first()); t < static_cast<std::size_t>(world.last()); ++t) {
        int busy = 0;
        for (const std::size_t queue : of_lane) {
            busy += map.busy[queue][t] != 0 ? 1 : 0;
        }
        if (busy != 0) {
            truth.busy += 1;
            truth.busy_sum += busy;
            truth.host_waits += map.innermost[0][t] == outside ? 1 : 0;
            continue;
        }
        if (queued[t] != 0) {
            truth.queued += 1;
        } else if (flying[t] != 0 || launches(t)) {
            truth.exposed += 1;
        } else if (const int thread = map.innermost[0][t] != outside ? 0 : 1; map.innermost[thread][t] != outside) {
            truth.host += 1;
            std::uint16_t name = map.innermost[thread][t];
            name = name >= launching_for ? Name(Brick::attention).id : name; // for the other device
            truth.self[name] += 1;
            truth.total[name] += 1;
            if (map.outer[thread][t] != 0 && map.outer[thread][t] != name) {
                truth.total[map.outer[thread][t]] += 1;
            }
        } else {
            (map.present[0][t] != 0 || map.present[1][t] != 0 ? truth.unnamed : truth.off_cpu) += 1;
        }
    }
    return truth;
}

void compare(std::uint64_t seed) {
    World world(seed);
    world.run();
    const WallPhase phase = world.engine.decode();
    expect_adds_up(phase);
    ASSERT_EQ(phase.lanes.size(), 4u);
    const std::vector<std::vector<std::size_t>> lanes = {{0, 1, 2}, {0, 1}, {2}};
    std::map<std::string, std::uint16_t> ids = {
        {"attention", Name(Brick::attention).id}, {"tokenize", 500}, {"prepare", 501}};
    for (std::uint16_t i = 2; i < names; ++i) {
        ids["name " + std::to_string(i)] = static_cast<std::uint16_t>(first_name + i);
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        const Truth truth = count(world, lanes[i]);
        const WallLane& lane = phase.lanes[i + 1];
        EXPECT_EQ(lane.period_ns, static_cast<double>(world.last() - world.first()));
        EXPECT_EQ(value_of(lane.busy_ns), truth.busy) << lane.name << " " << seed;
        EXPECT_EQ(value_of(lane.busy_sum_ns), truth.busy_sum) << lane.name << " " << seed;
        EXPECT_EQ(value_of(lane.host_waits_ns), truth.host_waits) << lane.name << " " << seed;
        EXPECT_EQ(value_of(lane.idle.exposed_launch), truth.exposed) << lane.name << " " << seed;
        EXPECT_EQ(value_of(lane.idle.host_work), truth.host) << lane.name << " " << seed;
        EXPECT_EQ(value_of(lane.idle.queued), truth.queued) << lane.name << " " << seed;
        EXPECT_EQ(value_of(lane.idle.unnamed), truth.unnamed) << lane.name << " " << seed;
        EXPECT_EQ(value_of(lane.idle.off_cpu), truth.off_cpu) << lane.name << " " << seed;
        EXPECT_GT(truth.exposed * truth.host * truth.queued * truth.unnamed, 0) << "the simulation holds all kinds";
        for (const WallScope& scope : lane.idle.scopes) {
            ASSERT_EQ(ids.count(scope.name), 1u) << scope.name;
            const auto self = truth.self.find(ids[scope.name]);
            EXPECT_EQ(scope.self_ns, self == truth.self.end() ? 0 : self->second) << scope.name << " " << seed;
            EXPECT_EQ(scope.total_ns, truth.total.at(ids[scope.name])) << scope.name << " " << seed;
        }
    }
}

TEST(WallSweep, every_kind_of_idle_time_agrees_with_a_map_of_every_nanosecond) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        compare(seed);
    }
}

Detail detail(Detail::Kind kind, std::int64_t begin, std::int64_t end, std::uint32_t track = 0,
              std::uint16_t name = 0) {
    Detail made;
    made.kind = kind;
    made.interval = {begin, end};
    made.track = track;
    made.name = name;
    return made;
}

TEST(WallSweep, a_period_without_details_is_idle_with_nobody_on_the_cpu) {
    WallSweep sweep;
    const LaneSums device = sweep.lane({0, 100}, {}, {Role::feeder, Role::queue}, true);
    EXPECT_EQ(device.off_cpu, 100);
    const LaneSums host = sweep.lane({0, 100}, {}, {Role::thread}, false);
    EXPECT_EQ(host.waiting, 100);
    EXPECT_EQ(host.busy, 0);
}

TEST(WallSweep, pieces_that_touch_hand_over_without_a_gap) {
    WallSweep sweep;
    const std::vector<Detail> details = {detail(Detail::Kind::piece, 50, 100, 0, 8),
                                         detail(Detail::Kind::piece, 0, 50, 0, 7),
                                         detail(Detail::Kind::presence, 0, 100, 0)};
    const LaneSums device = sweep.lane({0, 100}, details, {Role::feeder, Role::queue}, true);
    EXPECT_EQ(device.host, 100);
    EXPECT_EQ(device.scopes.at(7).self, 50);
    EXPECT_EQ(device.scopes.at(8).self, 50);
}

} // namespace
} // namespace plumb::analysis::wall_sweep_test
