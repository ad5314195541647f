// SPDX-License-Identifier: Apache-2.0
// plumb run: runs any command so that engines in it, which nobody built for us, are recorded; then prints the report.
// All it does to the command is to set variables of its environment (docs/reference/attach.md).
#include <algorithm>
#include <cerrno>
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "cli/commands.hpp"
#include "cli/launch.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/answer.hpp"
#include "plumb/profiler.hpp"
#include "plumb/results.hpp"

namespace {

using namespace plumb::cli;

struct RunArguments {
    std::string out;
    bool json = false;
    bool list = false;
    bool kernels = false;
};

constexpr const char* what_is_known =
    "engine                           way in                 releases that were run\n"
    "llama.cpp as shared libraries    GGML_BACKEND_PATH      node-llama-cpp 3.6.0, 3.12.0, 3.14.5, 3.18.1, 3.22.1 (v0.5.0)\n"
    "llama.cpp inside another file    LD_PRELOAD             @fugood/llama.node 1.7.15 (ggml 0.18.0)\n"
    "whisper.cpp inside another file  LD_PRELOAD             @fugood/whisper.node 1.1.3, by hand: each graph is a step\n"
    "PyTorch in Python 3.10 or later  PYTHONPATH             1.13.1 (Debian's python3-torch)\n"
    "PyTorch on CUDA                  PYTHONPATH             a look-alike of ours, on a stand-in for CUDA\n"
    "llama.cpp with CUDA              GGML_BACKEND_PATH      node-llama-cpp 3.22.1, on a stand-in for CUDA\n"
    "llama.cpp with Vulkan            VK_INSTANCE_LAYERS     node-llama-cpp 3.22.1, on lavapipe\n"
    "Vulkan of any program            VK_INSTANCE_LAYERS     programs of ours, on lavapipe\n"
    "OpenCL of any program            OPENCL_LAYERS          programs of ours, on PoCL\n"
    "CUDA graphs of any program       LD_PRELOAD             programs of ours, on a stand-in for CUDA\n"
    "onnxruntime as a shared library  LD_PRELOAD             onnxruntime-node 1.30.0; 1.24.3 steps only\n"
    "kernels of any CUDA program      --kernels              programs of ours, on stand-ins for CUDA and its CUPTI\n"
    "any program with NVTX 3 ranges   NVTX_INJECTION64_PATH  programs of ours with the headers of CUDA 13.0\n"
    "\n"
    "GGML_BACKEND_PATH reaches every program that calls ggml_backend_load_all(). LD_PRELOAD reaches every program whose\n"
    "libraries call ggml_backend_sched_new() through a slot. On devices other than CUDA, Vulkan and OpenCL there are steps,\n"
    "and no bricks.\n"
    "CUDA graphs are seen where libcudart is a shared library; no GPU was used.\n"
    "PYTHONPATH reaches every Python that is not told to leave it out (-E, -I, -S). Modules on devices other than the\n"
    "processor and CUDA are not recorded.\n"
    "NVTX ranges are time of the host; share/plumb/nvtx.rules says what is a step, a layer or a brick, and so does the file\n"
    "that PLUMB_NVTX_RULES names.\n";

/// What the processes of the command tell: one line each, in memory that they reach through /proc.
class RunNotes {
  public:
    RunNotes() : file_(::memfd_create("plumb run", MFD_CLOEXEC)) {}
    RunNotes(const RunNotes&) = delete;
    RunNotes& operator=(const RunNotes&) = delete;
    ~RunNotes() { ::close(file_); }

    /// For PLUMB_RUN: the path, and what tells this file from another one there.
    [[nodiscard]] std::string address() const {
        struct stat file {};
        (void)::fstat(file_, &file);
        return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_) + ':' +
               std::to_string(file.st_dev) + ':' + std::to_string(file.st_ino);
    }
    /// What was told under that word, each once, in order.
    [[nodiscard]] std::vector<std::string> of(const std::string& kind) const {
        std::string text;
        char part[4096];
        for (ssize_t got = 0, at = 0; (got = ::pread(file_, part, sizeof part, at)) > 0; at += got) {
            text.append(part, static_cast<std::size_t>(got));
        }
        std::vector<std::string> found;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line, '\0');) {
            if (line.starts_with(kind + '\t')) {
                std::string rest = line.substr(kind.size() + 1);
                if (std::find(found.begin(), found.end(), rest) == found.end()) {
                    found.push_back(std::move(rest));
                }
            }
        }
        return found;
    }

  private:
    int file_;
};

