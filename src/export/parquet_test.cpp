// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <sstream>

#include "export/export.hpp"
#include "export/parquet_file.hpp"
#include "export/parquet_reader_testing.hpp"
#include "export/planted_source_testing.hpp"
#include "plumb/backend.hpp"

namespace {

using namespace plumb;
using namespace plumb::exporting;
using plumb::exporting::parquet_testing::ParquetFile;
using resolve::SampleKind;
using Cells = std::vector<std::string>;

constexpr std::int64_t plain = 0;
constexpr std::int64_t delta = 5;

std::string table_of(const PlantedSource& source, const char* table) {
    std::ostringstream out;
    const Status written = write_table("parquet", table, source, out);
    EXPECT_TRUE(written.ok()) << written.error().message;
    return out.str();
}

TEST(Parquet, a_row_for_each_scope_and_layer_in_order_of_their_begins) {
    PlantedSource source;
    source.run.rank = "3";
    source.run.recording_id[1] = 0xab;
    source.add_steps(1, 1);
    source.samples[0].bytes = 4096;
    source.samples[0].flops = 1e12;
    source.samples[1].warmup = true;
    source.all_descriptions = {{"model", "tiny-llama"}};
    const std::string bytes = table_of(source, "scopes");
    const ParquetFile file(bytes);
    const auto column = [&](const char* name) {
        return file.columns.at(name);
    };
    EXPECT_EQ(file.groups, std::vector<std::int64_t>{3});
    EXPECT_EQ(column("recording"), Cells(3, "000000000000000000000000000000ab"));
    EXPECT_EQ(column("host"), Cells(3, "box"));
    EXPECT_EQ(column("rank"), Cells(3, "3"));
    EXPECT_EQ(column("kind"), (Cells{"scope", "layer", "scope"}));
    EXPECT_EQ(column("step"), Cells(3, "0"));
    EXPECT_EQ(column("phase"), Cells(3, "decode"));
    EXPECT_EQ(column("layer"), Cells(3, "0"));
    EXPECT_EQ(column("brick"), (Cells{"rms_norm", "null", "attention"}));
    EXPECT_EQ(column("category"), (Cells{"norm", "null", "attention"}));
    EXPECT_EQ(column("track"), Cells(3, "1"));
    EXPECT_EQ(column("track_name"), Cells(3, "main"));
    EXPECT_EQ(column("begin"), (Cells{"1000000007", "1000000007", "1000001241"}));
    EXPECT_EQ(column("duration"), (Cells{"1001", "2468", "1001"}));
    EXPECT_EQ(column("bytes"), (Cells{"4096", "null", "null"}));
    EXPECT_EQ(column("flops"), (Cells{"1000000000000", "null", "null"}));
    EXPECT_EQ(column("source"), Cells(3, "cpu_tsc"));
    EXPECT_EQ(column("leaf"), (Cells{"true", "null", "true"}));
    EXPECT_EQ(column("warmup"), (Cells{"false", "false", "true"}));
    EXPECT_EQ(column("flags"), Cells(3, ""));
    EXPECT_EQ(file.columns.size(), 19U);
    EXPECT_EQ(file.facts.at("plumb.schema"), "plumb.scopes/1");
    EXPECT_EQ(file.facts.at("plumb.description.model"), "tiny-llama");
}

TEST(Parquet, F1_what_was_recorded_one_by_one_has_rows_with_flags_and_no_length_where_none_was_timed) {
    PlantedSource source;
    source.add_track(7, recording::TrackKind::captured_graph, "graph 64", 64);
    source.add_device(7, 3, 3, 100, 50).flags = span_includes_launch_wait | span_below_floor;
    source.add_nodes();
    const std::string bytes = table_of(source, "scopes");
    const ParquetFile file(bytes);
    EXPECT_EQ(file.columns.at("kind"), (Cells{"scope", "kernel", "kernel", "kernel", "transfer", "task"}));
    EXPECT_EQ(file.columns.at("brick"),
              (Cells{"qkv_projection", "gemm<\"a\", b>", "gemm<\"a\", b>", "gemm<\"a\", b>", "copy_d2h", "unnamed"}));
    EXPECT_EQ(file.columns.at("duration"), (Cells{"50", "500", "500", "null", "40", "null"}));
    EXPECT_EQ(file.columns.at("track_name"), (Cells{"graph 64", "main", "main", "main", "main", "main"}));
    EXPECT_EQ(file.columns.at("source"),
              (Cells{"cuda_graph_event", "cpu_tsc", "cpu_tsc", "cpu_tsc", "cpu_tsc", "cpu_tsc"}));
    EXPECT_EQ(file.columns.at("bytes"), (Cells{"null", "null", "null", "null", "8192", "null"}));
    EXPECT_EQ(file.columns.at("leaf"), (Cells{"true", "null", "null", "null", "null", "null"}));
    EXPECT_EQ(file.columns.at("flags"), (Cells{"launch_wait below_floor", "", "", "told sampled", "", "told"}));
}

TEST(Parquet, T8_names_with_broken_text_are_valid_text) {
    PlantedSource source;
    source.all_names = {{300, Category::moe, "a,\"b\"\nc\xff"}};
    source.add(SampleKind::scope, 300, 0, 1);
    const std::string bytes = table_of(source, "scopes");
    EXPECT_EQ(ParquetFile(bytes).columns.at("brick"), Cells{"a,\"b\"\nc\xEF\xBF\xBD"});
}

TEST(Parquet, the_table_of_steps_says_what_each_computed) {
    PlantedSource source;
    resolve::ResolvedStep step;
    step.id = 12;
    step.phase = Phase::prefill;
    step.begin_ns = 500;
    step.end_ns = 900;
    step.period_begin_ns = 400;
    step.prefill_tokens = 64;
    step.sequences = 2;
    source.all_steps.push_back(step);
    step.id = 13;
    step.phase = Phase::decode;
    step.kv_length = 65;
    step.has_kv_length = step.warmup = step.left_out = true;
    source.all_steps.push_back(step);
    step.counted = false; // before a reset
    source.all_steps.push_back(step);
    const std::string bytes = table_of(source, "steps");
    const ParquetFile file(bytes);
    EXPECT_EQ(file.columns.at("step"), (Cells{"12", "13"}));
    EXPECT_EQ(file.columns.at("phase"), (Cells{"prefill", "decode"}));
    EXPECT_EQ(file.columns.at("begin"), Cells(2, "500"));
    EXPECT_EQ(file.columns.at("duration"), Cells(2, "400"));
    EXPECT_EQ(file.columns.at("period"), Cells(2, "500"));
    EXPECT_EQ(file.columns.at("prefill_tokens"), Cells(2, "64"));
    EXPECT_EQ(file.columns.at("decode_tokens"), Cells(2, "0"));
    EXPECT_EQ(file.columns.at("sequences"), Cells(2, "2"));
    EXPECT_EQ(file.columns.at("kv_length"), (Cells{"null", "65"}));
    EXPECT_EQ(file.columns.at("warmup"), (Cells{"false", "true"}));
    EXPECT_EQ(file.columns.at("flags"), (Cells{"", "sampled"}));
    EXPECT_EQ(file.columns.at("rank"), Cells(2, "null"));
}

TEST(Parquet, a_recording_without_samples_is_a_table_without_rows) {
    const PlantedSource source;
    for (const char* table : {"scopes", "steps"}) {
        const std::string bytes = table_of(source, table);
        const ParquetFile file(bytes);
        EXPECT_EQ(file.footer[3].number, 0);
        EXPECT_TRUE(file.groups.empty());
    }
}

TEST(Parquet, a_row_group_ends_at_2_to_the_20_rows_and_nothing_is_lost_at_its_border) {
    PlantedSource source;
    const std::size_t rows = (std::size_t{1} << 20) + 3;
    for (std::size_t i = 0; i < rows; ++i) {
        source.add(SampleKind::scope, 3, static_cast<std::int64_t>(i) * 100, 90);
    }
    const std::string bytes = table_of(source, "scopes");
    const ParquetFile file(bytes, "begin");
    EXPECT_EQ(file.groups, (std::vector<std::int64_t>{1 << 20, 3}));
    const Cells& begins = file.columns.at("begin");
    ASSERT_EQ(begins.size(), rows);
    for (std::size_t i = 0; i < rows; i += 1023) {
        ASSERT_EQ(begins[i], std::to_string(1'000'000'000 + 100 * i));
    }
    EXPECT_EQ(begins.back(), std::to_string(1'000'000'000 + 100 * (rows - 1)));
}

TEST(Parquet, the_files_of_a_recording_lie_in_folders_of_host_and_rank) {
    recording::Metadata run;
    run.recording_id[0] = 0x1234;
    run.host = "node 7/a";
    run.rank = "12";
    const auto paths = [&run] {
        Cells all;
        for (const Format* format : formats()) {
            for (const ExportFile& file : files_of(*format, run)) {
                all.push_back(file.path);
            }
        }
        return all;
    };
    EXPECT_EQ(paths(), (Cells{"scopes/host=node%207%2Fa/rank=12/00000000000012340000000000000000.parquet",
                              "steps/host=node%207%2Fa/rank=12/00000000000012340000000000000000.parquet"}));
    run.host = "";
    run.rank = "first";
    EXPECT_EQ(paths()[0], "scopes/host=__HIVE_DEFAULT_PARTITION__/rank=__HIVE_DEFAULT_PARTITION__/"
                          "00000000000012340000000000000000.parquet");
}

TEST(Parquet, it_is_no_stream_and_an_output_that_refuses_data_is_an_error) {
    PlantedSource source;
    source.add_steps(2, 2);
    std::ostringstream out;
    EXPECT_EQ(write_as("parquet", source, out).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(write_table("parquet", "layers", source, out).error().code, ErrorCode::not_found);
    out.setstate(std::ios::badbit);
    EXPECT_EQ(write_table("parquet", "scopes", source, out).error().code, ErrorCode::no_space);
}

TEST(Parquet, a_recording_that_cannot_be_read_to_its_end_is_an_error) {
    PlantedSource source;
    source.end = Error{ErrorCode::corrupt, "cut"};
    std::ostringstream out;
    EXPECT_EQ(write_table("parquet", "scopes", source, out).error().message, "cut");
    EXPECT_EQ(write_table("parquet", "steps", source, out).error().message, "cut");
}

/// One group of one column, as it is read again.
template <class Put>
ParquetFile written(std::string& bytes, parquet::ParquetColumn column, std::size_t rows, Put put) {
    std::ostringstream out;
    TextSink sink(out);
    parquet::ParquetWriter file(sink, {column});
    file.begin_group(rows);
    put(file);
    file.finish(0, {});
    EXPECT_TRUE(sink.flush().ok());
    EXPECT_TRUE(file.good());
    bytes = out.str();
    return ParquetFile(bytes);
}

TEST(Parquet, integers_of_every_width_come_back) {
    std::mt19937_64 random(7);
    for (unsigned bits = 0; bits <= 64; ++bits) {
        for (const std::size_t count : {1U, 2U, 32U, 33U, 128U, 129U, 130U, 161U, 1000U}) {
            std::vector<std::int64_t> values(count);
            for (std::int64_t& value : values) {
                value = bits == 0 ? 5 : static_cast<std::int64_t>(random() >> (64 - bits));
            }
            values[0] = bits == 64 ? std::numeric_limits<std::int64_t>::max() : values[0];
            values[count / 2] = no_integer;
            std::string bytes;
            const ParquetFile file =
                written(bytes, {"n", parquet::ColumnType::integer, true}, count,
                        [written_over = values](parquet::ParquetWriter& to) mutable { to.integers(written_over); });
            Cells expected;
            for (const std::int64_t value : values) {
                expected.push_back(value == no_integer ? "null" : std::to_string(value));
            }
            ASSERT_EQ(file.columns.at("n"), expected) << bits << " bits, " << count << " values";
        }
    }
}

TEST(Parquet, integers_are_written_as_differences_unless_the_values_take_less) {
    std::mt19937_64 random(7);
    std::vector<std::int64_t> rising(4096), alternating(4096);
    for (std::size_t i = 0; i < rising.size(); ++i) {
        rising[i] = static_cast<std::int64_t>(1'000'000'000'000 + i * 2000 + random() % 64);
        alternating[i] = static_cast<std::int64_t>((i % 2 == 0 ? 300'000 : 0) + random() % 256);
    }
    std::string bytes;
    const auto encoding = [&](const std::vector<std::int64_t>& values) {
        return written(bytes, {"n", parquet::ColumnType::integer}, values.size(),
                       [written_over = values](parquet::ParquetWriter& to) mutable { to.integers(written_over); })
            .encodings.at("n")
            .at(0);
    };
    EXPECT_EQ(encoding(rising), delta);
    EXPECT_EQ(encoding(alternating), plain);
    EXPECT_LT(bytes.size(), 2 * alternating.size() + 300);
}

TEST(Parquet, numbers_come_back_from_a_dictionary_and_without_one) {
    std::mt19937_64 random(7);
    for (const std::size_t distinct : {std::size_t{1}, std::size_t{300}, std::size_t{400000}}) {
        std::vector<double> values(140000);
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = i % 7 == 3 ? std::numeric_limits<double>::quiet_NaN()
                                   : static_cast<double>(random() % distinct) * 0.1 - 5;
        }
        std::string bytes;
        const ParquetFile file =
            written(bytes, {"x", parquet::ColumnType::real, true}, values.size(),
                    [written_over = values](parquet::ParquetWriter& to) mutable { to.reals(written_over); });
        const Cells& cells = file.columns.at("x");
        ASSERT_EQ(cells.size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            ASSERT_EQ(cells[i] == "null", std::isnan(values[i])) << i;
            if (i % 7 != 3) {
                ASSERT_EQ(std::stod(cells[i]), values[i]) << i;
            }
        }
        EXPECT_EQ(file.encodings.at("x").at(0) == plain, distinct > 65536);
    }
}

TEST(Parquet, texts_come_back_from_dictionaries_of_one_and_of_two_bytes_and_missing_ones) {
    for (const std::uint32_t distinct : {1U, 256U, 257U, 5000U}) {
        std::vector<std::uint32_t> codes(20001);
        for (std::size_t i = 0; i < codes.size(); ++i) {
            codes[i] = i % 5 == 0 ? no_text : static_cast<std::uint32_t>(i) % distinct;
        }
        std::string bytes;
        const ParquetFile file =
            written(bytes, {"t", parquet::ColumnType::text, true}, codes.size(),
                    [written_over = codes](parquet::ParquetWriter& to) mutable {
                        to.texts(written_over, [](std::uint32_t code) { return "text " + std::to_string(code / 2); });
                    });
        const Cells& cells = file.columns.at("t");
        for (std::size_t i = 0; i < codes.size(); ++i) {
            ASSERT_EQ(cells[i], i % 5 == 0 ? "null" : "text " + std::to_string(codes[i] / 2)) << i;
        }
        const plumb::exporting::parquet_testing::Node& statistics = file.footer[4].list[0][1].list[0][3][12];
        EXPECT_EQ(statistics[6].text, "text 0");
        EXPECT_EQ(statistics[3].number, 4001);
    }
}

TEST(Parquet, a_column_of_one_value_comes_back) {
    using parquet::ColumnType, parquet::ParquetWriter;
    std::string bytes;
    for (const std::size_t rows : {1U, 8U, 9U, 129U, 257U}) {
        for (const bool missing : {false, true}) {
            std::int64_t integer = missing ? no_integer : -7;
            std::uint8_t truth = missing ? no_truth : 1;
            std::uint32_t code = missing ? no_text : 3;
            double real = missing ? std::numeric_limits<double>::quiet_NaN() : 0.5;
            const auto cells = [&](ColumnType type, auto put) {
                return written(bytes, {"x", type, true}, rows, put).columns.at("x");
            };
            const auto expected = [&](const char* text) {
                return Cells(rows, missing ? "null" : text);
            };
            EXPECT_EQ(cells(ColumnType::integer,
                            [&](ParquetWriter& to) {
                                to.integers({&integer, 1});
                            }),
                      expected("-7"));
            EXPECT_EQ(cells(ColumnType::truth, [&](ParquetWriter& to) { to.truths({&truth, 1}); }), expected("true"));
            EXPECT_EQ(cells(ColumnType::real, [&](ParquetWriter& to) { to.reals({&real, 1}); }), expected("0.5"));
            EXPECT_EQ(cells(ColumnType::text,
                            [&](ParquetWriter& to) {
                                to.texts({&code, 1}, [](std::uint32_t) { return "three"; });
                            }),
                      expected("three"));
        }
    }
}

TEST(Parquet, noise_is_written_in_bits_and_comes_back) {
    std::mt19937_64 random(7);
    std::vector<std::int64_t> rising(5000);
    for (std::size_t i = 0; i < rising.size(); ++i) {
        rising[i] = (i == 0 ? 0 : rising[i - 1]) + static_cast<std::int64_t>(random() % 5000);
    }
    std::string bytes;
    const ParquetFile file =
        written(bytes, {"n", parquet::ColumnType::integer}, rising.size(),
                [written_over = rising](parquet::ParquetWriter& to) mutable { to.integers(written_over); });
    Cells expected;
    for (const std::int64_t value : rising) {
        expected.push_back(std::to_string(value));
    }
    EXPECT_EQ(file.columns.at("n"), expected);
    EXPECT_EQ(file.encodings.at("n").at(0), delta);
    EXPECT_LT(bytes.size(), rising.size() * 13 / 8 + 700); // 13 bits each
}

TEST(Parquet, a_column_of_nothing_but_missing_values_comes_back) {
    std::vector<std::uint32_t> codes(9, no_text);
    std::vector<std::int64_t> integers(9, no_integer);
    std::vector<std::uint8_t> truths(9, no_truth);
    std::string bytes;
    EXPECT_EQ(written(bytes, {"t", parquet::ColumnType::text, true}, 9,
                      [&](parquet::ParquetWriter& to) { to.texts(codes, {}); })
                  .columns.at("t"),
              Cells(9, "null"));
    EXPECT_EQ(written(bytes, {"n", parquet::ColumnType::integer, true}, 9,
                      [&](parquet::ParquetWriter& to) { to.integers(integers); })
                  .columns.at("n"),
              Cells(9, "null"));
    EXPECT_EQ(written(bytes, {"l", parquet::ColumnType::truth, true}, 9,
                      [&](parquet::ParquetWriter& to) { to.truths(truths); })
                  .columns.at("l"),
              Cells(9, "null"));
}

} // namespace
