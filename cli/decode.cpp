// SPDX-License-Identifier: Apache-2.0
// plumb decode: runs the reference decoder under the profiler and prints the report.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/model_cache.hpp"
#include "cli/model_words.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "decoder/decoder.hpp"
#include "decoder/tokenizer/tokenizer.hpp"
#include "plumb/plumb.hpp"

namespace {

using plumb::Result;
using plumb::Status;
using plumb::decoder::Decoder;
using plumb::decoder::Tokenizer;
using namespace plumb::cli;

struct DecodeArguments {
    std::string model;
    std::string random_shape; // in place of a model
    std::string type = "bf16";
    std::size_t prompt_tokens = 64;
    std::vector<std::int32_t> tokens;
    std::optional<std::string> prompt;
    std::size_t steps = 128;
    std::string backend = "cpu";
    plumb::decoder::Graphs graphs = plumb::decoder::Graphs::off;
    bool programmatic_launch = false;
    bool kernel_stamps = false;
    int threads = 0;
    std::size_t chunk = 128;
    std::size_t batch = 1;
    std::size_t context = 0;
    plumb::decoder::SamplingOptions sampling;
    std::optional<std::string> out;
    std::optional<std::string> tensors, check; // check: what --tensors was called in version 0.1
    std::optional<std::string> dump;
    bool tiles = false;
    bool print_tokens = false;
    bool json = false;
    bool no_profile = false;
};

/// What the profiler says while it starts is part of its status; what it says later is a warning.
struct Sentences {
    std::atomic<bool> started{false};
    static void hear(const char* sentence, void* user) {
        if (static_cast<Sentences*>(user)->started.load()) {
            fmt::print(stderr, "warning: {}\n", sentence);
        }
    }
};

/// --tensors and --dump, in place of what PLUMB says of both; --dump alone means every tensor.
Status apply_tensors(const DecodeArguments& arguments, plumb::Config& config) {
    const std::optional<std::string>& tensors = arguments.tensors ? arguments.tensors : arguments.check;
    if (!tensors && !arguments.dump) {
        return {};
    }
    if (arguments.check) {
        fmt::print(stderr, "note: --check is called --tensors now; the next version will not know --check any more\n");
    }
    plumb::Config given;
    const char* const option = arguments.check && !arguments.tensors ? "--check" : "--tensors";
    if (Status status = given.set("tensors", tensors.value_or("all"), option); !status) {
        return status;
    }
    if (!arguments.dump) {
        config.tensors = given.tensors;
        return {};
    }
    const Status status = given.set("dump", *arguments.dump, "--dump");
    config.tensors = given.tensors;
    return status;
}

/// PLUMB where it is set, else on; --out and --no-profile win over both.
Result<plumb::Config> profiler_config(const DecodeArguments& arguments, Sentences& sentences) {
    if (arguments.no_profile) {
        return plumb::Config{};
    }
    Result<plumb::Config> config = plumb::Config{};
    if (std::getenv("PLUMB") != nullptr) {
        config = plumb::Config::from_env();
    } else {
        config->on = true, config->out = "run.plumb";
    }
    if (!config) {
        return config;
    }
    if (arguments.out) {
        if (Status status = config->set("out", *arguments.out, "--out"); !status) {
            return status.error();
        }
        config->on = true;
    }
    if (Status status = apply_tensors(arguments, *config); !status) {
        return status.error();
    }
    if (arguments.tiles && arguments.backend != "cpu") {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "only the cpu backend keeps tiles: leave --tiles out, or say --backend cpu"};
    }
    if (arguments.tiles) {
        config->tiles = plumb::Config::parse("tiles=on")->tiles;
    }
    if (Status status = config->validate(); !status) {
        return status.error();
    }
    config->diagnostic = Sentences::hear;
    config->diagnostic_user = &sentences;
    return config;
}

/// The file's own tokenizer and what it makes of --prompt; only where there is a text.
struct Text {
    std::optional<Tokenizer> tokenizer;
    std::vector<std::int32_t> tokens;
};

Result<Text> text_of(const DecodeArguments& arguments, const plumb::decoder::gguf::File& file) {
    Text text;
    if (!arguments.prompt) {
        return text;
    }
    if (const auto config = plumb::decoder::read_config(file); !config) {
        return config.error(); // before its tokenizer: token ids would not help
    }
    Result<Tokenizer> tokenizer = Tokenizer::make(file.contents());
    if (!tokenizer) {
        return tokenizer.error();
    }
    Result<std::vector<std::int32_t>> tokens = tokenizer->encode(*arguments.prompt);
    if (!tokens) {
        return tokens.error();
    }
    text.tokenizer = std::move(*tokenizer);
    text.tokens = std::move(*tokens);
    return text;
}

