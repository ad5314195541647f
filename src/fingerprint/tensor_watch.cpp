// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/tensor_watch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <new>
#include <utility>

#include "fingerprint/fingerprint_with.hpp"
#include "fingerprint/kernels.hpp"
#include "fingerprint/logits.hpp"
#include "fingerprint/npy.hpp"
#include "fingerprint/tensor_order.hpp"
#include "plumb/fingerprint.hpp"
#include "record/name_registry.hpp"

namespace plumb::fingerprint {
namespace {

constexpr std::size_t most_pending = std::size_t{1} << 18; // 0.1 GB; the drain comes ten times a second
constexpr std::size_t inputs_kept = 64;
constexpr std::size_t most_spare = 8192; // 4 MB; a tenth of a second has fewer
constexpr unsigned most_threads = 8;
constexpr std::size_t longest_in_file_name = 128; // a name; with its place it fits the 255 bytes that a folder allows

std::string name_text(std::uint16_t id) {
    for (const record::NameEntry& entry : record::names_from(id)) {
        return entry.id == id ? entry.name : "unnamed";
    }
    return "unnamed";
}

std::string place_text(const recording::TensorCheck& check) {
    std::string text =
        check.step_plus_one == 0 ? "outside any step" : "step " + std::to_string(check.step_plus_one - 1);
    if (check.layer_plus_one != 0) {
        text += " layer " + std::to_string(check.layer_plus_one - 1);
    }
    return text + " brick " + name_text(check.name);
}

/// Pieces of one prefill are numbered so that they can be joined; what a decode step computes is a tensor of its own.
std::uint64_t first_index_of(const record::TensorCall& call, const Tensor& tensor) {
    if (call.phase != Phase::prefill || call.tags.position < 0 || tensor.rank == 0 || tensor.shape[0] == 0) {
        return 0;
    }
    return static_cast<std::uint64_t>(call.tags.position) * (tensor.count() / tensor.shape[0]);
}

bool of_one_brick(const recording::TensorCheck& a, const recording::TensorCheck& b) {
    return a.step_plus_one == b.step_plus_one && a.layer_plus_one == b.layer_plus_one && a.name == b.name &&
           a.graph_key == b.graph_key && a.replay == b.replay;
}

} // namespace

TensorWatch::TensorWatch(const TensorConfig& config, std::vector<std::unique_ptr<DeviceTensors>> devices,
                         std::function<void(const std::string&)> diagnose)
    : config_(config), devices_(std::move(devices)), diagnose_(std::move(diagnose)),
      own_name_(record::intern_name("tensor_check", Category::other)), first_order_(take_tensor_orders(0)),
      dumping_(!config.dump.empty()) {
    config_.every = std::max<std::uint64_t>(config_.every, 1);
    for (const std::string& brick : config_.bricks) {
        bricks_.insert(record::intern_name(brick, Category::other).id);
    }
}

bool TensorWatch::chosen(const record::TensorCall& call) const noexcept {
    if (call.step_plus_one != 0 && (call.step_plus_one - 1) % config_.every != 0) {
        return false;
    }
    if (!bricks_.empty() && bricks_.count(call.name.id) == 0) {
        return false;
    }
    if (config_.layers.empty()) {
        return true;
    }
    return std::any_of(config_.layers.begin(), config_.layers.end(), [&](const auto& range) {
        return call.layer_plus_one > range.first && call.layer_plus_one - 1 <= range.second;
    });
}

void TensorWatch::take(const record::TensorCall& call) noexcept {
    if (!chosen(call)) {
        return;
    }
    try {
        if (const char* wrong = complaint(*call.tensor)) {
            refuse(call, wrong);
            return;
        }
        for (const auto& device : devices_) {
            if (device->takes(call)) {
                if (dumping_.exchange(false, std::memory_order_relaxed)) {
                    diagnose_("no tensors are kept whole: only those in host memory can be, and " +
                              name_text(call.name.id) + " lies on a device");
                }
                if (Status status = device->enqueue(call, labelled(call, *call.tensor, number(call))); !status.ok()) {
                    refuse(call, status.error().message);
                }
                return;
            }
        }
        if (call.queue.timer != nullptr && !call.queue.timer->clock_is_host()) {
            refuse(call, "its queue is that of a device, and tensors of such devices cannot be checked");
            return;
        }
        const Scope own = const_cast<Recorder*>(call.recorder)->scope(host, own_name_);
        if (config_.level == TensorConfig::Level::nonfinite) {
            look_for_nonfinite(call);
        } else {
            check_on_host(call);
        }
    } catch (const std::bad_alloc&) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
    }
}

TensorWatch::Number TensorWatch::number(const record::TensorCall& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return number_locked(call);
}

TensorWatch::Number TensorWatch::number_locked(const record::TensorCall& call) {
    const std::uint32_t name_and_role = std::uint32_t{call.name.id} << 8 | static_cast<std::uint32_t>(call.role);
    return {take_tensor_orders(1),
            occurrences_.next({call.step_plus_one, call.tags.sequence, call.layer_plus_one, name_and_role})};
}

