// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <gtest/gtest.h>
#include <sstream>

#include "export/export.hpp"
#include "export/planted_source_testing.hpp"
#include "plumb/backend.hpp"

namespace {

using namespace plumb;
using namespace plumb::exporting;
using resolve::SampleKind;

std::string csv_of(PlantedSource& source) {
    std::ostringstream out;
    EXPECT_TRUE(write_as("csv", source, out).ok());
    return out.str();
}

TEST(Csv, a_header_row_then_one_row_per_sample) {
    PlantedSource source;
    source.add_steps(1, 1);
    source.samples[0].bytes = 4096;
    source.samples[1].warmup = true;
    EXPECT_EQ(csv_of(source),
              "kind,name,category,phase,step,layer,track,begin_ns,duration_ns,self_ns,leaf,warmup,bytes,flops,elements,"
              "graph,queue,marks\n"
              "scope,rms_norm,norm,decode,0,0,1,1000000007,1001,1001,1,0,4096,,,,,\n"
              "scope,attention,attention,decode,0,0,1,1000001241,1001,1001,1,1,,,,,,\n"
              "layer,,,decode,0,0,1,1000000007,2468,2468,0,0,,,,,,\n"
              "step,,,decode,0,,1,1000000007,2468,2468,0,0,,,,,,\n");
}

TEST(Csv, launches_submissions_and_scopes_of_graphs_have_as_many_cells_as_the_header) {
    PlantedSource source;
    source.add_track(7, recording::TrackKind::captured_graph, "graph 64", 64);
    source.submit(5, 3, 10, 20).name = 3;
    resolve::Submission& launch = source.submit(5, 3, 40, 20);
    launch.graph = true;
    launch.key = 64;
    launch.flags = launch_instrumented | launch_first;
    launch.timed = false;
    source.add_device(7, 3, 3, 100, 50).flags = span_includes_launch_wait | span_below_floor;
    const std::string text = csv_of(source);
    EXPECT_NE(text.find("\nsubmit,qkv_projection,attention,decode,3,,1,1000000010,20,,,0,,,,,5,\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("\nlaunch,,,decode,3,,1,,,,,0,,,,64,5,instrumented first\n"), std::string::npos) << text;
    EXPECT_NE(text.find(",64,,launch_wait below_floor\n"), std::string::npos) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(std::count(line.begin(), line.end(), ','), 17) << line;
    }
}

TEST(Csv, F6_kernels_transfers_and_tasks_recorded_one_by_one_have_rows) {
    PlantedSource source;
    source.add_nodes();
    const std::string text = csv_of(source);
    EXPECT_EQ(text.substr(text.find('\n') + 1),
              "kernel,\"gemm<\"\"a\"\", b>\",other,decode,7,3,1,1000001000,500,,,0,,1000000,,,,\n"
              "kernel,\"gemm<\"\"a\"\", b>\",other,decode,7,,1,1000001200,500,,,0,,,,,,\n"
              "kernel,\"gemm<\"\"a\"\", b>\",other,decode,7,,1,1000002000,,,,0,,,,,,told sampled\n"
              "transfer,copy_d2h,transfer,decode,7,,1,1000003000,40,,,0,8192,,,,,\n"
              "task,unnamed,other,decode,7,,1,1000004000,,,,0,,,,,,told\n");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(std::count(line.begin(), line.end(), ',') - (line.rfind("kernel", 0) == 0 ? 1 : 0), 17) << line;
    }
}

TEST(Csv, T8_names_with_commas_quotes_newlines_and_broken_text_stay_in_their_cell) {
    PlantedSource source;
    source.all_names = {{300, Category::moe, "a,\"b\"\nc\xff"}};
    source.add(SampleKind::scope, 300, 0, 1);
    EXPECT_NE(csv_of(source).find("\nscope,\"a,\"\"b\"\"\nc\xEF\xBF\xBD\",moe,none,,,1,"), std::string::npos)
        << csv_of(source);
}

TEST(Csv, an_output_that_refuses_data_is_an_error) {
    PlantedSource source;
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_FALSE(write_as("csv", source, out).ok());
}

} // namespace
