// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/profile.hpp"

#include <gtest/gtest.h>
#include <string>

namespace plumb::attach::onnxruntime {
namespace {

std::string event(const std::string& category, const std::string& name, int begin, int duration,
                  const std::string& more = "", int thread = 7) {
    return "{\"cat\" : \"" + category + "\",\"pid\" :5,\"tid\" :" + std::to_string(thread) +
           ",\"dur\" :" + std::to_string(duration) + ",\"ts\" :" + std::to_string(begin) +
           ",\"ph\" : \"X\",\"name\" :\"" + name + "\",\"args\" : {" + more + "}}";
}

std::string product(const std::string& name, int begin, int duration) {
    return event(
        "Node", name + "_kernel_time", begin, duration,
        R"("activation_size" : "2048","provider" : "CPUExecutionProvider","op_name" : "MatMul",)"
        R"("output_type_shape" : [{"float":[1,1,96]}],"input_type_shape" : [{"float":[1,1,64]},{"float16":[64,96]}],)"
        R"("output_size" : "384","parameter_size" : "24576")");
}

const std::string run = event("Session", "model_run", 0, 100);

std::string profile(const std::string& lines) { return "[\n" + lines + "\n]\n"; }

TEST(RunProfile, has_the_nodes_with_their_times_sizes_and_shapes) {
    const std::string text = profile(product("/model/layers.0/mlp/up_proj/MatMul", 20, 30) + ",\n" + run);
    const auto read = read_profile(text);
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(read->nodes.size(), 1U);
    const ProfiledNode& node = read->nodes.front();
    EXPECT_EQ(node.name, "/model/layers.0/mlp/up_proj/MatMul");
    EXPECT_EQ(node.operation, "MatMul");
    EXPECT_EQ(node.provider, "CPUExecutionProvider");
    EXPECT_EQ(node.begin_us, 20);
    EXPECT_EQ(node.end_us, 50);
    EXPECT_EQ(node.thread, 7);
    EXPECT_EQ(node.activation_bytes, 2048);
    EXPECT_EQ(node.parameter_bytes, 24576);
    EXPECT_EQ(node.output_bytes, 384);
    EXPECT_EQ(shape_at(node.inputs, 1), (std::vector<std::int64_t>{64, 96}));
    EXPECT_EQ(element_bytes(node.inputs, 0), 4U);
    EXPECT_EQ(element_bytes(node.inputs, 1), 2U);
    EXPECT_EQ(shape_count(node.inputs), 2U);
    EXPECT_EQ(shape_at(node.outputs, 0), (std::vector<std::int64_t>{1, 1, 96}));
}

TEST(RunProfile, a_name_with_a_quote_or_a_key_of_its_own_is_a_name) {
    const std::string name = R"(it's "ts" :9, \)";
    const std::string text = profile(product(name, 20, 30) + ",\n" + run);
    const auto read = read_profile(text);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->nodes.front().name, name);
    EXPECT_EQ(read->nodes.front().begin_us, 20);
}

TEST(RunProfile, nodes_come_by_their_begin_and_what_holds_others_first) {
    const std::string text =
        profile(product("c", 40, 10) + ",\n" + product("b", 20, 10) + ",\n" + product("a", 20, 30) + ",\n" + run);
    const auto read = read_profile(text);
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->nodes.size(), 3U);
    EXPECT_EQ(read->nodes[0].name, "a");
    EXPECT_EQ(read->nodes[1].name, "b");
    EXPECT_EQ(read->nodes[2].name, "c");
}

TEST(RunProfile, one_that_is_cut_off_anywhere_is_refused) {
    const std::string text = profile(product("a", 20, 30) + ",\n" + product("b", 60, 30) + ",\n" + run);
    ASSERT_TRUE(read_profile(text).ok());
    for (std::size_t size = 0; size < text.size(); ++size) {
        EXPECT_FALSE(read_profile(text.substr(0, size)).ok()) << size;
    }
}

TEST(RunProfile, one_without_the_run_or_with_times_that_cannot_be_is_refused) {
    EXPECT_FALSE(read_profile(profile(product("a", 20, 30))).ok());
    EXPECT_FALSE(read_profile(profile(product("a", -1, 30) + ",\n" + run)).ok());
    EXPECT_FALSE(read_profile(profile(product("a", 20, -1) + ",\n" + run)).ok());
    EXPECT_FALSE(read_profile(profile("no event,\n" + run)).ok());
}

TEST(RunProfile, T1_onnxruntime_nodes_of_a_device_have_no_time_of_their_own) {
    RunProfile profile;
    profile.nodes.resize(2);
    profile.nodes[0].provider = profile.nodes[1].provider = "CPUExecutionProvider";
    EXPECT_EQ(why_no_bricks(profile), "");
    profile.nodes[1].provider = "CUDAExecutionProvider"; // its times end where the launch does
    EXPECT_NE(why_no_bricks(profile).find("CUDAExecutionProvider"), std::string::npos);
    profile.nodes[1].provider = "";
    EXPECT_NE(why_no_bricks(profile), "") << "not told";
}

TEST(RunProfile, nodes_of_several_threads_lie_beside_each_other) {
    RunProfile profile;
    profile.nodes.resize(2);
    profile.nodes[0].provider = profile.nodes[1].provider = "CPUExecutionProvider";
    profile.nodes[1].thread = 1;
    EXPECT_NE(why_no_bricks(profile), "");
}

TEST(RunProfile, shapes_that_are_none_have_no_sizes) {
    EXPECT_TRUE(shape_at(R"([{"int32":[]}])", 0).empty());
    EXPECT_TRUE(shape_at(R"([{"int32":[1]}])", 1).empty());
    EXPECT_TRUE(shape_at(R"([{"int32":[x]}])", 0).empty());
    EXPECT_TRUE(shape_at("", 0).empty());
    EXPECT_EQ(element_bytes(R"([{"string":[4]}])", 0), 0U);
}

} // namespace
} // namespace plumb::attach::onnxruntime