Result<Text> text_of(const DecodeArguments& arguments, const std::string& path) {
    if (!arguments.prompt) {
        return Text{};
    }
    const Result<plumb::decoder::gguf::File> file = plumb::decoder::gguf::File::open(path);
    return file ? text_of(arguments, *file) : Result<Text>(file.error());
}

/// Before a prompt is made that large, or the sum of both overflows.
Status check_lengths(const DecodeArguments& arguments) {
    constexpr std::size_t largest = plumb::decoder::largest_context;
    for (const auto& [option, value] :
         {std::pair{"--prompt-tokens", arguments.prompt_tokens}, std::pair{"--steps", arguments.steps}}) {
        if (value > largest) {
            return plumb::Error{plumb::ErrorCode::invalid_argument,
                                fmt::format("{} must be at most {}", option, largest)};
        }
    }
    return {};
}

std::size_t prompt_length(const DecodeArguments& arguments, const Text& text) {
    if (!arguments.tokens.empty()) {
        return arguments.tokens.size();
    }
    return text.tokenizer ? text.tokens.size() : arguments.prompt_tokens;
}

/// Pseudo-random prompts differ from sequence to sequence, given ones do not.
std::vector<std::int32_t> prompt_of(const DecodeArguments& arguments, const Text& text, const Decoder& decoder,
                                    std::size_t sequence) {
    if (!arguments.tokens.empty()) {
        return arguments.tokens;
    }
    return text.tokenizer ? text.tokens
                          : decoder.random_prompt(arguments.prompt_tokens, arguments.sampling.seed + sequence);
}

/// What the model says, as soon as whole characters of it are there. Standard output holds nothing else beside --json.
class Speech {
  public:
    Speech(const Text& text, bool json) : text_(text), out_(json ? stderr : stdout) {}

    /// Says what is new of the sequence's tokens; a stop token is no text.
    void say(const std::vector<std::int32_t>& tokens) {
        for (; text_.tokenizer && said_ < tokens.size(); ++said_) {
            if (!text_.tokenizer->stops(tokens[said_])) {
                put(stream_.take(text_.tokenizer->piece(tokens[said_])));
            }
        }
    }
    void finish() {
        if (text_.tokenizer) {
            put(stream_.finish() + "\n\n");
        }
    }

  private:
    void put(const std::string& part) {
        std::string shown = part;
        if (isatty(fileno(out_)) != 0) { // what a model says must not command the terminal
            for (char& c : shown) {
                c = c == '\n' || c == '\t' ? c : terminal_text(std::string(1, c))[0];
            }
        }
        std::fwrite(shown.data(), 1, shown.size(), out_);
        std::fflush(out_);
    }

    const Text& text_;
    std::FILE* out_;
    plumb::decoder::Utf8Stream stream_;
    std::size_t said_ = 0;
};

plumb::decoder::Options decoder_options(const DecodeArguments& arguments, const Text& text) {
    plumb::decoder::Options options;
    options.backend = arguments.backend;
    options.graphs = arguments.graphs;
    options.programmatic_launch = arguments.programmatic_launch;
    options.kernel_stamps = arguments.kernel_stamps;
    options.threads = arguments.threads;
    options.chunk = arguments.chunk;
    options.batch = arguments.batch;
    options.context = arguments.context != 0 ? arguments.context : prompt_length(arguments, text) + arguments.steps;
    options.sampling = arguments.sampling;
    if (text.tokenizer) {
        options.stop_tokens = text.tokenizer->vocabulary().stops;
    }
    options.stop = &interrupted();
    return options;
}

Result<Decoder> load(const DecodeArguments& arguments, const Text& text, const std::string& path) {
    Progress progress("loading " + terminal_text(path), "MB");
    plumb::decoder::Options options = decoder_options(arguments, text);
    options.loading = [&](std::uint64_t done, std::uint64_t total) {
        progress.show(done / 1000000, total / 1000000);
    };
    return Decoder::load(path, options);
}

