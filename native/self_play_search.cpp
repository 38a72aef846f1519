#include "self_play_search.h"

#include <cmath>

#include "random.h"

namespace keisei {
namespace {

TreeSettings one_leaf(TreeSettings settings) {
    settings.leaves = 1;
    return settings;
}

}  // namespace

SelfPlaySearch::SelfPlaySearch(const SelfPlaySearchSettings& settings, int games, int threads)
    : settings_(settings), forest_(games, one_leaf(settings.tree), threads), slots_(size_t(games)) {}

void SelfPlaySearch::begin(const VectorGames& games) {
    begun_ = true;
    forest_.renew([&](size_t i) {
        const Game& game = games.game(int(i));
        Slot& slot = slots_[i];
        const uint64_t number = games.number(int(i));
        const int ply = game.position().ply();
        KeyedRandom random(games.plan().seed, number, uint64_t(ply));
        slot.chance = random.uniform();
        slot.searched = random.uniform() < settings_.share;
        HalvingPlan plan{0, 1, settings_.c_visit, settings_.c_scale, {}};
        if (slot.searched) {
            plan.candidates = settings_.candidates;
            plan.visits = 1 + settings_.simulations;
            for (int move = 0; move < game.legal_moves().size; ++move)
                plan.noise.push_back(float(-std::log(-std::log(random.uniform_inside()))));
        }
        auto tree = std::make_unique<Tree>(game, forest_.settings(), std::move(plan));
        const bool same = slot.known && slot.number == number && slot.ply == ply;
        if (same && !tree->answered()) tree->answer_root(*slot.known);
        slot.number = number;
        slot.ply = ply;
        slot.known.reset();
        return tree;
    });
}

void SelfPlaySearch::decide(const VectorGames& games, const Decisions& out) {
    begun_ = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
        const Tree& tree = forest_.tree(int(i));
        Slot& slot = slots_[i];
        const Color mover = games.game(int(i)).position().side();
        int16_t* tried = out.tried + i * size_t(settings_.candidates);
        float* gains = out.gains + i * size_t(settings_.candidates);
        std::fill_n(tried, settings_.candidates, int16_t(-1));
        std::fill_n(gains, settings_.candidates, 0.0f);
        Decision found;
        if (slot.searched || tree.won()) {
            found = tree.decision();
            int k = 0;
            for (const Gain& gain : found.gains) {
                if (k == settings_.candidates) break;
                tried[k] = int16_t(action_of(tree.move(gain.move), mover));
                gains[k++] = gain.gain;
            }
        } else {
            found.move = tree.sampled(slot.chance, settings_.temperature);
            found.value = double(tree.own_value());
        }
        out.surprise[i] = float(found.surprise);
        out.actions[i] = action_of(tree.move(found.move), mover);
        out.values[i] = float(found.value);
        out.log_probs[i] = tree.visits() ? float(std::log(std::max(double(tree.prior(found.move)), 1e-30))) : 0.0f;
        slot.known = tree.answer_after(found.move);
        ++slot.ply;
    }
}

}  // namespace keisei
