// make tsan: the network with several threads, to be built and run with ThreadSanitizer. It also compares what one thread
// and four threads compute.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "encode.h"
#include "random.h"
#include "tower.h"

using namespace keisei;

namespace {

constexpr int POSITIONS = 61, MOVES = 7;

void require(bool fact, const char* what) {
    if (fact) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

std::vector<float> numbers(size_t count, uint64_t seed) {
    RandomStream random{seed, 1};
    std::vector<float> made(count);
    for (float& number : made) number = float(random.below(2001)) / 8000 - 0.125f;
    return made;
}

struct Results {
    std::vector<float> logits, values, gradients;
    bool operator==(const Results&) const = default;
};

Results compute(TowerShape shape, int threads) {
    Tower tower(shape, portable_kernels(), threads);
    const std::vector<float> planes = numbers(POSITIONS * OBSERVATION_SIZE, 1), weights = numbers(tower.parameters(), 2);
    std::vector<int32_t> offsets, moves;
    for (int i = 0; i <= POSITIONS; ++i) offsets.push_back(i * MOVES);
    for (int i = 0; i < POSITIONS * MOVES; ++i) moves.push_back(i * 31 % tower.logits());
    const TowerInput input{POSITIONS, planes.data(), offsets.data(), moves.data()};
    Results results{std::vector<float>(moves.size()), std::vector<float>(POSITIONS), std::vector<float>(tower.parameters())};
    std::vector<float> kept(tower.memory_of(POSITIONS));
    const std::vector<float> d_logits = numbers(moves.size(), 3), d_values = numbers(POSITIONS, 4);
    for (int round = 0; round < 3; ++round) {
        tower.load(weights.data(), true);
        tower.evaluate(input, results.logits.data(), results.values.data(), kept.data());
        tower.gradients(input, kept.data(), d_logits.data(), d_values.data(), results.gradients.data());
    }
    return results;
}

}  // namespace

int main() {
    TowerShape plain, other;
    plain.blocks = other.blocks = 2;
    plain.channels = 12;
    other.channels = 8;
    other.excitation = 3;
    other.linear_head = true;
    for (const TowerShape& shape : {plain, other})
        require(compute(shape, 1) == compute(shape, 4), "four threads compute what one does");
    std::puts("the network with threads: as with one");
}