void say_how_far(const DecodeArguments& arguments, const Text& text, const Decoder& decoder, std::size_t steps) {
    const std::size_t prompt = arguments.batch * prompt_length(arguments, text);
    std::size_t fed = 0;
    for (std::size_t sequence = 0; sequence < arguments.batch; ++sequence) {
        fed += decoder.position(sequence);
    }
    if (fed < prompt) {
        fmt::print(stderr, "stopped after {} of {} prompt tokens\n", fed, prompt);
    } else {
        fmt::print(stderr, "stopped after {} of {} decode steps\n", steps, arguments.steps);
    }
}

/// Prompt and steps. Returns the steps done.
Result<std::size_t> run(const DecodeArguments& arguments, const Text& text, Decoder& decoder,
                        plumb::Profiler& profiler) {
    Progress prefill("prefill", "tokens");
    for (std::size_t sequence = 0; sequence < arguments.batch; ++sequence) { // each is a request, for plumb requests
        PLUMB_REQUEST(profiler, sequence, plumb::RequestPhase::queue);
    }
    for (std::size_t sequence = 0; sequence < arguments.batch; ++sequence) {
        const auto prompt = prompt_of(arguments, text, decoder, sequence);
        const auto show = [&](auto done, auto total) {
            prefill.show(sequence * total + done, arguments.batch * total);
        };
        PLUMB_REQUEST(profiler, sequence, plumb::RequestPhase::prefill);
        if (Status status = decoder.prefill(prompt, profiler, show, sequence); !status) {
            return status.error();
        }
        if (!decoder.tokens(sequence).empty()) { // not stopped before its first
            PLUMB_REQUEST(profiler, sequence, plumb::RequestPhase::decode);
        }
    }
    prefill.clear();
    Progress decode("decode", "steps");
    Speech speech(text, arguments.json);
    speech.say(decoder.tokens());
    Result<std::size_t> done = decoder.decode(arguments.steps, profiler, [&](auto step, auto total) {
        if (text.tokenizer) {
            speech.say(decoder.tokens());
        } else {
            decode.show(step, total);
        }
    });
    for (std::size_t sequence = 0; sequence < arguments.batch; ++sequence) {
        PLUMB_REQUEST(profiler, sequence, plumb::RequestPhase::end, plumb::tokens(decoder.tokens(sequence).size()));
    }
    decode.clear();
    speech.finish();
    return done;
}

void print(const DecodeArguments& arguments, const plumb::Report& report) {
    if (arguments.json) {
        std::cout << plumb::render_json(report);
    } else {
        std::cout << plumb::render_text(report, {stdout_has_color(), stdout_columns()});
    }
}

/// From the finished recording, so that `plumb report` says the same; from memory where there is none.
Status print_report(const DecodeArguments& arguments, plumb::Profiler& profiler) {
    const std::string path = profiler.path();
    Result<plumb::Report> live = path.empty() ? profiler.snapshot() : plumb::Report{};
    if (!live) {
        return live.error();
    }
    if (Status status = profiler.close(); !status) {
        return status;
    }
    const Result<plumb::Report> report = path.empty() ? std::move(live) : plumb::report_recording(path);
    if (!report) {
        return report.error();
    }
    print(arguments, *report);
    if (!path.empty()) {
        fmt::print(stderr, "recording: {}\n", terminal_text(path));
    }
    return {};
}

void print_tokens(const DecodeArguments& arguments, const Decoder& decoder) {
    for (std::size_t sequence = 0; sequence < arguments.batch; ++sequence) {
        std::string line = "tokens";
        for (const std::int32_t token : decoder.tokens(sequence)) {
            line += fmt::format(" {}", token);
        }
        // Standard output holds one JSON document and nothing else.
        (arguments.json ? std::cerr : std::cout) << line << '\n';
    }
}

Result<std::string> model_path(const DecodeArguments& arguments) {
    if (!arguments.model.empty()) {
        return arguments.model;
    }
    Result<std::string> cached = cached_model();
    if (cached) {
        fmt::print(stderr, "no model given: using {} (tiny-llama, random weights)\n", *cached);
    }
    return cached;
}

struct LoadedModel {
    Text text;
    Decoder decoder;
};

