// Random numbers that depend only on their key: the same on every machine and for any number of threads.
#pragma once

#include <cstdint>

namespace keisei {

constexpr uint64_t splitmix64(uint64_t& state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// The random stream of one game, identified by (seed, number).
class RandomStream {
public:
    RandomStream(uint64_t seed, uint64_t number) {
        state_ = splitmix64(seed) + number;
        state_ = splitmix64(state_);  // neighbours by number, strangers by state
    }
    uint32_t bits() { return uint32_t(splitmix64(state_) >> 32); }
    // 0 to n - 1, n > 0; biased by less than n in 2^32.
    uint32_t below(uint32_t n) { return uint32_t(uint64_t(bits()) * n >> 32); }

private:
    uint64_t state_;
};

// Numbers for one ply of one game. The first is keisei.core.keyed_random's.
class KeyedRandom {
public:
    KeyedRandom(uint64_t seed, uint64_t number, uint64_t ply) : state_(mixed(seed + GOLDEN)) {
        state_ = mixed(state_ ^ (number * GOLDEN + GOLDEN));
        state_ = mixed(state_ ^ (ply * GOLDEN + GOLDEN));
    }
    // In [0, 1).
    double uniform() {
        const uint64_t bits = first_ ? state_ : splitmix64(state_);
        first_ = false;
        return double(bits >> 11) * 0x1p-53;
    }
    // In (0, 1).
    double uniform_inside() { return (double(splitmix64(state_) >> 12) + 0.5) * 0x1p-52; }

private:
    static constexpr uint64_t GOLDEN = 0x9e3779b97f4a7c15;
    static constexpr uint64_t mixed(uint64_t z) {
        z -= GOLDEN;  // which splitmix64 adds
        return splitmix64(z);
    }
    uint64_t state_;
    bool first_ = true;
};

}  // namespace keisei