/// Where something of this installation lies: in one of those folders, which are told from that of the command. "": nowhere.
std::string installed(const std::filesystem::path& folder, const char* places, const char* name) {
    std::error_code error;
    std::istringstream words(places);
    for (std::string place; std::getline(words, place, ':');) {
        const auto path = std::filesystem::weakly_canonical(folder / place / name, error);
        if (!error && std::filesystem::exists(path, error)) {
            return path.string();
        }
    }
    return {};
}

std::filesystem::path folder_of_command() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

plumb::Result<std::string> attach_library() {
    const std::filesystem::path folder = folder_of_command();
    if (std::string path = installed(folder, PLUMB_ATTACH_FOLDERS, "libplumb-attach.so"); !path.empty()) {
        return path;
    }
    return plumb::Error{plumb::ErrorCode::unavailable,
                        "libplumb-attach.so does not lie where this plumb was installed (" + folder.string() +
                            "): build it where libzstd.a and libpcre2-8.a are at hand, and install both together"};
}

/// "": plumb's Python package is not installed beside the command.
std::string python_folder() { return installed(folder_of_command(), PLUMB_PYTHON_FOLDERS, "plumb/_attach"); }

std::string nothing_was_met() {
    const bool torch = !python_folder().empty();
    return std::string("no engine was met: looked for llama.cpp and other engines over ggml in shared libraries "
                       "(ggml_backend_load_all(), ggml_backend_sched_new()), ") +
           (torch ? "for torch in Python 3.10 or later, " : "") +
           "for CUDA graphs of a libcudart that is a shared library, for onnxruntime (OrtGetApiBase(), called through "
           "a slot), for Vulkan, for OpenCL, and for NVTX ranges. " +
           (torch ? ""
                  : "Not for torch: plumb's Python package does not lie where this plumb was installed; install "
                    "python3-plumb, or unpack the whole archive. ") +
           "What a process of another user or PID namespace recorded, or a program that records itself, is found under "
           "a name without placeholders alone (-o FILE). "
           "Try `plumb run --list` for what is known, and a build of the engine with shared libraries";
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

/// As it was told: its name, and behind a tab its way in.
std::string nothing_was_recorded(const std::string& engine) {
    return terminal_text(engine.substr(0, engine.find('\t'))) + " was met, and nothing of it was recorded";
}

/// Whether one of the paths in this list is that one.
bool lists(const std::string& list, const char* separators, const std::string& path) {
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find_first_of(separators, at), list.size());
        if (list.compare(at, end - at, path) == 0) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

/// The working folder as a part of out=: its percent signs are none of a placeholder.
std::filesystem::path working_folder() {
    std::error_code error;
    std::string folder = std::filesystem::current_path(error).string();
    for (std::size_t at = 0; (at = folder.find('%', at)) != std::string::npos; at += 2) {
        folder.insert(at, 1, '%');
    }
    return folder;
}

/// PLUMB, on, with the user's own keys.
plumb::Result<std::string> spec(const RunArguments& arguments) {
    plumb::Result<plumb::Config> config = plumb::Config::from_env();
    if (!config) {
        return config.error();
    }
    config->on = true;
    if (arguments.kernels && config->device_every == 1) {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "--kernels times kernels in some steps only: leave device.every=1 out of PLUMB"};
    }
    if (arguments.kernels && config->sync == plumb::SyncMode::none) {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "--kernels records what a device does: leave sync=none out of PLUMB"};
    }
    if (!arguments.out.empty()) {
        if (plumb::Status status = config->set("out", arguments.out, "-o"); !status.ok()) {
            return status.error();
        }
    }
    if (config->out == "none") {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "out=none keeps the recording in the memory of the command, where plumb run cannot read "
                            "it: name a file with -o (./none for one of that name)"};
    }
    const std::filesystem::path path = working_folder() / config->out; // that alone where it is absolute
    config->out = path.string();                                       // the command may change its folder
    if (std::error_code error; !path.has_filename() || std::filesystem::is_directory(path, error)) {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "a recording is a file, and " + path.string() + " is a folder: name a file in it with -o"};
    }
    const std::string folder = path.parent_path().string();
    if (folder.find('%') == folder.npos && ::access((folder + "/.").c_str(), W_OK | X_OK) != 0) {
        const int reason = errno;
        return plumb::Error{plumb::ErrorCode::not_found,
                            "no recording can be written to " + folder + ": " + std::strerror(reason) +
                                (reason == ENOENT ? "; make that folder, or" : ";") + " name another one with -o"};
    }
    const plumb::Result<plumb::Config> again = plumb::Config::parse(config->spec());
    if (!again || again->out != config->out) {
        return plumb::Error{plumb::ErrorCode::invalid_argument,
                            "the path of the recording must hold no comma: " + config->out};
    }
    return config->spec();
}

