#include "threads.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace keisei {
namespace {

// How long a helper polls for work before it sleeps: longer than a quick policy needs between two steps, too short for
// anyone to notice. If a helper sleeps, the next call does without its help, but never waits for it.
constexpr std::chrono::microseconds PATIENCE{100};

void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#else
    std::this_thread::yield();
#endif
}

// Waits until the state changes, or until patience runs out.
void watch(const std::atomic<uint32_t>& state, uint32_t old) {
    const auto end = std::chrono::steady_clock::now() + PATIENCE;
    do {
        for (int looks = 0; looks < 100; ++looks) {
            if (state.load(std::memory_order_acquire) != old) return;
            rest();
        }
    } while (std::chrono::steady_clock::now() < end);
}

}  // namespace

ThreadTeam::ThreadTeam(int size) : size_(size) { start(); }

void ThreadTeam::start() {
    process_ = getpid();
    helpers_ = std::make_unique<Helper[]>(helper_count());
    try {
        for (size_t i = 0; i < helper_count(); ++i)
            helpers_[i].thread = std::thread([this, &helper = helpers_[i]] { serve(helper); });
    } catch (...) {  // the system has no more threads
        stop();
        throw;
    }
}

void ThreadTeam::stop() {
    for (size_t i = 0; i < helper_count(); ++i) {
        if (!helpers_[i].thread.joinable()) break;  // it was never started
        helpers_[i].state = QUIT;
        helpers_[i].state.notify_one();
        helpers_[i].thread.join();
    }
}

ThreadTeam::~ThreadTeam() {
    if (process_ == getpid()) stop();
    else (void)helpers_.release();  // threads of another process can be neither joined nor detached
}

void ThreadTeam::run(int count, const Job& job) {
    if (process_ != getpid()) {
        (void)helpers_.release();
        start();
    }
    const auto part = [&](size_t i) { return int(int64_t(count) * int64_t(i) / size_); };  // where thread i begins; the caller is 0
    for (size_t i = 0; i < helper_count(); ++i) {
        Helper& helper = helpers_[i];
        helper.first = part(i + 1);
        helper.end = part(i + 2);
        helper.job = &job;
        helper.state.store(OFFERED, std::memory_order_release);
        helper.state.notify_one();
    }
    do_part(0, part(1), job);
    for (size_t i = 0; i < helper_count(); ++i) {
        Helper& helper = helpers_[i];
        uint32_t state = OFFERED;
        if (helper.state.compare_exchange_strong(state, IDLE, std::memory_order_acquire)) {
            do_part(helper.first, helper.end, job);
            continue;
        }
        for (; state == TAKEN; state = helper.state.load(std::memory_order_acquire)) {
            watch(helper.state, TAKEN);
            if (helper.state.load(std::memory_order_relaxed) == TAKEN) std::this_thread::yield();
        }
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::do_part(int first, int end, const Job& job) {
    try {
        job(first, end);
    } catch (...) {
        const std::lock_guard lock(error_mutex_);
        error_ = std::current_exception();
    }
}

void ThreadTeam::serve(Helper& helper) {
    for (;;) {
        watch(helper.state, IDLE);
        helper.state.wait(IDLE, std::memory_order_acquire);
        uint32_t state = OFFERED;
        if (helper.state.compare_exchange_strong(state, TAKEN, std::memory_order_acquire)) {
            do_part(helper.first, helper.end, *helper.job);
            helper.state.store(IDLE, std::memory_order_release);
        } else if (state == QUIT) {
            return;
        }
    }
}

}  // namespace keisei
