// A few threads that share a loop over many small jobs. Results must not depend on which thread does what.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace keisei {

// Lowers a shared minimum that several threads update.
inline void lower(std::atomic<int>& least, int value) {
    int known = least;
    while (value < known && !least.compare_exchange_weak(known, value)) {}
}

class ThreadTeam {
public:
    // The caller of run() is one of them: a team of one starts no threads.
    explicit ThreadTeam(int size);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const { return size_; }

    // A job for the indices first to end - 1.
    using Job = std::function<void(int first, int end)>;

    // Calls job for consecutive parts of 0 … count and returns when all are done. If any throws, one exception is
    // rethrown here. One call at a time.
    //
    // Each thread gets the same part in every call with the same count: its data is then in its core's cache, and
    // fetching it from there would cost more than waiting. The caller takes over only the part of a thread that does
    // not respond (it sleeps, or its core is busy).
    void run(int count, const Job& job);

private:
    enum State : uint32_t { IDLE, OFFERED, TAKEN, QUIT };

    // A helper and its job, in its own cache line.
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
    long process_ = 0;  // the owner of the threads: after fork() the child has none
    std::unique_ptr<Helper[]> helpers_;
    std::mutex error_mutex_;
    std::exception_ptr error_;
};

}  // namespace keisei
