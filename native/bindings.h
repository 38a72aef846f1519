// Shared by the files of the Python module: errors, text, moves and work without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "game.h"
#include "sfen.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace keisei {

struct NotationFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct RulesFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void raise(const Error& error) {
    if (error.kind == Error::SYNTAX) throw NotationFault(error.message);
    throw RulesFault(error.message);
}

template <class T>
T unwrap(Result<T> result) {
    if (!result.ok()) raise(result.error());
    return std::move(result.value());
}

[[noreturn]] inline void raise_value_error(const std::string& what) { throw nb::value_error(what.c_str()); }

inline int checked(const char* name, int value, int lowest, int highest = INT_MAX) {
    if (value < lowest || value > highest)
        raise_value_error(std::string(name) + " is " + std::to_string(value) + ", expected " +
                          (highest == INT_MAX ? "at least " + std::to_string(lowest)
                                              : std::to_string(lowest) + " to " + std::to_string(highest)));
    return value;
}

// The UTF-8 of a Python string; valid as long as the string.
std::string_view utf8(nb::handle text);

// The Python object of a move; there is only one.
nb::object move_object(Move m);
bool is_move(nb::handle object);
nb::list move_list(const Move* begin, size_t size);

// The rules by their Python names.
inline constexpr const char* DECLARATION_NAMES[] = {"off", "27", "24", "try"};
inline constexpr const char* KINGS_NAMES[] = {"both", "defender"};
Rules to_rules(std::optional<int> max_moves, std::string_view declaration);
Kings to_kings(std::string_view name);
nb::object max_moves_object(int max_moves);  // None if there is no limit
nb::tuple outcome_tuple(const Outcome& outcome);

// Throws if a position lacks a king, naming the game.
void need_both_kings(const std::string& name, const Position& position);

inline bool python_is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
    const bool ending = Py_IsFinalizing();
#else
    const bool ending = _Py_IsFinalizing();
#endif
    return ending || !Py_IsInitialized();  // or has ended
}

[[noreturn]] inline void sleep_until_the_process_ends() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Calls what may wait for the GIL: Python's C API and Python code. While Python is shutting down, it ends a daemon thread
// that waits for the GIL by unwinding its stack, and where that reaches a function which must not throw, or one that
// catches everything, the process aborts. Here the unwinding is caught, and never goes on: the thread sleeps until the
// process ends.
template <class Call>
auto surviving_shutdown(Call&& call) {
    try {
        return call();
    } catch (const std::exception&) {
        throw;
    } catch (...) {
        sleep_until_the_process_ends();
    }
}

// The same for a thread without the GIL, which need not even try to take it once Python is shutting down.
template <class Call>
auto taking_gil(Call&& call) {
    if (python_is_ending()) sleep_until_the_process_ends();
    return surviving_shutdown(call);
}

// Runs work without the GIL.
template <class Work>
void without_gil(Work&& work) {
    PyThreadState* thread = PyEval_SaveThread();
    std::exception_ptr error;
    try {
        work();
    } catch (...) {
        error = std::current_exception();
    }
    taking_gil([&] { PyEval_RestoreThread(thread); });
    if (error) std::rethrow_exception(error);
}

// Tells work without the GIL to stop on Ctrl-C. Python reports signals only to its main thread; other threads see what
// the main thread has seen, if it takes part in the work.
class CtrlC {
public:
    CtrlC() {  // with the GIL
        main_ = surviving_shutdown([] {
            const nb::object main_thread = nb::module_::import_("threading").attr("main_thread")();
            return nb::cast<unsigned long>(main_thread.attr("ident"));
        });
    }
    bool operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (!seen_ && PyThread_get_thread_ident() == main_ && now >= next_look_) {
            nb::gil_scoped_acquire acquire;
            if (PyErr_CheckSignals() != 0) seen_ = true;
            next_look_ = now + INTERVAL;
        }
        return seen_;
    }
    // After the work, with the GIL: raises the exception that Python made of the signal.
    void rethrow() const {
        if (seen_) nb::raise_python_error();
    }

private:
    // Taking the GIL costs 5 ms if another Python thread is busy.
    static constexpr std::chrono::milliseconds INTERVAL{50};

    unsigned long main_;
    std::chrono::steady_clock::time_point next_look_ = std::chrono::steady_clock::now() + INTERVAL;
    std::atomic<bool> seen_{false};
};

// An object shared with Python and marked while in use: a second thread gets an error, not a data race.
template <class T>
class Shared {
public:
    class Use {
    public:
        explicit Use(Shared& shared) : shared_(shared) {
            if (shared.broken_) throw std::runtime_error(shared.name_ + " unusable: an earlier step failed half-way");
            if (shared.busy_.exchange(true)) throw std::runtime_error(shared.name_ + " in use by another thread");
        }
        ~Use() { shared_.busy_ = false; }
        Use(const Use&) = delete;
        T* operator->() const { return shared_.object_.get(); }

    private:
        Shared& shared_;
    };

    // Runs work without the GIL. If it fails half-way (out of memory), the object becomes unusable.
    template <class Work>
    void change(Work&& work) {
        try {
            without_gil(work);
        } catch (...) {
            broken_ = true;
            throw;
        }
    }

protected:
    Shared(std::unique_ptr<T> object, const char* name) : object_(std::move(object)), name_(name) {}

    std::unique_ptr<T> object_;

private:
    std::string name_;
    std::atomic<bool> busy_{false};
    bool broken_ = false;
};

void bind_encoding(nb::module_& m);
void bind_search(nb::module_& m);
void bind_vector(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_self_play(nb::module_& m);
void bind_tower(nb::module_& m);

}  // namespace keisei
