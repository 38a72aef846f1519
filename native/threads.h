// A few threads that share a loop over many small jobs. What they do must not depend on who does it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace keisei {

// Lowers a number that several threads look for the least of.
inline void lower(std::atomic<int>& least, int value) {
    int known = least;
    while (value < known && !least.compare_exchange_weak(known, value)) {}
}

class ThreadTeam {
public:
    // The caller of run() is one of them: a team of one has no threads of its own.
    explicit ThreadTeam(int size);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const { return size_; }

    // A job for the indices first to end - 1.
    using Job = std::function<void(int first, int end)>;

    // Calls job for consecutive parts of 0 … count, and returns when all is done. Should any throw, an exception comes
    // out here. One call at a time.
    //
    // Each thread gets the same part in every call of the same count: what it works on is then in its core's cache, and
    // to fetch it from there would cost more than to wait. Only what is offered to a thread that does not come (it
    // sleeps, or its core is busy) is done by the caller.
    void run(int count, const Job& job);

private:
    enum State : uint32_t { IDLE, OFFERED, TAKEN, QUIT };

    // A helper and what it is to do; in a cache line of its own.
    struct alignas(64) Helper {
        std::atomic<uint32_t> state{IDLE};
        int first = 0, end = 0;
        const Job* job = nullptr;
        std::thread thread;
    };

    void start();
    void stop();
    void serve(Helper& helper);
    void do_part(int first, int end, const Job& job);

    size_t helper_count() const { return size_t(size_) - 1; }

    const int size_;
    long process_ = 0;  // whose threads they are: after fork() the child has none
    std::unique_ptr<Helper[]> helpers_;
    std::mutex error_mutex_;
    std::exception_ptr error_;
};

}  // namespace keisei