/// The Vulkan loader looks for our layer beside the library, whose folder it looks into before its own.
void add_vulkan(Environment& made, const std::string& library, std::vector<std::string>& remarks) {
    constexpr const char* layer = "VK_LAYER_PLUMB_attach";
    const std::string folder = std::filesystem::path(library).parent_path().string();
    const auto before_ours = [](const char* name) {
        const std::string before = variable(name);
        return before.empty() ? before : before + ":";
    };
    if (folder.find(':') != folder.npos) {
        remarks.push_back("VK_INSTANCE_LAYERS is left alone: the path of libplumb-attach.so has a colon");
    } else if (std::filesystem::exists(folder + "/plumb_attach_layer.json")) {
        made.emplace_back("VK_INSTANCE_LAYERS", before_ours("VK_INSTANCE_LAYERS") + layer);
        const char* const paths =
            variable("VK_LAYER_PATH").empty() ? "VK_ADD_LAYER_PATH" : "VK_LAYER_PATH"; // the second hides the first
        made.emplace_back(paths, before_ours(paths) + folder);
    }
}

/// Puts the folder of our sitecustomize.py before those that Python looks into.
void add_python(Environment& made, std::vector<std::string>& remarks) {
    const std::string folder = python_folder();
    const std::string before = variable("PYTHONPATH");
    if (folder.find(':') != folder.npos) {
        remarks.push_back("PYTHONPATH is left alone: the path of plumb's Python package has a colon");
    } else if (!folder.empty() && !lists(before, ":", folder)) {
        made.emplace_back("PYTHONPATH", before.empty() ? folder : folder + ":" + before);
    }
}

/// The driver of CUDA loads one library of a tool.
void add_kernels(Environment& made, const std::string& library, std::vector<std::string>& remarks) {
    if (const std::string tool = variable("CUDA_INJECTION64_PATH"); !tool.empty() && tool != library) {
        remarks.push_back("CUDA_INJECTION64_PATH was set: " + tool +
                          " traces the kernels, for which there can be one library alone, and they are not recorded");
    } else {
        made.emplace_back("CUDA_INJECTION64_PATH", library);
    }
}

