// The material search for Python. Works on copies of the games, without the GIL.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "alpha_beta.h"
#include "bindings.h"
#include "threads.h"

namespace keisei {
namespace {

// Copies that no other Python thread can change meanwhile.
std::vector<Game> copy_games(nb::sequence games, const std::vector<uint64_t>& seeds) {
    std::vector<Game> copies;
    copies.reserve(seeds.size());
    for (nb::handle item : games) {
        if (!nb::isinstance<Game>(item) || !nb::inst_ready(item)) throw nb::type_error("games must be ShogiGames");
        const Game& game = *nb::inst_ptr<Game>(item);
        if (const auto end = game.outcome())
            raise_value_error("game " + std::to_string(copies.size()) + " is over, " +
                              std::string(reason_text(end->reason)) + ", expected unfinished games: " +
                              to_sfen(game.position()));
        need_both_kings("game " + std::to_string(copies.size()), game.position());
        copies.push_back(game);
    }
    if (copies.size() != seeds.size())
        raise_value_error("games: " + std::to_string(copies.size()) + ", seeds: " + std::to_string(seeds.size()) +
                          ", expected one seed for each game");
    return copies;
}

// Decrements a counter when it goes out of scope, also by an exception.
class Countdown {
public:
    explicit Countdown(std::atomic<int>& left) : left_(left) {}
    ~Countdown() { --left_; }
    Countdown(const Countdown&) = delete;

private:
    std::atomic<int>& left_;
};

nb::list search_games(nb::sequence games, int depth, const std::vector<uint64_t>& seeds, int threads, int quiet_plies) {
    const SearchLimits limits{checked("depth", depth, 1, MAX_SEARCH_DEPTH),
                              checked("quiet_plies", quiet_plies, 0, MAX_QUIET_PLIES)};
    checked("threads", threads, 1);
    const std::vector<Game> copies = copy_games(games, seeds);
    const int count = int(copies.size());
    std::vector<Choice> choices(copies.size());
    CtrlC stop;
    without_gil([&] {
        ThreadTeam team(std::clamp(count, 1, threads));
        std::atomic<int> next{0};  // games differ in cost by a factor of 100, so each thread takes the next one
        std::atomic<int> left{count};
        team.run(team.size(), [&](int, int) {
            for (int i; (i = next++) < count && !stop();) {
                const Countdown game(left);
                choices[size_t(i)] = alpha_beta(copies[size_t(i)], limits, seeds[size_t(i)], std::ref(stop));
            }
            // Only the main thread sees Ctrl-C: it keeps checking until the other threads are done.
            while (left > 0 && !stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
    });
    stop.rethrow();
    nb::list found;
    for (const Choice& choice : choices) found.append(nb::make_tuple(move_object(choice.move), choice.score));
    return found;
}

nb::list material_moves(nb::sequence games, const std::vector<uint64_t>& seeds) {
    const std::vector<Game> copies = copy_games(games, seeds);
    std::vector<Move> moves(copies.size());
    without_gil([&] {
        for (size_t i = 0; i < copies.size(); ++i) moves[i] = material_move(copies[i], seeds[i]);
    });
    return move_list(moves.data(), moves.size());
}

}  // namespace

void bind_search(nb::module_& m) {
    m.def("alpha_beta", &search_games, "games"_a, "depth"_a, "seeds"_a, "threads"_a = 1, nb::kw_only(), "quiet_plies"_a = SearchLimits{}.quiet_plies,
          "Return for each game one of the best moves of a material search to this depth, and its score in pawns.");
    m.def("material_moves", &material_moves, "games"_a, "seeds"_a,
          "Return for each game a move that wins at once, or else the one that wins most material, ignoring replies.");
}

}  // namespace keisei
