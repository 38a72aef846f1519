// A game: a position, its history, and the rules that depend on the history or end the game.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "movegen.h"

namespace keisei {

enum class Declaration : uint8_t { OFF, POINTS_27, POINTS_24, TRY };
constexpr Square TRY_SQUARE[2] = {make_square(4, 0), make_square(4, 8)};  // 5a for Black, 5i for White

enum class Reason : uint8_t {
    CHECKMATE, NO_LEGAL_MOVE, REPETITION, PERPETUAL_CHECK, DECLARATION, MAXIMUM_LENGTH, RESIGNATION
};
std::string_view reason_text(Reason r);  // "checkmate", "no legal move", …

struct Outcome {
    std::optional<Color> winner;  // none: a draw
    Reason reason;
};

constexpr int UNLIMITED = MAX_MOVE_NUMBER - 1;

struct Rules {
    int max_moves = 512;  // a draw when this many moves have been played, counted from move number 1
    Declaration declaration = Declaration::POINTS_27;
    Kings kings = Kings::BOTH;  // what the start required; nothing in the game depends on it
};

class Game {
public:
    Game(const Position& start, Rules rules);
    Game(const Game& other);
    Game& operator=(const Game&) = delete;

    // Starts another game under the same rules, reusing this one's memory.
    void restart(const Position& start);

    const Position& position() const { return position_; }
    Position start() const;
    const Rules& rules() const { return rules_; }
    int moves_played() const { return int(plies_.size()) - 1; }  // in this game, not before its start
    Move move(int i) const { return plies_[size_t(i) + 1].move; }
    size_t bytes() const { return sizeof(*this) + plies_.capacity() * sizeof(Ply); }

    bool in_check() const { return plies_.back().in_check; }
    int earlier_occurrences() const { return plies_.back().earlier; }  // of this position: 0 to 3
    // Has this position occurred before, and would a draw come of going round like this?
    bool goes_round() const { return earlier_occurrences() && !repetition_outcome().winner; }
    bool can_declare() const { return check_declaration().fault == DeclarationCheck::NONE && !outcome(); }

    // How the game ended; nothing while it goes on.
    std::optional<Outcome> outcome() const;

    // The legal moves; none once the game is over. Valid until the game changes.
    const MoveList& legal_moves() const;

    // Each is an error, and changes nothing, if the rules do not allow it.
    std::optional<Error> push(Move m);
    std::optional<Error> declare();
    std::optional<Error> resign();

    // Plays a move that is known to be in legal_moves().
    void push_legal(Move m);

    // Takes back the last move, and any declaration or resignation after it. There must be a move.
    void pop();

private:
    // A position of the game and the move that led to it; 16 bytes.
    struct Ply {
        uint64_t key = 0;
        uint32_t check_run = 0;  // consecutive checks by the mover, up to this move
        Move move;               // none at the start
        Piece captured = NO_PIECE;
        uint8_t in_check : 1 = 0;  // the side to move
        uint8_t earlier : 2 = 0;   // occurrences of this position before this one; the fourth ends the game
    };
    static_assert(sizeof(Ply) == 16);

    // Why a declaration is not allowed; for pieces or points, the number present and the number needed.
    struct DeclarationCheck {
        enum Fault : uint8_t { NONE, OFF, TRY, NO_KING, KING_OUTSIDE, IN_CHECK, FEW_PIECES, FEW_POINTS } fault;
        int have = 0, needed = 0;
        std::string text() const;
    };

    const MoveList& position_moves() const;  // by the position alone, ignoring the end of the game
    Outcome repetition_outcome() const;
    DeclarationCheck check_declaration() const;
    Error refusal(const std::string& attempt, const std::string& why) const;

    Position position_;
    Rules rules_;
    std::vector<Ply> plies_;
    std::bitset<2048> seen_;                  // by lower bits of the key: 0 means a new position
    std::optional<Outcome> ended_by_player_;  // declaration or resignation
    mutable MoveList moves_;                  // of this position, if moves_known_
    mutable bool moves_known_ = false;
};

}  // namespace keisei