/// What the command finds in its environment. A variable that is set already is kept, and ours stands beside it.
plumb::Result<Environment> environment_for(const std::string& library, const RunArguments& arguments,
                                           const RunNotes& notes, std::vector<std::string>& remarks) {
    const plumb::Result<std::string> wanted = spec(arguments);
    if (!wanted) {
        return wanted.error();
    }
    Environment made = {{"PLUMB", *wanted}, {"PLUMB_RUN", notes.address()}, {"GGML_BACKEND_PATH", library}};
    if (const std::string before = variable("GGML_BACKEND_PATH"); !before.empty() && before != library) {
        made.emplace_back("PLUMB_NEXT_GGML_BACKEND", before);
        remarks.push_back("GGML_BACKEND_PATH was set: " + before + " is loaded as before, behind libplumb-attach.so");
    }
    const std::string before = variable("LD_PRELOAD");
    if (library.find_first_of(" :") != library.npos) {
        remarks.push_back("LD_PRELOAD is left alone: the path of libplumb-attach.so has a blank or a colon");
    } else if (!lists(before, " :", library)) {
        made.emplace_back("LD_PRELOAD", before.empty() ? library : before + ":" + library);
    }
    if (const std::string tool = variable("NVTX_INJECTION64_PATH"); !tool.empty() && tool != library) {
        remarks.push_back("NVTX_INJECTION64_PATH was set: " + tool +
                          " gets the NVTX ranges, for which there can be one library alone, and they are not recorded");
    } else {
        made.emplace_back("NVTX_INJECTION64_PATH", library);
    }
    add_vulkan(made, library, remarks);
    const std::string layers = variable("OPENCL_LAYERS");
    if (library.find(':') == library.npos && !lists(layers, ":", library)) {
        made.emplace_back("OPENCL_LAYERS", layers.empty() ? library : layers + ":" + library);
    }
    add_python(made, remarks);
    if (arguments.kernels) {
        add_kernels(made, library, remarks);
    }
    return made;
}

/// 0: there is none.
ino_t file_number(const std::filesystem::path& path) {
    struct stat file {};
    return ::stat(path.c_str(), &file) == 0 ? file.st_ino : 0;
}

/// Where the recording of one process lies. A later one that got the same name, as a program that executes itself does, left it
/// aside as path.1 or the like.
std::string recording_told(const std::string& told) {
    const std::size_t tab = told.find('\t');
    const ino_t number = std::strtoull(told.c_str(), nullptr, 10);
    const std::filesystem::path path = told.substr(tab + 1);
    std::error_code error;
    if (number == 0 || file_number(path) == number) {
        return path.string();
    }
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), error)) {
        if (entry.path().filename().string().starts_with(path.filename().string() + '.') &&
            file_number(entry.path()) == number) {
            return entry.path().string();
        }
    }
    return path.string();
}

/// Where there is to be JSON, the sentence stands in place of the report too.
void say_no_report(const std::string& sentence, bool json) {
    std::cerr << "note  " << sentence << '\n';
    if (json) {
        say_error(sentence, true);
    }
}

/// The report of one recording. Text goes to standard error: standard output is the command's.
void print_run(const std::string& recording, const RunArguments& arguments) {
    (void)plumb::recover_recording(recording); // where its process was killed; else there is nothing to do
    const plumb::Result<plumb::Answer> answer = plumb::ask("report", {recording});
    if (!answer) {
        say_no_report(answer.error().message, arguments.json);
        return;
    }
    if (arguments.json) {
        std::cout << answer->json();
        return;
    }
    const bool color = ::isatty(STDERR_FILENO) == 1 && stdout_has_color();
    std::cerr << "\nrecording " << terminal_text(recording) << '\n' << answer->text({color, stdout_columns()});
}

/// "r%r.plumb": one of several ranks, whose recordings `plumb ranks` reads together; as the shell finds them. "": it is not.
std::string of_all_ranks(const std::string& out) {
    std::string all;
    bool of_ranks = false;
    for (std::size_t at = 0; at < out.size(); ++at) {
        if (out[at] != '%') {
            all += out[at];
            continue;
        }
        const char what = at + 1 < out.size() ? out[++at] : '%'; // %p, %h, %r, %%
        of_ranks = of_ranks || what == 'r';
        all += what == '%' ? '%' : '*';
    }
    return of_ranks ? all : "";
}

/// Where recordings go, as the user named it.
std::string out_of(const RunArguments& arguments) {
    const plumb::Result<plumb::Config> config = plumb::Config::from_env();
    return arguments.out.empty() && config ? config->out : arguments.out;
}

