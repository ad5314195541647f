// SPDX-License-Identifier: Apache-2.0
// plumb model: makes a GGUF of a named shape with random weights, and describes any GGUF.
#include <fmt/format.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/model_words.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "decoder/gguf/describe.hpp"
#include "decoder/gguf/reader.hpp"
#include "decoder/model_maker/maker.hpp"

namespace {

using plumb::Result;
using plumb::Status;
using namespace plumb::cli;
namespace gguf = plumb::decoder::gguf;

struct MakeArguments {
    std::string shape = "tiny-llama";
    std::string type = "bf16";
    std::uint64_t seed = 1;
    std::string out;
    bool force = false;
    bool json = false;
};

struct ShowArguments {
    std::string path;
    bool json = false;
};

Status show(const ShowArguments& arguments) {
    const Result<gguf::File> file = gguf::File::open(arguments.path);
    if (!file) {
        return file.error();
    }
    if (arguments.json) {
        std::cout << gguf::describe_json(file->contents(), arguments.path) << '\n';
    } else {
        std::cout << gguf::describe_text(file->contents(), arguments.path);
    }
    return {};
}

int exit_code_of(const Status& status, bool json) { return status ? exit_ok : say_error(status.error().message, json); }

Status make(const MakeArguments& arguments) {
    catch_interrupts();
    Progress progress("writing " + terminal_text(arguments.out), "MB");
    plumb::decoder::MakeOptions options;
    options.type = type_of(arguments.type);
    options.seed = arguments.seed;
    options.replace = arguments.force;
    options.stop = &interrupted();
    std::uint64_t bytes = 0;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
        bytes = total;
        progress.show(done / 1000000, total / 1000000);
    };
    const Status status =
        plumb::decoder::make_model(*plumb::decoder::find_shape(arguments.shape), arguments.out, options);
    progress.clear();
    if (!status) {
        return status;
    }
    if (!arguments.json) {
        std::cout << fmt::format("{}: {} {}, {:.1f} MB\n", terminal_text(arguments.out), arguments.shape,
                                 arguments.type, static_cast<double>(bytes) / 1e6);
        return {};
    }
    return show({arguments.out, true});
}

void add_make(CLI::App& model, int& exit_code) {
    auto arguments = std::make_shared<MakeArguments>();
    CLI::App& app = *model.add_subcommand("make", "Write a GGUF of a named shape with random weights");
    app.add_option("--shape", arguments->shape, "Named shape")->check(shape_word())->capture_default_str();
    app.add_option("--type", arguments->type, "Type of the matrices")->check(type_word())->capture_default_str();
    app.add_option("--seed", arguments->seed, "The same seed gives the same bytes on every machine")
        ->capture_default_str();
    app.add_option("-o,--out", arguments->out, "File to write")->type_name("FILE")->required();
    app.add_flag("--force", arguments->force, "Replace an existing file");
    app.add_flag("--json", arguments->json, "Describe what was written as JSON (schema plumb.model/1)");
    app.callback([arguments, &exit_code] { exit_code = exit_code_of(make(*arguments), arguments->json); });
}

void add_show(CLI::App& model, int& exit_code) {
    auto arguments = std::make_shared<ShowArguments>();
    CLI::App& app = *model.add_subcommand("show", "Describe any GGUF: metadata, tensors, types, sizes");
    app.add_option("file", arguments->path, "GGUF file")->type_name("FILE")->required();
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.model/1)");
    app.callback([arguments, &exit_code] { exit_code = exit_code_of(show(*arguments), arguments->json); });
}

} // namespace

void add_model(CLI::App& root, int& exit_code) {
    CLI::App& app = *root.add_subcommand("model", "Make and describe GGUF model files");
    app.require_subcommand(1);
    add_make(app, exit_code);
    add_show(app, exit_code);
}
