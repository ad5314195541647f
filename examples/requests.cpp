// SPDX-License-Identifier: Apache-2.0
// A server in small, with its requests marked: the sample of docs/reference/requests.md.
#include <plumb/plumb.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

struct ServedRequest {
    std::uint64_t id = 0;
    const char* trace_header = nullptr; // as HTTP has it; null: none
    std::size_t wanted = 0, given = 0;  // tokens
};

// A forward pass would be here.
void forward(std::vector<ServedRequest>& batch) {
    for (ServedRequest& request : batch) {
        ++request.given;
    }
}

// [requests]
// Where a request arrives, on whatever thread:
void arrived(plumb::Profiler& prof, const ServedRequest& r) {
    PLUMB_REQUEST(prof, r.id, plumb::RequestPhase::queue, plumb::trace_parent(r.trace_header));
}

// Where the scheduler takes it out of the queue, and until its first token is there:
void prefill(plumb::Profiler& prof, std::vector<ServedRequest>& one) {
    PLUMB_REQUEST(prof, one[0].id, plumb::RequestPhase::prefill);
    {
        PLUMB_STEP(prof, plumb::host, plumb::Phase::prefill, plumb::tokens(32));
        PLUMB_STEP_REQUEST(prof, one[0].id); // it is in the batch of this step
        forward(one);
    }
    PLUMB_REQUEST(prof, one[0].id, plumb::RequestPhase::decode);
}

// Each decode step, and where a request is done:
void decode(plumb::Profiler& prof, std::vector<ServedRequest>& batch) {
    {
        PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(batch.size()));
        for (const ServedRequest& r : batch) {
            PLUMB_STEP_REQUEST(prof, r.id);
        }
        forward(batch);
    }
    for (const ServedRequest& r : batch) {
        if (r.given == r.wanted) {
            PLUMB_REQUEST(prof, r.id, plumb::RequestPhase::end, plumb::tokens(r.given));
        }
    }
}
// [/requests]

} // namespace

int main() {
    plumb::Profiler prof(plumb::Config::from_env());
    const ServedRequest first{17, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 8, 0};
    const ServedRequest second{18, nullptr, 8, 0};
    std::vector<ServedRequest> batch;
    for (const ServedRequest& request : {first, second}) {
        arrived(prof, request);
    }
    for (const ServedRequest& request : {first, second}) {
        std::vector<ServedRequest> one{request};
        prefill(prof, one);
        batch.push_back(one[0]);
    }
    for (std::size_t step = 1; step < first.wanted; ++step) {
        decode(prof, batch);
    }
    if (!prof.close().ok()) {
        std::puts("nothing was recorded: PLUMB=on,out=requests.plumb example_requests");
        return 1;
    }
    const auto requests = plumb::ask("requests", {prof.path()});
    std::remove(prof.path().c_str());
    std::fputs(requests.ok() ? requests->text().c_str() : requests.error().message.c_str(), stdout);
    return 0;
}
