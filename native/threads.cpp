#include "threads.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace keisei {
namespace {

constexpr uint32_t OPEN = 1u << 31;

// How often a helper looks before it sleeps: some 30 µs, which is longer than a quick policy needs between two steps.
// A sleeping helper costs the next round its help for the time it takes to wake, never a wait.
constexpr int LOOKS = 500;

void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(int size) : size_(size) { start(); }

void ThreadTeam::start() {
    process_ = getpid();
    gate_ = 0;
    threads_ = std::make_unique<std::vector<std::thread>>();
    for (int i = 1; i < size_; ++i) threads_->emplace_back([this] { serve(); });
}

ThreadTeam::~ThreadTeam() {
    if (process_ != getpid()) {
        (void)threads_.release();  // the threads of another process can be neither joined nor let go
        return;
    }
    quit_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& t : *threads_) t.join();
}

void ThreadTeam::run(int count, const std::function<void(int)>& job) {
    if (size_ == 1 || count == 1) {
        for (int i = 0; i < count; ++i) job(i);
        return;
    }
    if (process_ != getpid()) {
        (void)threads_.release();
        start();
    }
    job_ = &job;
    count_ = count;
    chunk_ = std::max(1, count / (size_ * 4));  // small enough that all finish together
    next_.store(0, std::memory_order_relaxed);
    gate_.store(OPEN, std::memory_order_release);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();

    take_jobs();
    gate_.fetch_and(~OPEN, std::memory_order_acq_rel);
    for (int looks = 0; gate_.load(std::memory_order_acquire) != 0; ++looks) looks < LOOKS ? rest() : std::this_thread::yield();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::take_jobs() {
    try {
        for (;;) {
            const int first = next_.fetch_add(chunk_, std::memory_order_relaxed);
            if (first >= count_) return;
            for (int i = first; i < std::min(first + chunk_, count_); ++i) (*job_)(i);
        }
    } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(count_, std::memory_order_relaxed);  // nobody begins another one
    }
}

void ThreadTeam::serve() {
    uint32_t seen = 0;
    while (!quit_) {
        for (int looks = 0; looks < LOOKS && round_.load(std::memory_order_acquire) == seen; ++looks) rest();
        round_.wait(seen, std::memory_order_acquire);
        seen = round_.load(std::memory_order_acquire);
        // Whoever comes after the round was closed is not needed.
        uint32_t gate = gate_.load(std::memory_order_relaxed);
        while ((gate & OPEN) && !gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire)) {}
        if (!(gate & OPEN)) continue;
        take_jobs();
        gate_.fetch_sub(1, std::memory_order_release);
    }
}

}  // namespace keisei
