// SPDX-License-Identifier: Apache-2.0
// A program over the look-alike, which knows nothing of a profiler. Linked against it, or, with LOOKALIKE_LOADED, opening it
// by dlopen() as scripting languages do. Prints the tokens of every context.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "lookalike/llama.h"

namespace {

constexpr const char* usage =
    "usage: engine [WORD=VALUE | WORD]…\n"
    "  libs=DIR          where the libraries lie\n"
    "  load=WAY          how they are opened: global, local, deepbind (where they are opened at all)\n"
    "  file=NAME         the one library that has it all\n"
    "  noload            backends are built in: asks for no others\n"
    "  model=TEXT        see llama.h (layers=2)\n"
    "  prompt=N steps=N  tokens to read, then to make, of each sequence (8, 12)\n"
    "  draft=TEXT        a second model, which makes each step first\n"
    "  contexts=N        as many threads with one context each (1)\n"
    "  sequences=N       in one batch (1); late=STEP: one more joins at that step, with its prompt\n"
    "  threads=N ubatch=N  of each context (1, 512)\n"
    "  backends          prints how many there are\n"
    "  hogs=DIR          opens every library there first, in order, as far as it can\n"
    "  eval | abort=STEP:NODES | stop=NODES  callbacks of the engine's own: looks at nodes; stops a step after so many nodes;\n"
    "                    never stops, counts\n"
    "  fork=STEP exec=STEP kill=STEP reload=STEP  at that step: both go on; starts again without this word; dies by SIGKILL;\n"
    "                    closes the backends, opens them again, starts again\n"
    "  meet=N:DIR        the last step waits until so many engines are at theirs: each makes a file there\n";

std::map<std::string, std::string> words;
int number(const char* word, int otherwise) {
    return words.contains(word) ? std::atoi(words[word].c_str()) : otherwise;
}

#ifdef LOOKALIKE_LOADED
void* open_library(const std::string& name) {
    const std::string way = words["load"];
    const int flags = way == "global" ? RTLD_GLOBAL : way == "deepbind" ? RTLD_LOCAL | RTLD_DEEPBIND : RTLD_LOCAL;
    void* library =
        dlopen((words["libs"] + "/" + (words.contains("file") ? words["file"] : name)).c_str(), RTLD_NOW | flags);
    if (library == nullptr) {
        std::fprintf(stderr, "engine: %s\n", dlerror());
        std::exit(2);
    }
    return library;
}
template <class Function>
Function find(const char* name) {
    static void* const libraries[] = {open_library("libllama.so"), open_library("libggml.so")};
    for (void* library : libraries) {
        if (void* found = dlsym(library, name); found != nullptr) {
            return reinterpret_cast<Function>(found);
        }
    }
    std::fprintf(stderr, "engine: there is no %s\n", name);
    std::exit(2);
}
#define CALL(name)                                              \
    (*[] {                                                      \
        static const auto found = find<decltype(&name)>(#name); \
        return found;                                           \
    }())
#else
#define CALL(name) name
#endif

std::atomic<long> asked{0};
bool look(ggml_tensor*, bool, void*) {
    ++asked;
    return true;
}
struct Stop {
    int after = 0; // nodes; 0: never
    int nodes = 0;
};
bool stop(void* data) {
    auto* at = static_cast<Stop*>(data);
    ++asked;
    return at->after > 0 && ++at->nodes >= at->after;
}

// One context, from its prompt to its last token.
class Conversation {
  public:
    Conversation(llama_model* model, int index) : index_(index) {
        llama_context_params params = CALL(llama_context_default_params)();
        params.n_threads = params.n_threads_batch = number("threads", 1);
        params.n_ubatch = static_cast<std::uint32_t>(number("ubatch", 512));
        params.cb_eval = words.contains("eval") ? look : nullptr;
        params.abort_callback = words.contains("abort") || words.contains("stop") ? stop : nullptr;
        params.abort_callback_data = &stop_;
        context_ = CALL(llama_init_from_model)(model, params);
        sampler_ = CALL(llama_sampler_chain_init)(CALL(llama_sampler_chain_default_params)());
        CALL(llama_sampler_chain_add)(sampler_, CALL(llama_sampler_init_temp)(0.8F));
        CALL(llama_sampler_chain_add)(sampler_, CALL(llama_sampler_init_greedy)());
        for (int sequence = 0; sequence < number("sequences", 1); ++sequence) {
            join();
        }
    }
    ~Conversation() {
        CALL(llama_sampler_free)(sampler_);
        CALL(llama_free)(context_);
    }
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;

    // Everybody's new tokens; the prompt first.
    void step(int at) {
        if (at == number("late", -1)) {
            join();
        }
        stop_ = {words.contains("abort") && at == number("abort", -1)
                     ? std::atoi(std::strchr(words["abort"].c_str(), ':') + 1)
                     : 0,
                 0};
        const int result = words.contains("sequences") ? decode_batch() : decode_one();
        if (result != 0) {
            std::printf("context %d: step %d gave %d\n", index_, at, result);
        }
        if (result == 0) {
            for (Sequence& each : sequences_) {
                const llama_token token = CALL(llama_sampler_sample)(sampler_, context_, each.row);
                each.made += " " + std::to_string(token);
                each.fresh = {token};
            }
        }
    }
    void print(const char* who) const {
        for (const Sequence& each : sequences_) {
            std::printf("%scontext %d tokens%s\n", who, index_, each.made.c_str());
        }
    }

  private:
    struct Sequence {
        std::vector<llama_token> fresh;
        llama_pos position = 0;
        int row = -1;
        std::string made;
    };

    void join() {
        Sequence made;
        for (int i = 0; i < number("prompt", 8); ++i) {
            made.fresh.push_back(3 + (i * 7 + index_ + static_cast<int>(sequences_.size())) % 40);
        }
        sequences_.push_back(made);
    }
    int decode_one() {
        Sequence& only = sequences_[0];
        return CALL(llama_decode)(context_,
                                  CALL(llama_batch_get_one)(only.fresh.data(), static_cast<int>(only.fresh.size())));
    }
    int decode_batch() {
        std::vector<llama_token> tokens;
        std::vector<llama_pos> positions;
        std::vector<llama_seq_id> ids(sequences_.size());
        std::vector<llama_seq_id*> owners;
        std::vector<std::int8_t> wanted;
        for (std::size_t id = 0; id < sequences_.size(); ++id) {
            ids[id] = static_cast<llama_seq_id>(id);
            for (const llama_token token : sequences_[id].fresh) {
                tokens.push_back(token);
                positions.push_back(sequences_[id].position++);
                owners.push_back(&ids[id]);
                wanted.push_back(0);
            }
            wanted.back() = 1;
            sequences_[id].row = static_cast<int>(tokens.size()) - 1;
        }
        std::vector<std::int32_t> one_each(tokens.size(), 1);
        return CALL(llama_decode)(context_, {static_cast<int>(tokens.size()), tokens.data(), nullptr, positions.data(),
                                             one_each.data(), owners.data(), wanted.data()});
    }

    int index_;
    llama_context* context_;
    llama_sampler* sampler_;
    std::vector<Sequence> sequences_;
    Stop stop_;
};

llama_model* load() {
    if (!words.contains("noload")) {
        CALL(ggml_backend_load_all_from_path)(words["libs"].c_str());
    }
    llama_model* model = CALL(llama_model_load_from_file)(words.contains("model") ? words["model"].c_str() : "layers=2",
                                                          CALL(llama_model_default_params)());
    if (model == nullptr) {
        std::exit(2);
    }
    return model;
}

void meet() {
    const std::string text = words["meet"];
    const std::filesystem::path folder = text.substr(text.find(':') + 1);
    std::ofstream(folder / std::to_string(getpid()));
    const auto there = [&folder] {
        return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
    };
    while (there() < std::atoi(text.c_str())) {
        usleep(1000);
    }
}

void run(llama_model* model, int index, char** arguments) {
    const char* who = "";
    pid_t child = 0;
    auto conversation = std::make_unique<Conversation>(model, index);
    std::unique_ptr<Conversation> draft;
    if (words.contains("draft")) {
        draft = std::make_unique<Conversation>(
            CALL(llama_model_load_from_file)(words["draft"].c_str(), CALL(llama_model_default_params)()), index);
    }
    for (int at = 0; at <= number("steps", 12); ++at) {
        if (at == number("fork", -1)) {
            child = fork();
            who = child == 0 ? "child " : "";
        }
        if (at == number("exec", -1)) {
            std::vector<char*> rest;
            for (char** word = arguments; *word != nullptr; ++word) {
                if (std::strncmp(*word, "exec=", 5) != 0) {
                    rest.push_back(*word);
                }
            }
            rest.push_back(nullptr);
            execv("/proc/self/exe", rest.data());
        }
        if (at == number("kill", -1)) {
            kill(getpid(), SIGKILL);
        }
        if (at == number("reload", -1)) {
            conversation.reset();
            CALL(llama_model_free)(model);
            CALL(ggml_backend_unload)(CALL(ggml_backend_reg_by_name)("CPU"));
            model = load();
            conversation = std::make_unique<Conversation>(model, index);
        }
        if (words.contains("meet") && at == number("steps", 12)) {
            meet();
        }
        if (draft != nullptr) {
            draft->step(at);
        }
        conversation->step(at);
    }
    if (child > 0) {
        int status = 0;
        waitpid(child, &status, 0);
        std::printf("child gave %d\n", status);
    }
    conversation->print(who);
}

} // namespace

int main(int, char** arguments) {
    for (char** word = arguments + 1; *word != nullptr; ++word) {
        const std::string text = *word;
        const std::size_t sign = text.find('=');
        words[text.substr(0, sign)] = sign != std::string::npos ? text.substr(sign + 1) : "";
        if (text == "help") {
            std::fputs(usage, stdout);
            return 0;
        }
    }
    std::setvbuf(stdout, nullptr, _IOFBF, 1 << 16); // printed at the end, by whoever got there
    if (words.contains("hogs")) {
        const std::filesystem::directory_iterator folder(words["hogs"]);
        for (const std::filesystem::path& file : std::set<std::filesystem::path>(begin(folder), end(folder))) {
            std::printf("hog %s\n", dlopen(file.c_str(), RTLD_NOW) != nullptr ? "fits" : "does not fit");
        }
    }
    CALL(llama_backend_init)();
    llama_model* model = load();
    if (words.contains("backends")) {
        std::printf("backends %zu\n", CALL(ggml_backend_reg_count)());
    }
    std::vector<std::thread> others;
    for (int index = 1; index < number("contexts", 1); ++index) {
        others.emplace_back(run, model, index, arguments);
    }
    run(model, 0, arguments);
    for (std::thread& each : others) {
        each.join();
    }
    if (asked > 0) {
        std::printf("callbacks %ld\n", asked.load());
    }
    std::fflush(stdout);
    return 0;
}