/// --random-weights: no file is read or written, and the device makes the weights.
Result<LoadedModel> random_model(const DecodeArguments& arguments) {
    if (!arguments.model.empty()) {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "a model file and --random-weights were both given; leave one of them out"};
    }
    plumb::decoder::MakeOptions options;
    options.type = type_of(arguments.type);
    options.seed = arguments.sampling.seed;
    Result<plumb::decoder::UnwrittenModel> model =
        plumb::decoder::lay_out_model(*plumb::decoder::find_shape(arguments.random_shape), options);
    if (!model) {
        return model.error();
    }
    Result<Text> text = text_of(arguments, model->file);
    if (!text) {
        return text.error();
    }
    Result<Decoder> decoder = Decoder::load(std::move(*model), decoder_options(arguments, *text));
    if (!decoder) {
        return decoder.error();
    }
    return LoadedModel{std::move(*text), std::move(*decoder)};
}

Result<LoadedModel> load_model(const DecodeArguments& arguments) {
    if (!arguments.random_shape.empty()) {
        return random_model(arguments);
    }
    const Result<std::string> path = model_path(arguments);
    if (!path) {
        return path.error();
    }
    Result<Text> text = text_of(arguments, *path);
    if (!text) {
        return text.error();
    }
    Result<Decoder> decoder = load(arguments, *text, *path);
    if (!decoder) {
        return decoder.error();
    }
    return LoadedModel{std::move(*text), std::move(*decoder)};
}

/// The model runs beyond what it was made for, and says nonsense there.
void warn_of_length(const DecodeArguments& arguments, const Text& text, const Decoder& decoder) {
    const std::size_t positions = prompt_length(arguments, text) + arguments.steps;
    if (const std::size_t trained = decoder.config().context; positions > trained) {
        fmt::print(stderr,
                   "warning: prompt and steps take {} positions, and the model was made for {}: what it says beyond "
                   "them means nothing\n",
                   positions, trained);
    }
}

Status decode(const DecodeArguments& arguments) {
    catch_interrupts();
    if (Status status = check_lengths(arguments); !status) {
        return status;
    }
    Sentences sentences;
    const Result<plumb::Config> config = profiler_config(arguments, sentences);
    if (!config) {
        return config.error();
    }
    if (arguments.json && !config->on) {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "profiling is off: there is no report; leave --json out, or turn profiling on"};
    }
    Result<LoadedModel> loaded = load_model(arguments);
    if (!loaded) {
        return loaded.error();
    }
    const Text& text = loaded->text;
    Decoder& decoder = loaded->decoder;
    // Before the recording is opened: what is refused must not take the place of one that is there.
    if (Status status = decoder.check(prompt_of(arguments, text, decoder, 0), arguments.steps); !status) {
        return status;
    }
    warn_of_length(arguments, text, decoder);

    plumb::Profiler profiler(*config);
    if (Status status = profiler.status(); !status) {
        return status;
    }
    sentences.started = true;
    for (const auto& [key, value] : decoder.description()) {
        profiler.describe(key, value);
    }

    decoder.profile_replays(&profiler);
    const Result<std::size_t> done = run(arguments, text, decoder, profiler);
    if (arguments.graphs != plumb::decoder::Graphs::off) {
        static_cast<void>(profiler.flush()); // what replays took is known by then, or never
    }
    decoder.profile_replays(nullptr);
    if (!done) {
        return done.error();
    }
    if (*done < arguments.steps && interrupted().load()) {
        say_how_far(arguments, text, decoder, *done);
    }
    if (arguments.print_tokens) {
        print_tokens(arguments, decoder);
    }
    if (config->on) {
        return print_report(arguments, profiler);
    }
    fmt::print(stderr, "profiling is off: there is no report\n");
    return {};
}

/// Empty for a number that is one from its first character to its last: the command line's own reader takes "" for 0.
template <class T>
std::string read_wholly(const std::string& word, const char* wanted) {
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() ? std::string()
                                                                    : "\"" + word + "\" is no " + wanted;
}

std::string number(const std::string& word) { return read_wholly<float>(word, "number"); }
std::string token_id(const std::string& word) { return read_wholly<std::int32_t>(word, "token id"); }

} // namespace

