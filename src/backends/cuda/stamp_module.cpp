// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/stamp_module.hpp"

#include <list>
#include <mutex>

#include "backends/cuda/stamp_ptx.hpp"

namespace plumb::backends::cuda {
namespace {

struct Loaded {
    const Driver* driver;
    Context context;
    unsigned long long context_id; // a handle may be given out anew
    StampModule module;
};

struct Modules {
    std::mutex mutex;
    std::list<Loaded> loaded; // pointers to its elements stay valid
};

// Never destroyed: probes may still ask while the process exits.
Modules& modules() {
    static Modules& only = *new Modules;
    return only;
}

Error refused(const Driver& driver, CuResult result, const char* call) {
    const char* advice = "graphs are timed by event nodes instead";
    if (result == CuResult::jit_compiler_not_found) {
        advice =
            "install the driver's PTX compiler (libnvidia-ptxjitcompiler); until then graphs are timed by event nodes";
    } else if (result == CuResult::unsupported_ptx_version || result == CuResult::invalid_ptx) {
        advice = "this driver's compiler does not take our stamp kernel; graphs are timed by event nodes instead";
    }
    Error error = error_of(driver, result, call, advice);
    error.code = ErrorCode::unsupported;
    return error;
}

Result<StampModule> load(const Driver& driver, Context context) {
    const RelaxedCapture relaxed(driver);
    const CurrentContext current(driver, context);
    if (current.status() != CuResult::success) {
        return refused(driver, current.status(), "cuCtxPushCurrent");
    }
    StampModule made;
    if (const CuResult loaded = driver.module_load_data(&made.module, stamp_ptx); loaded != CuResult::success) {
        return refused(driver, loaded, "cuModuleLoadData");
    }
    CuResult found = driver.module_get_function(&made.stamp, made.module, "plumb_stamp");
    if (found == CuResult::success) {
        found = driver.module_get_function(&made.advance, made.module, "plumb_stamp_advance");
    }
    if (found != CuResult::success) {
        static_cast<void>(driver.module_unload(made.module));
        return refused(driver, found, "cuModuleGetFunction");
    }
    return made;
}

} // namespace

Result<const StampModule*> stamp_module(const Driver& driver, Context context) {
    unsigned long long id = 0;
    if (driver.ctx_get_id != nullptr && driver.ctx_get_id(context, &id) != CuResult::success) {
        id = 0;
    }
    const std::lock_guard lock(modules().mutex);
    for (const Loaded& known : modules().loaded) {
        if (known.driver == &driver && known.context == context && known.context_id == id) {
            return &known.module;
        }
    }
    const Result<StampModule> made = load(driver, context);
    if (!made) {
        return made.error();
    }
    modules().loaded.push_back({&driver, context, id, *made});
    return &modules().loaded.back().module;
}

Result<const StampModule*> stamp_module(Context context) {
    const Result<Driver>& loaded = driver();
    return loaded ? stamp_module(*loaded, context) : Result<const StampModule*>(loaded.error());
}

} // namespace plumb::backends::cuda
