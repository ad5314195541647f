// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "plumb/profiler.hpp"
#include "session/config_keys.hpp"

namespace plumb {
namespace {

Config parsed(std::string_view spec) {
    const Result<Config> config = Config::parse(spec);
    EXPECT_TRUE(config.ok()) << spec << ": " << (config.ok() ? "" : config.error().message);
    return config.ok() ? *config : Config{};
}

std::string refusal(std::string_view spec) {
    const Result<Config> config = Config::parse(spec);
    EXPECT_FALSE(config.ok()) << spec;
    if (config.ok()) {
        return "";
    }
    EXPECT_EQ(config.error().code, ErrorCode::invalid_argument);
    return config.error().message;
}

class PlumbVariable {
  public:
    explicit PlumbVariable(const char* value) { value != nullptr ? setenv("PLUMB", value, 1) : unsetenv("PLUMB"); }
    ~PlumbVariable() { unsetenv("PLUMB"); }
    PlumbVariable(const PlumbVariable&) = delete;
    PlumbVariable& operator=(const PlumbVariable&) = delete;
};

TEST(Config, F16_off_zero_and_the_empty_string_are_off) {
    for (const char* spec : {"", "0", "off", "off,out=none", "on,off", "1,0"}) {
        EXPECT_FALSE(parsed(spec).on) << spec;
    }
    for (const char* spec : {"1", "on", "on,out=none", "off,on"}) {
        EXPECT_TRUE(parsed(spec).on) << spec;
    }
}

TEST(Config, M1_a_variable_that_is_unset_empty_zero_or_off_is_off) {
    for (const char* value : {static_cast<const char*>(nullptr), "", "0", "off"}) {
        const PlumbVariable variable(value);
        const Result<Config> config = Config::from_env();
        ASSERT_TRUE(config.ok());
        EXPECT_FALSE(config->on) << (value == nullptr ? "unset" : value);
    }
    const PlumbVariable variable("on,out=none");
    EXPECT_TRUE(Config::from_env()->on);
    EXPECT_EQ(Config::from_env()->out, "none");
}

TEST(Config, M1_the_presence_of_other_keys_does_not_turn_it_on) {
    EXPECT_FALSE(parsed("out=run.plumb").on);
    EXPECT_FALSE(parsed("sync=immediate,ring=65536").on);
}

TEST(Config, F16_an_unknown_key_lists_the_known_ones) {
    for (const char* spec :
         {"on,ouT=x", "yes", "true", "2", "on,rings=1MiB", "on,,off", " on", "on=1", "off=", "=", "on,out"}) {
        EXPECT_FALSE(refusal(spec).empty());
    }
    const std::string message = refusal("on,colour=red");
    EXPECT_NE(message.find("\"colour\""), std::string::npos) << message;
    for (const ConfigKey& key : config_keys()) {
        EXPECT_NE(message.find(std::string(key.key) + "="), std::string::npos) << message;
    }
}

TEST(Config, F16_a_value_that_does_not_fit_names_its_grammar) {
    for (const char* spec : {"ring=4095",
                             "ring=2GiB",
                             "ring=-5",
                             "ring=1e6",
                             "ring=1 MiB",
                             "ring=",
                             "ring=inf",
                             "max_size=10",
                             "max_size=lots",
                             "keep=60",
                             "keep=0s",
                             "keep=-1s",
                             "keep=infs",
                             "keep=nans",
                             "keep=99999999999h",
                             "sync=always",
                             "sync=",
                             "warmup=-1",
                             "warmup=2.5",
                             "warmup=1KiB",
                             "warmup=99999999999999999999",
                             "fork=yes",
                             "redact=1",
                             "rank=x",
                             "rank=8/8",
                             "rank=3+tp=1",
                             "out=",
                             "out=%z.plumb",
                             "out=run-%",
                             "out=%%%",
                             "metrics=run-%d.prom",
                             "device.every=0",
                             "graph.every=0",
                             "graph.stamps=all",
                             "graph.upload=twice",
                             "graph.sync=yes",
                             "graph.profile=0",
                             "tiles=1",
                             "tiles=",
                             "tiles=65537",
                             "tiles=yes"}) {
        const std::string message = refusal(spec);
        EXPECT_NE(message.find(spec), std::string::npos) << message;
        EXPECT_NE(message.find("takes"), std::string::npos) << message;
    }
}

TEST(Config, a_number_of_tiles_that_is_refused_is_told_the_range) {
    EXPECT_NE(refusal("tiles=15").find("tiles= takes off, on, or a number of tiles from 16 to 65536"),
              std::string::npos)
        << refusal("tiles=15");
}

TEST(Config, F16_a_key_that_is_set_alone_is_refused_in_the_words_of_who_typed_it) {
    Config config = parsed("on,tensors=all,dump=tensors");
    const std::string before = config.spec();
    const Status option = config.set("tensors", "all+every=0", "--tensors");
    ASSERT_FALSE(option.ok());
    EXPECT_EQ(option.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(
        option.error().message.find("--tensors \"all+every=0\" does not fit; --tensors takes off, nonfinite, all"), 0u)
        << option.error().message;
    EXPECT_EQ(option.error().message.find("PLUMB"), std::string::npos);
    EXPECT_EQ(config.spec(), before) << "a refused value changes nothing";
    EXPECT_EQ(config.set("tensors", "all+every=0").error().message, refusal("tensors=all+every=0"));
    EXPECT_EQ(config.set("chek", "all").error().message, refusal("chek=all"));
    EXPECT_EQ(config.set("tenors", "all", "--tensors").error().message.find("--tensors: unknown key \"tenors\""), 0u);
    EXPECT_FALSE(config.set("out", "", "--out").ok());
    EXPECT_TRUE(config.set("out", "a,b.plumb").ok()) << "a comma ends a word of the spec only";
    EXPECT_EQ(config.out, "a,b.plumb");
    EXPECT_TRUE(config.set("tensors", "nonfinite", "--tensors").ok());
    EXPECT_EQ(config.tensors.level, TensorConfig::Level::nonfinite);
    EXPECT_FALSE(config.validate().ok()) << "its dump would stay empty";
}

TEST(Config, keys_that_do_not_go_together_are_refused_however_they_were_set) {
    EXPECT_FALSE(Config::parse("on,dump=tensors").ok());
    EXPECT_FALSE(Config::parse("on,fork=own,out=run.plumb").ok());
    Config config = parsed("on,fork=own,out=run-%p.plumb");
    EXPECT_TRUE(config.validate().ok());
    config.out = "run.plumb";
    EXPECT_EQ(config.validate().error().message,
              "fork=own needs %p in the name of the recording, so that every process has a file of its own");
    const Profiler prof(config);
    EXPECT_EQ(prof.status().error().message, config.validate().error().message);
}

TEST(Config, a_placeholder_that_there_is_not_is_refused_where_a_program_set_it_too) {
    Config config;
    config.on = true;
    config.out = testing::TempDir() + "run-%z.plumb";
    const Profiler prof(config);
    EXPECT_EQ(prof.status().error().message,
              "\"" + config.out + "\" holds a % that is not of %p (pid), %h (host), %r (rank) or %% (a percent sign)");
    config.out = "run-%p-%%.plumb";
    EXPECT_TRUE(config.validate().ok());
    config.metrics = "946%d";
    EXPECT_FALSE(config.validate().ok());
}

TEST(Config, every_key_is_read) {
    const Config defaults;
    EXPECT_EQ(parsed("out=a/b-%p.plumb").out, "a/b-%p.plumb");
    EXPECT_EQ(parsed("out=100%%/%h-%r.plumb").out, "100%%/%h-%r.plumb");
    EXPECT_EQ(parsed("ring=65536").ring_bytes, 65536u);
    EXPECT_EQ(parsed("ring=512KiB").ring_bytes, 512u * 1024);
    EXPECT_EQ(parsed("ring=1.5MiB").ring_bytes, 3u * 512 * 1024);
    EXPECT_EQ(parsed("max_size=100MB").max_bytes, 100'000'000u);
    EXPECT_EQ(parsed("max_size=2GiB").max_bytes, std::uint64_t{2} << 30);
    EXPECT_DOUBLE_EQ(parsed("keep=500ms").keep_seconds, 0.5);
    EXPECT_DOUBLE_EQ(parsed("keep=60s").keep_seconds, 60);
    EXPECT_DOUBLE_EQ(parsed("keep=5min").keep_seconds, 300);
    EXPECT_DOUBLE_EQ(parsed("keep=1h").keep_seconds, 3600);
    EXPECT_EQ(parsed("sync=deferred").sync, SyncMode::deferred);
    EXPECT_EQ(parsed("sync=immediate").sync, SyncMode::immediate);
    EXPECT_EQ(parsed("sync=per_layer").sync, SyncMode::per_layer);
    EXPECT_EQ(parsed("sync=none").sync, SyncMode::none);
    EXPECT_EQ(parsed("warmup=0").warmup_steps, 0u);
    EXPECT_EQ(parsed("warmup=12").warmup_steps, 12u);
    EXPECT_TRUE(parsed("fork=own").follow_fork);
    EXPECT_FALSE(parsed("fork=own,fork=off").follow_fork);
    EXPECT_TRUE(parsed("redact=on").redact);
    EXPECT_FALSE(parsed("redact=off").redact);
    EXPECT_TRUE(parsed("nvtx=on").nvtx);
    EXPECT_FALSE(parsed("nvtx=on,nvtx=off").nvtx);
    EXPECT_EQ(parsed("device.every=3").device_every, 3u);
    EXPECT_EQ(parsed("graph.stamps=cheapest").graph.stamps, GraphStamps::cheapest);
    EXPECT_EQ(parsed("graph.stamps=events").graph.stamps, GraphStamps::events);
    EXPECT_EQ(parsed("graph.stamps=kernels").graph.stamps, GraphStamps::kernels);
    EXPECT_EQ(parsed("graph.stamps=off").graph.stamps, GraphStamps::off);
    EXPECT_EQ(parsed("graph.every=5").graph.every, 5u);
    EXPECT_EQ(parsed("graph.every=5,graph.every=auto").graph.every, 0u);
    EXPECT_TRUE(parsed("graph.upload=each").graph.upload_each);
    EXPECT_FALSE(parsed("graph.upload=each,graph.upload=once").graph.upload_each);
    EXPECT_TRUE(parsed("graph.sync=on").graph.sync);
    EXPECT_EQ(parsed("graph.profile=64").graph.profile, 64u);
    EXPECT_EQ(parsed("graph.profile=64,graph.profile=off").graph.profile, 0u);
    EXPECT_EQ(defaults.tensors.level, TensorConfig::Level::off);
    EXPECT_EQ(parsed("tensors=nonfinite").tensors.level, TensorConfig::Level::nonfinite);
    EXPECT_EQ(parsed("tensors=every=4").tensors.level, TensorConfig::Level::all);
    EXPECT_EQ(parsed("tensors=every=4").tensors.every, 4u);
    EXPECT_EQ(parsed("tensors=all+bricks=attention/lm_head").tensors.bricks,
              (std::vector<std::string>{"attention", "lm_head"}));
    EXPECT_EQ(parsed("tensors=all+layers=0-3/7").tensors.layers,
              (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 3}, {7, 7}}));
    EXPECT_EQ(parsed("tensors=all,tensors=off").tensors.level, TensorConfig::Level::off);
    EXPECT_EQ(parsed("tensors=all,dump=tensors").tensors.dump, "tensors");
    EXPECT_EQ(parsed("dump=tensors,tensors=all").tensors.dump, "tensors");
    EXPECT_EQ(defaults.tiles, 0u);
    EXPECT_EQ(parsed("tiles=on").tiles, 4096u);
    EXPECT_EQ(parsed("tiles=on,tiles=off").tiles, 0u);
    EXPECT_EQ(parsed("tiles=100").tiles, 100u);
    EXPECT_EQ(parsed("metrics=127.0.0.1:9464").metrics, "127.0.0.1:9464");
    EXPECT_EQ(parsed("rank=3/8+tp=1/4").rank, "3/8+tp=1/4");
    EXPECT_EQ(parsed(parsed("rank=3/8+tp=1/4").spec()).rank, "3/8+tp=1/4");
    EXPECT_EQ(config_keys().size(), 21u) << "a new key needs a line here and a test of what it does";
    EXPECT_EQ(parsed("").spec(), defaults.spec());
}

TEST(Config, check_is_the_key_of_version_0_1_for_tensors) {
    const Config old = parsed("on,check=nonfinite+every=4");
    EXPECT_EQ(old.tensors.level, TensorConfig::Level::nonfinite);
    EXPECT_EQ(old.tensors.every, 4u);
    EXPECT_TRUE(old.tensors.by_old_key);
    EXPECT_FALSE(parsed("on,tensors=nonfinite").tensors.by_old_key);
    EXPECT_EQ(old.spec(), parsed("on,tensors=nonfinite+every=4").spec());
    EXPECT_EQ(refusal("nonsense=1").find("check="), std::string::npos) << "it is not among the known keys";
}

TEST(Config, a_choice_of_tensors_that_does_not_fit_is_refused) {
    for (const char* spec : {"tensors=", "tensors=some", "tensors=all+", "tensors=every=0", "tensors=every=x",
                             "tensors=bricks=", "tensors=bricks=a//b", "tensors=layers=3-1", "tensors=layers=x",
                             "tensors=layers=70000", "dump=", "tensors", "check=some"}) {
        EXPECT_NE(refusal(spec).find("does not fit"), std::string::npos) << spec;
    }
    EXPECT_NE(refusal("dump=tensors").find("tensors=all"), std::string::npos);
    EXPECT_NE(refusal("tensors=nonfinite,dump=tensors").find("tensors=all"), std::string::npos);
}

TEST(Config, a_forked_child_must_not_write_into_the_same_file) {
    EXPECT_NE(refusal("fork=own,out=run.plumb").find("%p"), std::string::npos);
    EXPECT_NE(refusal("fork=own,out=run-%%p.plumb").find("%p"), std::string::npos) << "a percent sign, and a p";
    EXPECT_TRUE(parsed("fork=own,out=run-%%%p.plumb").follow_fork);
}

TEST(Config, its_spec_gives_the_same_config_again) {
    for (const char* spec :
         {"", "on", "on,out=x-%p.plumb,ring=4096,max_size=1MiB,keep=1500ms,sync=immediate,warmup=3,fork=own,redact=on",
          "keep=0.25ms", "keep=3h,sync=none", "tensors=nonfinite",
          "tensors=every=4+bricks=attention/lm_head+layers=0-3/7,dump=tensors", "tiles=on", "on,tiles=16",
          "on,device.every=1,graph.stamps=kernels,graph.every=7,graph.upload=each,graph.sync=on,graph.profile=64"}) {
        const Config config = parsed(spec);
        const Config again = parsed(config.spec());
        EXPECT_EQ(again.spec(), config.spec());
        EXPECT_EQ(again.on, config.on);
        EXPECT_EQ(again.out, config.out);
        EXPECT_EQ(again.ring_bytes, config.ring_bytes);
        EXPECT_EQ(again.max_bytes, config.max_bytes);
        EXPECT_DOUBLE_EQ(again.keep_seconds, config.keep_seconds);
        EXPECT_EQ(again.sync, config.sync);
        EXPECT_EQ(again.warmup_steps, config.warmup_steps);
        EXPECT_EQ(again.follow_fork, config.follow_fork);
        EXPECT_EQ(again.redact, config.redact);
        EXPECT_EQ(again.device_every, config.device_every);
        EXPECT_EQ(again.graph.stamps, config.graph.stamps);
        EXPECT_EQ(again.graph.every, config.graph.every);
        EXPECT_EQ(again.graph.upload_each, config.graph.upload_each);
        EXPECT_EQ(again.graph.sync, config.graph.sync);
        EXPECT_EQ(again.graph.profile, config.graph.profile);
        EXPECT_EQ(again.tensors.level, config.tensors.level);
        EXPECT_EQ(again.tensors.every, config.tensors.every);
        EXPECT_EQ(again.tensors.bricks, config.tensors.bricks);
        EXPECT_EQ(again.tensors.layers, config.tensors.layers);
        EXPECT_EQ(again.tensors.dump, config.tensors.dump);
        EXPECT_EQ(again.tiles, config.tiles);
    }
}

// The page and the table say the same: a row per key, word for word.
TEST(Config, its_table_is_the_one_in_the_docs) {
    std::ifstream file(PLUMB_SOURCE_DIR "/docs/reference/configuration.md");
    ASSERT_TRUE(file) << "docs/reference/configuration.md is missing";
    std::vector<std::string> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("| `", 0) == 0 && line.find("=` |") != std::string::npos) {
            rows.push_back(line);
        }
    }
    std::vector<std::string> expected;
    for (const ConfigKey& key : config_keys()) {
        expected.push_back("| `" + std::string(key.key) + "=` | " + key.value + " | " + key.meaning + " |");
    }
    EXPECT_EQ(rows, expected);
}

} // namespace
} // namespace plumb