/// Of several ranks that this command started, who waited for whom; their reports would run into each other. Where a launcher started
/// this command once for each rank, the others may still be running.
void print_ranks(const std::vector<std::string>& recordings, const std::string& all) {
    std::string lines;
    for (const std::string& recording : recordings) {
        (void)plumb::recover_recording(recording);
        lines += "recording " + terminal_text(recording) + ", of one rank" +
                 (recordings.size() == 1 ? "; of all: plumb ranks " + terminal_text(all) : "") + '\n';
    }
    std::cerr << lines; // in one piece, beside those of other ranks
    if (recordings.size() > 1) {
        const plumb::Result<plumb::Answer> answer = plumb::ask("ranks", recordings);
        const bool color = ::isatty(STDERR_FILENO) == 1 && stdout_has_color();
        std::cerr << (answer ? '\n' + answer->text({color, stdout_columns()})
                             : "note  " + answer.error().message + '\n');
    }
}

/// `before`: the file number of what lay where the recording goes.
void print_all(const RunNotes& notes, const std::vector<std::string>& remarks, const RunArguments& arguments,
               ino_t before) {
    std::vector<std::string> recordings = notes.of("recording");
    std::transform(recordings.begin(), recordings.end(), recordings.begin(), recording_told);
    const std::string out = out_of(arguments);
    if (const ino_t now = file_number(out); recordings.empty() && now != 0 && now != before) {
        recordings.push_back(std::filesystem::absolute(out).string()); // whoever wrote it could not tell
    }
    const std::string ranks = arguments.json ? "" : of_all_ranks(out);
    if (const std::vector<std::string> engines = notes.of("engine"); recordings.empty()) {
        say_no_report(engines.empty() ? nothing_was_met() : nothing_was_recorded(engines.front()), arguments.json);
    } else if (!ranks.empty()) {
        print_ranks(recordings, ranks);
    } else {
        for (const std::string& recording : recordings) {
            print_run(recording, arguments);
        }
    }
    for (const std::string& sentence : notes.of("sentence")) {
        std::cerr << "note  " << terminal_text(sentence) << '\n';
    }
    for (const std::string& remark : remarks) {
        std::cerr << "note  " << terminal_text(remark) << '\n';
    }
}

int run_command(const std::vector<std::string>& command, const RunArguments& arguments) {
    const plumb::Result<std::string> library = attach_library();
    if (!library) {
        return say_error(library.error().message, arguments.json);
    }
    const RunNotes notes;
    std::vector<std::string> remarks;
    const plumb::Result<Environment> environment = environment_for(*library, arguments, notes, remarks);
    if (!environment) {
        return say_error(environment.error().message, arguments.json);
    }
    const ino_t before = file_number(out_of(arguments));
    const plumb::Result<int> status = run_child(command, *environment);
    if (!status) {
        say_error(status.error().message, arguments.json);
        return status.error().code == plumb::ErrorCode::not_found ? 127 : 126; // as a shell does
    }
    print_all(notes, remarks, arguments, before);
    std::cout.flush();
    end_as(*status);
    return exit_code_of_status(*status);
}

} // namespace

void add_run(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<RunArguments>();
    CLI::App& app =
        *root.add_subcommand("run", "Run a command, record the engine in it as it is, and print the report");
    app.add_option(
           "-o,--out", arguments->out,
           "Recording to write; %p is the process, %r the rank under mpirun, torchrun or srun (default plumb-%p.plumb, or what "
           "PLUMB says)")
        ->type_name("FILE");
    app.add_flag("--json", arguments->json, "The report as JSON on standard output, after the command's own");
    app.add_flag(
        "--kernels", arguments->kernels,
        "Also kernels of CUDA by NVIDIA's CUPTI, in short windows; CUDA graphs get no instrumented copies then");
    app.add_flag("--list", arguments->list, "Instead: list engines, ways in, and releases that were run");
    app.footer("What follows the options, or --, is the command and its arguments.");
    app.prefix_command();
    app.callback([arguments, &app, &exit_code] {
        const std::vector<std::string> command = app.remaining();
        if (!command.empty() && command.front().starts_with("-")) {
            throw CLI::ExtrasError("run", {command.front()});
        }
        if (arguments->list) {
            std::cout << what_is_known;
        } else if (command.empty()) {
            exit_code =
                say_error("plumb run needs a command: plumb run -- llama-cli -m model.gguf; see plumb run --help",
                          arguments->json);
        } else {
            exit_code = run_command(command, *arguments);
        }
    });
}
