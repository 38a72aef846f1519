// Self-play that searches, for Python. Works on the caller's arrays, without the GIL.
#include <memory>

#include "bindings_forest.h"
#include "bindings_games.h"
#include "self_play_search.h"

namespace keisei {
namespace {

class SharedSearch : public Shared<SelfPlaySearch> {
public:
    explicit SharedSearch(std::unique_ptr<SelfPlaySearch> search) : Shared(std::move(search), "this search is") {}
};
using Use = SharedSearch::Use;
using UseGames = SharedGames::Use;

void init_search(SharedSearch* self, int games, double share, double temperature, int simulations, int candidates, double c_visit, double c_scale,
                 double c_puct, double fpu, double length_reward, int threads) {
    SelfPlaySearchSettings settings;
    if (!(share >= 0 && share <= 1)) raise_value_error("share is " + std::to_string(share) + ", expected 0 to 1");
    settings.share = share;
    if (!(temperature > 0 && temperature <= 1e6))
        raise_value_error("temperature is " + std::to_string(temperature) + ", expected more than 0, at most 1000000");
    settings.temperature = temperature;
    settings.simulations = checked("simulations", simulations, 1, MAX_TREE_NODES - 1);
    settings.candidates = checked("candidates", candidates, 1, MAX_LEGAL_MOVES);
    settings.c_visit = checked_weight("c_visit", c_visit);
    settings.c_scale = checked_weight("c_scale", c_scale);
    settings.tree.c_puct = checked_weight("c_puct", c_puct);
    settings.tree.fpu = checked_weight("fpu", fpu);
    settings.tree.max_nodes = MAX_TREE_NODES;
    if (!(length_reward >= 0 && length_reward <= 1))
        raise_value_error("length_reward is " + std::to_string(length_reward) + ", expected 0 to 1");
    settings.tree.length_reward = length_reward;
    checked("games", games, 1, MAX_SLOTS);
    checked("threads", threads, 1);
    std::unique_ptr<SelfPlaySearch> search;
    without_gil([&] { search = std::make_unique<SelfPlaySearch>(settings, games, threads); });
    new (self) SharedSearch(std::move(search));
}

void check_games(const Use& search, const UseGames& games) {
    if (games->slots() != search->games())
        raise_value_error("games: " + std::to_string(games->slots()) + " games, expected " + std::to_string(search->games()));
}

void begin(SharedSearch& self, SharedGames& games) {
    const Use search(self);
    const UseGames played(games);
    check_games(search, played);
    self.change([&] { search->begin(*played.operator->()); });
}

int select(SharedSearch& self, nb::handle planes, nb::handle offsets, nb::handle actions) {
    const Use search(self);
    if (!search->has_begun()) raise_value_error("no moves are being decided, expected begin() first");
    const LeafArrays out(search->forest(), planes, offsets, actions);
    self.change([&] {  // until a leaf needs an evaluation: some simulations end at the end of a game
        do out.select(search->forest(), INT32_MAX);
        while (!search->forest().rows() && !search->finished());
    });
    return search->forest().rows();
}

void expand(SharedSearch& self, nb::handle priors, nb::handle values) {
    const Use search(self);
    if (!search->has_begun()) raise_value_error("no moves are being decided, expected begin() first");
    const LeafAnswers given(search->forest(), priors, values);
    std::optional<Error> error;
    self.change([&] { error = given.expand(search->forest()); });
    if (error) raise_value_error(error->message);
}

void decide(SharedSearch& self, SharedGames& games, nb::handle actions, nb::handle log_probs, nb::handle values,
            nb::handle surprise, nb::handle tried, nb::handle gains) {
    const Use search(self);
    const UseGames played(games);
    check_games(search, played);
    if (!search->has_begun() || !search->finished()) raise_value_error("the search is not finished");
    const Py_ssize_t n = search->games(), m = search->settings().candidates;
    const Array<int32_t> actions_out(actions, "actions", {n}, true);
    const Array<float> log_probs_out(log_probs, "log_probs", {n}, true), values_out(values, "values", {n}, true);
    const Array<float> surprise_out(surprise, "surprise", {n}, true);
    const Array<int16_t> tried_out(tried, "tried", {n, m}, true);
    const Array<float> gains_out(gains, "gains", {n, m}, true);
    self.change([&] {
        search->decide(*played.operator->(), {actions_out.data(), log_probs_out.data(), values_out.data(), surprise_out.data(),
                                              tried_out.data(), gains_out.data()});
    });
}

}  // namespace

void bind_self_play(nb::module_& m) {
    nb::class_<SharedSearch>(m, "SelfPlaySearch", "Searches in many games; use it through keisei.search.self_play_search.")
        .def("__init__", &init_search, "games"_a, nb::kw_only(), "share"_a, "temperature"_a, "simulations"_a, "candidates"_a, "c_visit"_a,
             "c_scale"_a, "c_puct"_a, "fpu"_a, "length_reward"_a, "threads"_a)
        .def("_begin", &begin, "games"_a)
        .def("_select", &select, "planes"_a, "offsets"_a, "actions"_a)
        .def("_expand", &expand, "priors"_a, "values"_a)
        .def("_decide", &decide, "games"_a, "actions"_a, "log_probs"_a, "values"_a, "surprise"_a,
             "tried"_a, "gains"_a)
        .def("__len__", [](SharedSearch& self) { return Use(self)->games(); });
}

}  // namespace keisei