void TensorWatch::label(recording::TensorCheck& check, const record::TensorCall& call, const Tensor& tensor,
                        Number number) {
    recording::TensorCheck old = std::exchange(check, {});
    check.shape = std::move(old.shape);
    check.fingerprint.sketch = std::move(old.fingerprint.sketch);
    check.order = number.order;
    check.occurrence = number.occurrence;
    check.step_plus_one = call.step_plus_one;
    check.layer_plus_one = call.layer_plus_one;
    check.name = call.name.id;
    check.phase = call.phase;
    check.role = call.role;
    check.sequence = call.tags.sequence;
    check.position = call.tags.position;
    check.track = call.queue.timer != nullptr ? call.queue.track : call.track;
    check.dtype = tensor.dtype;
    check.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    check.first_index = first_index_of(call, tensor);
}

recording::TensorCheck TensorWatch::labelled(const record::TensorCall& call, const Tensor& tensor, Number number) {
    recording::TensorCheck check;
    label(check, call, tensor, number);
    return check;
}

void TensorWatch::check_on_host(const record::TensorCall& call) {
    recording::TensorCheck check;
    Number its;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        its = number_locked(call);
        if (!spare_.empty()) {
            check = std::move(spare_.back());
            spare_.pop_back();
        }
    }
    label(check, call, *call.tensor, its);
    FingerprintOptions options;
    options.first_index = check.first_index;
    options.threads = most_threads;
    if (Status made = fingerprint_into(check.fingerprint, best_kernels(), *call.tensor, options); !made.ok()) {
        refuse(call, made.error().message);
        return;
    }
    looked_.fetch_add(1, std::memory_order_relaxed);
    if (call.tags.logits) {
        const LargestLogit largest = largest_logit(*call.tensor);
        check.argmax = largest.index;
        check.margin = largest.margin;
    }
    if (!check.fingerprint.finite()) {
        nonfinite_.fetch_add(1, std::memory_order_relaxed);
        say_nonfinite(check);
    }
    dump(call, check);
    put(std::move(check));
}

void TensorWatch::look_for_nonfinite(const record::TensorCall& call) {
    const double magnitude = largest_magnitude(*call.tensor);
    const bool finite = std::isfinite(magnitude);
    looked_.fetch_add(1, std::memory_order_relaxed);
    recording::TensorCheck check = labelled(call, *call.tensor, {});
    Checks inputs;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const Number its = number_locked(call);
        check.order = its.order;
        check.occurrence = its.occurrence;
        if (call.role == TensorRole::output) {
            spend_inputs_of(check, finite ? nullptr : &inputs);
        } else if (finite) {
            check.level = recording::CheckLevel::nonfinite;
            check.fingerprint.count = call.tensor->count();
            check.fingerprint.max = magnitude;
            remember_input(std::move(check));
        }
    }
    if (finite || nonfinite_.fetch_add(1, std::memory_order_relaxed) >= recording::most_nonfinite_checks) {
        return;
    }
    FingerprintOptions options;
    options.first_index = check.first_index;
    options.threads = most_threads;
    Result<Fingerprint> made = fingerprint_of(*call.tensor, options);
    if (!made.ok()) {
        refuse(call, made.error().message);
        return;
    }
    check.fingerprint = *std::move(made);
    say_nonfinite(check);
    for (recording::TensorCheck& input : inputs) {
        put(std::move(input));
    }
    put(std::move(check));
}

// Results come in any order within a round, those of a graph by site: the order of the calls tells what went into what.
void TensorWatch::keep_nonfinite(Checks&& of_device, Checks& to) {
    std::sort(of_device.begin(), of_device.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
    const std::lock_guard<std::mutex> lock(mutex_);
    for (recording::TensorCheck& check : of_device) {
        const bool keep = !check.fingerprint.finite() &&
                          nonfinite_.fetch_add(1, std::memory_order_relaxed) < recording::most_nonfinite_checks;
        if (check.role == TensorRole::output) {
            spend_inputs_of(check, keep ? &to : nullptr);
        }
        if (keep) {
            to.push_back(std::move(check));
        } else if (check.role == TensorRole::input && check.fingerprint.finite()) {
            remember_input(std::move(check));
        }
    }
}

// Whoever finds something wrong in an output wants to know what went in, which may be overwritten by then.
void TensorWatch::remember_input(recording::TensorCheck&& input) {
    inputs_.erase(std::remove_if(inputs_.begin(), inputs_.end(),
                                 [&](const Input& old) {
                                     return old.check.track == input.track &&
                                            (old.spent || !of_one_brick(old.check, input));
                                 }),
                  inputs_.end());
    if (inputs_.size() >= inputs_kept) {
        inputs_.erase(inputs_.begin());
    }
    inputs_.push_back({std::move(input)});
}

// After a call's first output its inputs are no longer those of the next call of that brick. A bad output takes them.
void TensorWatch::spend_inputs_of(const recording::TensorCheck& output, Checks* taken) {
    for (Input& input : inputs_) {
        if (of_one_brick(input.check, output) && input.check.sequence == output.sequence) {
            input.spent = true;
            if (taken != nullptr && !input.taken) {
                input.taken = true;
                taken->push_back(input.check);
            }
        }
    }
}

void TensorWatch::refuse(const record::TensorCall& call, const std::string& why) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    say_once(said_failure_, "a tensor of " + name_text(call.name.id) + " was not checked: " + why);
}