void add_decode(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<DecodeArguments>();
    CLI::App& app = *root.add_subcommand("decode", "Run the reference decoder, profiled, and print the report");
    app.add_option("model", arguments->model,
                   "GGUF file (plumb model show says what is in it); without it a small one is made once")
        ->type_name("FILE");
    auto* random =
        app.add_option("--random-weights", arguments->random_shape,
                       "With --backend cuda only, instead of a file: a model of this shape (plumb model make), "
                       "whose weights the device makes from --seed")
            ->check(shape_word())
            ->type_name("SHAPE");
    app.add_option("--type", arguments->type, "Type of the matrices of --random-weights")
        ->check(type_word())
        ->needs(random)
        ->capture_default_str();
    auto* count =
        app.add_option("--prompt-tokens", arguments->prompt_tokens, "Prompt of so many pseudo-random token ids")
            ->capture_default_str();
    auto* ids = app.add_option("--tokens", arguments->tokens, "Prompt of these token ids: 1,2,3")
                    ->delimiter(',')
                    ->check(token_id);
    auto* text = app.add_option(
        "-p,--prompt", arguments->prompt,
        "Prompt of this text, cut by the file's own tokenizer; prints what the model says and ends at its stop token");
    count->excludes(ids)->excludes(text);
    ids->excludes(text);
    app.add_option("--steps", arguments->steps, "Decode steps after the prompt")->capture_default_str();
    app.add_option("--backend", arguments->backend,
                   "Device to run on: cpu, cuda or opencl (its first device), cuda:1 or opencl:1 (its second), …")
        ->capture_default_str();
    app.add_option_function<std::string>(
           "--graphs",
           [arguments](const std::string& word) {
               using plumb::decoder::Graphs;
               arguments->graphs = word == "on" ? Graphs::on : word == "verify" ? Graphs::verify : Graphs::off;
           },
           "Decode steps as captured CUDA graphs; verify: each compared with its kernels one by one")
        ->check(CLI::IsMember({"off", "on", "verify"}))
        ->default_str("off");
    app.add_flag("--programmatic-launch", arguments->programmatic_launch,
                 "Launch each CUDA kernel while the one before it ends (compute capability 9 and 10)");
    app.add_flag("--kernel-stamps", arguments->kernel_stamps,
                 "Kernels of the cuda device write down when they ran, so that the report tells them from the gaps "
                 "between them");
    app.add_option("--threads", arguments->threads, "Threads of the cpu backend; 0: every core this process may use")
        ->capture_default_str();
    app.add_option("--chunk", arguments->chunk, "Prompt tokens of one prefill step")->capture_default_str();
    app.add_option("--batch", arguments->batch, "Sequences decoded at once; text is shown of the first")
        ->capture_default_str();
    app.add_option("--ctx", arguments->context, "Positions of the kv cache; 0: prompt and steps")
        ->capture_default_str();
    app.add_option("--seed", arguments->sampling.seed,
                   "Of the pseudo-random prompt, of sampling and of --random-weights")
        ->capture_default_str();
    app.add_option("--temperature", arguments->sampling.temperature, "Sampling temperature; 0: greedy")
        ->check(number)
        ->capture_default_str();
    app.add_option("--top-k", arguments->sampling.top_k, "Sample among the k best tokens; 0: all")
        ->capture_default_str();
    app.add_option("--top-p", arguments->sampling.top_p, "Sample among the best tokens that reach this probability")
        ->check(number)
        ->capture_default_str();
    app.add_option("--min-p", arguments->sampling.min_p,
                   "Sample among tokens at least so likely as this share of the best; 0: all")
        ->check(number)
        ->capture_default_str();
    app.add_option("--repeat-penalty", arguments->sampling.repeat_penalty,
                   "Divide the logits of tokens said lately by this; 1: off")
        ->check(number)
        ->capture_default_str();
    app.add_option("--repeat-window", arguments->sampling.repeat_window, "Tokens that count as said lately")
        ->capture_default_str();
    app.add_option("-o,--out", arguments->out, "Recording to write (default run.plumb, or what PLUMB says)")
        ->type_name("FILE");
    app.add_option(
        "--tensors", arguments->tensors,
        "Tensors to look at: nonfinite, all, all+every=8+bricks=attention/lm_head+layers=0-3 (plumb diverge)");
    app.add_option("--check", arguments->check)->group(""); // of version 0.1
    app.add_option("--dump", arguments->dump,
                   "Keep the tensors that --tensors looks at whole, as .npy files in this folder")
        ->type_name("DIR");
    app.add_flag("--tiles", arguments->tiles, "Keep the tiles of attention apart (plumb tiles)");
    app.add_flag("--print-tokens", arguments->print_tokens, "Add a line with the sampled token ids of each sequence");
    app.add_flag("--json", arguments->json, "Print the report as JSON (schema plumb.report/2)");
    app.add_flag("--no-profile", arguments->no_profile, "Run with the profiler off; no report");
    app.callback([arguments, &exit_code] {
        const Status status = decode(*arguments);
        exit_code = status ? exit_ok : say_error(status.error().message, arguments->json);
    });
}
