// The search trees and the mate search for Python. Works on the caller's arrays, without the GIL.
#include <atomic>
#include <memory>
#include <vector>

#include "bindings_forest.h"
#include "mate.h"

namespace keisei {
namespace {

const Game& to_game(nb::handle object, const std::string& name) {
    if (!nb::isinstance<Game>(object) || !nb::inst_ready(object))
        throw nb::type_error((name + ": expected a ShogiGame").c_str());
    const Game& game = *nb::inst_ptr<Game>(object);
    if (const auto end = game.outcome())
        throw RulesFault(name + ": the game is over, " + std::string(reason_text(end->reason)));
    return game;
}

class SharedForest : public Shared<Forest> {
public:
    explicit SharedForest(std::unique_ptr<Forest> forest) : Shared(std::move(forest), "this search is") {}
};
using Use = SharedForest::Use;

void init_forest(SharedForest* self, nb::list games, double c_puct, double fpu, int leaves, int max_nodes,
                 bool repetition_draws, int threads, int candidates, int planned_visits, double c_visit, double c_scale) {
    TreeSettings settings;
    settings.c_puct = checked_weight("c_puct", c_puct);
    settings.fpu = checked_weight("fpu", fpu);
    settings.leaves = checked("leaves", leaves, 1, 1024);
    settings.max_nodes = checked("max_nodes", max_nodes, 1, MAX_TREE_NODES);
    settings.repetition_draws = repetition_draws;
    checked("threads", threads, 1);
    HalvingPlan plan;
    plan.candidates = checked("candidates", candidates, 0, MAX_LEGAL_MOVES);
    plan.visits = candidates ? checked("planned_visits", planned_visits, 2, MAX_TREE_NODES) : 0;
    plan.c_visit = checked_weight("c_visit", c_visit);
    plan.c_scale = checked_weight("c_scale", c_scale);
    if (games.size() < 1 || games.size() > size_t(INT_MAX / MAX_LEGAL_MOVES / leaves))
        raise_value_error("number of games is " + std::to_string(games.size()) + ", expected 1 to " +
                          std::to_string(INT_MAX / MAX_LEGAL_MOVES / leaves));
    std::vector<std::unique_ptr<Game>> copies;  // the caller may change the games meanwhile
    std::vector<const Game*> pointers;
    for (nb::handle game : games) {
        const std::string name = "games[" + std::to_string(copies.size()) + "]";
        copies.push_back(std::make_unique<Game>(to_game(game, name)));
        need_both_kings(name, copies.back()->position());
        pointers.push_back(copies.back().get());
    }
    std::unique_ptr<Forest> forest;
    without_gil([&] {
        forest = std::make_unique<Forest>(pointers, settings, threads, plan);
        copies.clear();
    });
    new (self) SharedForest(std::move(forest));
}

int select_leaves(SharedForest& self, int visits, nb::handle planes, nb::handle offsets, nb::handle actions) {
    const Use forest(self);
    checked("visits", visits, 1);
    const LeafArrays out(*forest.operator->(), planes, offsets, actions);
    self.change([&] { out.select(*forest.operator->(), visits); });
    return forest->rows();
}

void expand_leaves(SharedForest& self, nb::handle priors, nb::handle values) {
    const Use forest(self);
    const LeafAnswers given(*forest.operator->(), priors, values);
    std::optional<Error> error;
    self.change([&] { error = given.expand(*forest.operator->()); });
    if (error) raise_value_error(error->message);
}

nb::tuple tree_result(SharedForest& self, int index, int count) {
    const Use forest(self);
    if (index < 0 || index >= forest->size())
        throw nb::index_error(("index is " + std::to_string(index) + ", expected 0 to " +
                               std::to_string(forest->size() - 1)).c_str());
    const Tree& tree = forest->tree(index);
    nb::list lines;
    for (const TreeLine& line : tree.lines(checked("multipv", count, 1)))
        lines.append(nb::make_tuple(move_object(line.move), line.visits, line.value, line.prior, line.mate,
                                    move_list(line.pv.data(), line.pv.size())));
    return nb::make_tuple(lines, tree.visits(), tree.size());
}

bool advance_tree(SharedForest& self, int index, nb::list moves) {
    const Use forest(self);
    std::vector<Move> played;
    for (nb::handle move : moves) {
        if (!is_move(move)) throw nb::type_error("moves must be Moves");
        played.push_back(*nb::inst_ptr<Move>(move));
    }
    if (index < 0 || index >= forest->size())
        throw nb::index_error(("index is " + std::to_string(index) + ", expected 0 to " +
                               std::to_string(forest->size() - 1)).c_str());
    bool known = false;
    self.change([&] { known = forest->advance(index, played); });
    return known;
}

// Asks Python at most every few milliseconds whether to stop: should_stop, and Ctrl-C in the main thread.
class Patience {
public:
    Patience(std::optional<double> seconds, nb::object should_stop) : should_stop_(std::move(should_stop)) {
        using std::chrono::duration, std::chrono::duration_cast;
        if (seconds) deadline_ = start_ + duration_cast<Clock::duration>(duration<double>(*seconds));
        next_ = start_ + PAUSE;
    }
    bool is_over() {
        const Clock::time_point now = Clock::now();
        if (deadline_ && now >= *deadline_) return true;
        if (now < next_) return false;
        next_ = now + PAUSE;
        return taking_gil([&] {
            const PyGILState_STATE state = PyGILState_Ensure();
            const bool over = asked();
            PyGILState_Release(state);
            return over;
        });
    }
    bool failed() const { return failed_; }  // a Python exception is set

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds PAUSE{10};
    const Clock::time_point start_ = Clock::now();
    std::optional<Clock::time_point> deadline_;
    Clock::time_point next_;
    nb::object should_stop_;
    bool failed_ = false;