void TensorWatch::put(recording::TensorCheck&& check) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done_.size() >= most_pending) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    done_.push_back(std::move(check));
}

void TensorWatch::say_once(std::atomic<bool>& said, const std::string& sentence) {
    if (diagnose_ && !said.exchange(true, std::memory_order_relaxed)) {
        diagnose_(sentence);
    }
}

void TensorWatch::say_nonfinite(const recording::TensorCheck& check) {
    const Fingerprint& found = check.fingerprint;
    const std::uint64_t infs = found.positive_infs + found.negative_infs;
    say_once(said_nonfinite_, "the first tensor with NaN or Inf: " + place_text(check) + ", " +
                                  (check.role == TensorRole::input ? "input" : "output") + ", index " +
                                  std::to_string(found.first_nonfinite - check.first_index) + " of " +
                                  std::to_string(found.count) + " (" + std::to_string(found.nans) + " NaN, " +
                                  std::to_string(infs) + " Inf); see plumb health");
}

void TensorWatch::dump(const record::TensorCall& call, const recording::TensorCheck& check) {
    if (!dumping_.load(std::memory_order_relaxed)) {
        return;
    }
    char step[32] = "outside";
    if (check.step_plus_one != 0) {
        std::snprintf(step, sizeof step, "step%06llu", static_cast<unsigned long long>(check.step_plus_one - 1));
    }
    char place[96];
    std::snprintf(place, sizeof place, "/%s_layer%03d_", step, static_cast<int>(check.layer_plus_one) - 1);
    std::string name = record::shortened(name_text(check.name), longest_in_file_name);
    std::replace(name.begin(), name.end(), '/', '_');
    std::string path = config_.dump + place + name + (check.role == TensorRole::input ? "_in" : "_out") +
                       std::to_string(check.occurrence);
    path += check.sequence == 0 ? ".npy" : "_sequence" + std::to_string(check.sequence) + ".npy";
    // Of another run, of a forked child, or of a name that differs in a / alone.
    const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made < 0 && errno == EEXIST) {
        not_kept_.fetch_add(1, std::memory_order_relaxed);
        say_once(said_not_kept_, "a tensor is not kept whole where its file is there already, as " + path +
                                     " is: name an empty folder, one for each process");
        return;
    }
    if (made >= 0) {
        ::close(made);
    }
    if (Status status = write_npy(path, *call.tensor); !status.ok() && dumping_.exchange(false)) {
        diagnose_("no more tensors are kept: " + status.error().message);
    }
}

void TensorWatch::collect(drain::FeedRound& round) {
    for (const auto& device : devices_) {
        Checks done;
        device->collect(done);
        looked_.fetch_add(done.size(), std::memory_order_relaxed);
        for (const recording::TensorCheck& check : done) {
            if (!check.fingerprint.finite()) {
                say_nonfinite(check);
            }
        }
        if (config_.level == TensorConfig::Level::nonfinite) {
            keep_nonfinite(std::move(done), round.checks);
            continue;
        }
        for (recording::TensorCheck& check : done) {
            nonfinite_.fetch_add(check.fingerprint.finite() ? 0 : 1, std::memory_order_relaxed);
            round.checks.push_back(std::move(check));
        }
    }
    Checks done;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        done.swap(done_);
    }
    round.checks.insert(round.checks.end(), done.begin(), done.end());
    for (recording::TensorCheck& check : round.checks) {
        check.order -= std::min(check.order, first_order_); // this run's begin with 0
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    done.resize(std::min(done.size(), most_spare));
    spare_ = std::move(done);
}

std::uint64_t TensorWatch::unresolved() const noexcept {
    std::uint64_t pending = 0;
    for (const auto& device : devices_) {
        pending += device->pending();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    return pending + done_.size();
}

std::uint64_t TensorWatch::dropped_checks() const noexcept {
    std::uint64_t dropped = dropped_.load(std::memory_order_relaxed);
    for (const auto& device : devices_) {
        dropped += device->dropped();
    }
    return dropped;
}

std::string TensorWatch::summary() const {
    const std::uint64_t looked = looked_.load(std::memory_order_relaxed);
    const std::uint64_t found = nonfinite();
    std::string text = std::to_string(looked) + " tensors" +
                       (found == 0 ? ", all finite" : ", " + std::to_string(found) + " with NaN or Inf");
    if (const std::uint64_t not_kept = not_kept_.load(std::memory_order_relaxed); not_kept != 0) {
        text += ", " + std::to_string(not_kept) + " not kept whole: their files were there already";
    }
    return text;
}

} // namespace plumb::fingerprint
