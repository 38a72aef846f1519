// make tsan: the vector of games with several threads, to be built and run with ThreadSanitizer. It also compares what
// one thread and four threads make of the same moves.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "random.h"
#include "sfen.h"
#include "vec_env.h"

using namespace keisei;

namespace {

constexpr int SLOTS = 48, STEPS = 600;

void require(bool fact, const char* what) {
    if (fact) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

GamePlan plan() {
    GamePlan plan;
    plan.slots = SLOTS;
    plan.stride = SLOTS;
    plan.seed = 5;
    plan.rules.max_moves = 80;
    plan.random_plies = 6;
    for (const char* sfen : {"lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1",
                             "4k4/9/9/9/9/9/9/9/4K4 b 2R2B4G4S4N4L18P 1", "4k4/9/9/4+R4/9/9/9/9/4K4 w - 1"})
        plan.starts.push_back(parse_sfen(sfen).value());
    return plan;
}

// Arrays and players of one vector.
struct Player {
    std::unique_ptr<VectorGames> games;
    std::vector<uint8_t> packed = std::vector<uint8_t>(SLOTS * sizeof(PackedPosition));
    std::vector<float> planes = std::vector<float>(SLOTS * OBSERVATION_SIZE), rewards = std::vector<float>(SLOTS);
    std::vector<int32_t> offsets = std::vector<int32_t>(SLOTS + 1), actions = std::vector<int32_t>(SLOTS * MAX_LEGAL_MOVES);
    std::unique_ptr<bool[]> mask = std::make_unique<bool[]>(SLOTS * ACTIONS), ended = std::make_unique<bool[]>(SLOTS);
    RandomStream random{1, 1};
    size_t finished = 0;

    explicit Player(std::unique_ptr<VectorGames> g) : games(std::move(g)) { games->observe(see()); }
    Observations see() { return {packed.data(), planes.data(), offsets.data(), actions.data(), mask.get()}; }
    void step() {
        int32_t chosen[SLOTS];
        for (int i = 0; i < SLOTS; ++i)
            chosen[i] = actions[size_t(offsets[i]) + random.below(uint32_t(offsets[i + 1] - offsets[i]))];
        require(!games->step(chosen, {rewards.data(), ended.get()}, see()), "a legal action is accepted");
        finished += games->finished().size();
    }
};

void play_games() {
    Player one(std::make_unique<VectorGames>(plan(), 1)), four(std::make_unique<VectorGames>(plan(), 4));
    for (int step = 0; step < STEPS; ++step) {
        one.step();
        four.step();
        require(one.planes == four.planes && one.packed == four.packed && one.actions == four.actions &&
                    one.offsets == four.offsets && one.rewards == four.rewards &&
                    std::equal(one.mask.get(), one.mask.get() + SLOTS * ACTIONS, four.mask.get()) &&
                    std::equal(one.ended.get(), one.ended.get() + SLOTS, four.ended.get()),
                "four threads see what one sees");
        if (step % 100 == 50) four.games = std::move(VectorGames::restore(four.games->save(), 3).value());
    }
    require(one.games->save() == four.games->save(), "four threads play what one plays");
    std::printf("%d steps of %d games, %zu ended\n", STEPS, SLOTS, one.finished);
}

void share_work() {
    for (int round = 0; round < 200; ++round) {
        ThreadTeam team(1 + round % 5);
        std::vector<int> done(size_t(round), 0);
        for (int again = 0; again < 5; ++again) team.run(round, [&](int first, int end) {
            for (int i = first; i < end; ++i) ++done[size_t(i)];
        });
        require(std::accumulate(done.begin(), done.end(), 0) == 5 * round, "every job is done once");
        bool caught = false;
        try {
            team.run(round, [&](int first, int end) { if (first <= round / 2 && round / 2 < end) throw round; });
        } catch (int thrown) {
            caught = thrown == round;
        }
        require(caught || round == 0, "an exception comes out of the team");
        team.run(round, [](int, int) {});  // and it comes out once
    }
    std::puts("200 teams shared their work");
}

}  // namespace

int main() {
    play_games();
    share_work();
}