    bool asked() {
        failed_ = PyErr_CheckSignals() != 0;
        if (failed_ || should_stop_.is_none()) return failed_;
        PyObject* const said = PyObject_CallNoArgs(should_stop_.ptr());
        const int truth = said ? PyObject_IsTrue(said) : -1;
        Py_XDECREF(said);
        failed_ = truth < 0;
        return truth != 0;
    }
};

nb::tuple search_mate(nb::handle game, int64_t max_nodes, std::optional<double> seconds, nb::object should_stop) {
    constexpr double LONGEST = 1e9;  // seconds, within the clock's range
    if (max_nodes < 1) raise_value_error("max_nodes is " + std::to_string(max_nodes) + ", expected at least 1");
    if (seconds && !(*seconds >= 0 && *seconds <= LONGEST))
        raise_value_error("seconds is " + std::to_string(*seconds) + ", expected 0 to 1000000000, or None");
    const Game copy = to_game(game, "game");
    Patience patience(seconds, std::move(should_stop));
    MateAnswer answer;
    without_gil([&] { answer = find_mate(copy, {max_nodes, [&] { return patience.is_over(); }}); });
    if (patience.failed()) nb::raise_python_error();
    constexpr const char* NAMES[] = {"mate", "nomate", "unknown"};
    return nb::make_tuple(NAMES[answer.kind], move_list(answer.line.data(), answer.line.size()));
}

}  // namespace

void bind_tree(nb::module_& m) {
    nb::class_<SharedForest>(m, "SearchTrees", "One search tree per game; use it through keisei.search.trees.")
        .def("__init__", &init_forest, "games"_a, nb::kw_only(), "c_puct"_a, "fpu"_a, "leaves"_a, "max_nodes"_a,
             "repetition_draws"_a, "threads"_a, "candidates"_a, "planned_visits"_a, "c_visit"_a, "c_scale"_a)
        .def("__len__", [](SharedForest& self) { return Use(self)->size(); })
        .def("_select", &select_leaves, "visits"_a, "planes"_a, "offsets"_a, "actions"_a)
        .def("_expand", &expand_leaves, "priors"_a, "values"_a)
        .def("_result", &tree_result, "index"_a, "multipv"_a)
        .def("_advance", &advance_tree, "index"_a, "moves"_a)
        .def("_answered", [](SharedForest& self) { return Use(self)->answered(); })
        .def("_finished", [](SharedForest& self, int visits) { return Use(self)->finished(visits); }, "visits"_a);
    m.def("find_mate", &search_mate, "game"_a, "max_nodes"_a, "seconds"_a.none(), "should_stop"_a.none() = nb::none());
}

}  // namespace keisei
