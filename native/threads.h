// A few threads that share a loop over many small jobs. What they do must not depend on who does it.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace keisei {

class ThreadTeam {
public:
    // The caller of run() is one of them: a team of one has no threads of its own.
    explicit ThreadTeam(int size);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int size() const { return size_; }

    // Calls job(i) once for every i below count, and returns when all are done. Should any throw, the first exception
    // comes out here. One call at a time.
    void run(int count, const std::function<void(int)>& job);

private:
    void start();
    void serve();
    void take_jobs();

    const int size_;
    long process_ = 0;  // whose threads they are: after fork() the child has none
    std::unique_ptr<std::vector<std::thread>> threads_;

    // The work of this round; written only while the round is closed and nobody is inside.
    const std::function<void(int)>* job_ = nullptr;
    int count_ = 0, chunk_ = 1;

    std::atomic<int> next_{0};         // the first job that nobody has taken
    std::atomic<uint32_t> gate_{0};    // bit 31: the round is open; below: how many helpers are inside
    std::atomic<uint32_t> round_{0};   // helpers wait for it to change
    std::atomic<bool> quit_{false};
    std::mutex error_mutex_;
    std::exception_ptr error_;
};

}  // namespace keisei
