// The vector of games as Python has it.
#pragma once

#include "bindings.h"
#include "vec_env.h"

namespace keisei {

class SharedGames : public Shared<VectorGames> {
public:
    explicit SharedGames(std::unique_ptr<VectorGames> games) : Shared(std::move(games), "these games are") {}

    // These never change.
    int slots() const { return object_->slots(); }
    int threads() const { return object_->threads(); }
    const Rules& rules() const { return object_->plan().rules; }
};

}  // namespace keisei
