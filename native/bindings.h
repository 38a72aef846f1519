// Shared by the files that make the Python module: errors, texts, moves and work without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <chrono>
#include <exception>
#include <stdexcept>
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

// The UTF-8 of a Python text, which lives as long as the text does.
std::string_view utf8(nb::handle text);

// The one Python object of a move.
nb::object move_object(Move m);
bool is_move(nb::handle object);
nb::list move_list(const Move* begin, size_t size);

// The rules by the names that Python gives them.
inline constexpr const char* DECLARATION_NAMES[] = {"off", "27", "24", "try"};
Rules to_rules(std::optional<int> max_moves, std::string_view declaration);
nb::object max_moves_object(int max_moves);  // None if there is no limit
nb::tuple outcome_tuple(const Outcome& outcome);

inline bool python_is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

// Runs work without the GIL. A daemon thread whose work ends after Python has begun to shut down must not ask for
// the GIL again (that would end the thread in the middle of C++ and abort the process): it sleeps until the end.
template <class Work>
void without_gil(Work&& work) {
    PyThreadState* thread = PyEval_SaveThread();
    std::exception_ptr error;
    try {
        work();
    } catch (...) {
        error = std::current_exception();
    }
    while (python_is_ending()) std::this_thread::sleep_for(std::chrono::hours(1));
    PyEval_RestoreThread(thread);
    if (error) std::rethrow_exception(error);
}

void bind_encoding(nb::module_& m);
void bind_vector(nb::module_& m);
void bind_tree(nb::module_& m);

}  // namespace keisei
