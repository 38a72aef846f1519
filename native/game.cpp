#include "game.h"

#include <algorithm>

#include "sfen.h"

namespace keisei {
namespace {

// Memory for an ordinary game's moves is reserved at once, so that playing does not allocate; longer games grow.
constexpr int RESERVED_MOVES = 512;

// 27: Black needs 28 points because White moves second. 24: 31 points win (24 to 30 would be a draw by agreement).
int points_to_declare(Declaration d, Color c) {
    if (d == Declaration::POINTS_24) return 31;
    return c == BLACK ? 28 : 27;
}

std::string over(const Outcome& how) { return "the game is over, " + std::string(reason_text(how.reason)); }

}  // namespace

std::string_view reason_text(Reason r) {
    constexpr std::string_view TEXT[] = {"checkmate", "no legal move", "repetition", "perpetual check",
                                         "declaration", "maximum length", "resignation"};
    return TEXT[int(r)];
}

Game::Game(const Position& start, Rules rules) : rules_(rules) { restart(start); }

void Game::restart(const Position& start) {
    position_ = start;
    ended_by_player_.reset();
    moves_known_ = false;
    plies_.clear();
    plies_.reserve(size_t(std::clamp(rules_.max_moves - start.ply(), 0, RESERVED_MOVES)) + 1);
    Ply first;
    first.key = start.key();
    first.in_check = start.in_check();
    plies_.push_back(first);
    seen_.reset();
    seen_.set(first.key % seen_.size());
}

Game::Game(const Game& other)
    : position_(other.position_), rules_(other.rules_), seen_(other.seen_), ended_by_player_(other.ended_by_player_), moves_(other.moves_),
      moves_known_(other.moves_known_) {
    plies_.reserve(other.plies_.capacity());  // a copied vector would have no room for the next move
    plies_ = other.plies_;
}

Position Game::start() const {
    Position pos = position_;
    for (size_t i = plies_.size() - 1; i > 0; --i) pos.undo_move(plies_[i].move, Undo{plies_[i - 1].key, plies_[i].captured});
    return pos;
}

const MoveList& Game::position_moves() const {
    if (!moves_known_) {
        generate_legal(position_, moves_);
        moves_known_ = true;
    }
    return moves_;
}

const MoveList& Game::legal_moves() const {
    static const MoveList none;
    return outcome() ? none : position_moves();
}

std::optional<Outcome> Game::outcome() const {
    if (ended_by_player_) return ended_by_player_;
    const Color to_move = position_.side();
    if (position_moves().size == 0)
        return Outcome{~to_move, in_check() ? Reason::CHECKMATE : Reason::NO_LEGAL_MOVE};
    if (rules_.declaration == Declaration::TRY)
        for (Color c : {~to_move, to_move})
            if (position_.king(c) == TRY_SQUARE[c]) return Outcome{c, Reason::DECLARATION};
    if (earlier_occurrences() == 3) return repetition_outcome();
    if (position_.ply() >= rules_.max_moves) return Outcome{std::nullopt, Reason::MAXIMUM_LENGTH};
    return std::nullopt;
}

Outcome Game::repetition_outcome() const {
    const size_t last = plies_.size() - 1;
    size_t first = last & 1;  // the same side is to move every other ply
    while (plies_[first].key != plies_[last].key) first += 2;
    const size_t moves_each = (last - first) / 2;
    const bool last_mover_checks = plies_[last].check_run >= moves_each;
    const bool side_to_move_checks = plies_[last - 1].check_run >= moves_each;
    if (last_mover_checks == side_to_move_checks) return {std::nullopt, Reason::REPETITION};
    const Color to_move = position_.side();
    return {last_mover_checks ? to_move : ~to_move, Reason::PERPETUAL_CHECK};
}

Game::DeclarationCheck Game::check_declaration() const {
    using Check = DeclarationCheck;
    if (rules_.declaration == Declaration::OFF) return {Check::OFF};
    if (rules_.declaration == Declaration::TRY) return {Check::TRY};
    const Color us = position_.side();
    const Bitboard zone = PROMOTION_ZONE[us];
    if (position_.king(us) == NO_SQUARE) return {Check::NO_KING};
    if (!zone.test(position_.king(us))) return {Check::KING_OUTSIDE};
    if (in_check()) return {Check::IN_CHECK};
    const Bitboard there = zone & position_.pieces(us);
    const int pieces = there.count() - 1;  // without the king
    if (pieces < 10) return {Check::FEW_PIECES, pieces, 10};
    int big = 0;
    for (PieceType t : {BISHOP, ROOK, HORSE, DRAGON}) big += (there & position_.pieces(us, t)).count();
    const Hand hand = position_.hand(us);
    int points = pieces + 4 * (big + hand.count(BISHOP) + hand.count(ROOK));
    for (int t = PAWN; t <= ROOK; ++t) points += hand.count(PieceType(t));
    const int needed = points_to_declare(rules_.declaration, us);
    if (points < needed) return {Check::FEW_POINTS, points, needed};
    return {Check::NONE};
}

std::string Game::DeclarationCheck::text() const {
    const std::string numbers = std::to_string(have) + ", expected " + std::to_string(needed);
    switch (fault) {
        case NONE: break;
        case OFF: return "declaration is off";
        case TRY: return "the try rule needs no declaration";
        case NO_KING: return "there is no king to enter with";
        case KING_OUTSIDE: return "the king is outside the promotion zone";
        case IN_CHECK: return "the king is in check";
        case FEW_PIECES: return "pieces in the promotion zone: " + numbers;
        case FEW_POINTS: return "points: " + numbers;
    }
    return "";
}

Error Game::refusal(const std::string& attempt, const std::string& why) const {
    return {Error::RULES, attempt + " in position " + to_sfen(position_) + (why.empty() ? "" : ": " + why)};
}

std::optional<Error> Game::push(Move m) {
    if (const auto end = outcome()) return refusal("illegal move " + to_usi(m), over(*end));
    if (!position_moves().contains(m)) return refusal("illegal move " + to_usi(m), "");
    push_legal(m);
    return std::nullopt;
}

void Game::push_legal(Move m) {
    Undo undo;
    position_.do_move(m, undo);
    moves_known_ = false;

    Ply ply;
    ply.key = position_.key();
    ply.move = m;
    ply.captured = undo.captured;
    ply.in_check = position_.in_check();
    const size_t now = plies_.size();
    if (ply.in_check) ply.check_run = (now >= 2 ? plies_[now - 2].check_run : 0) + 1;
    if (seen_[ply.key % seen_.size()])
        for (size_t back = 4; back <= now; back += 2)
            if (plies_[now - back].key == ply.key) {
                ply.earlier = uint8_t(plies_[now - back].earlier + 1);
                break;
            }
    seen_.set(ply.key % seen_.size());
    plies_.push_back(ply);
}

void Game::pop() {
    const Ply last = plies_.back();
    plies_.pop_back();
    position_.undo_move(last.move, Undo{plies_.back().key, last.captured});
    ended_by_player_.reset();
    moves_known_ = false;
}

std::optional<Error> Game::declare() {
    if (const auto end = outcome()) return refusal("cannot declare", over(*end));
    const DeclarationCheck check = check_declaration();
    if (check.fault != DeclarationCheck::NONE) return refusal("cannot declare", check.text());
    ended_by_player_ = Outcome{position_.side(), Reason::DECLARATION};
    return std::nullopt;
}

std::optional<Error> Game::resign() {
    if (const auto end = outcome()) return refusal("cannot resign", over(*end));
    ended_by_player_ = Outcome{~position_.side(), Reason::RESIGNATION};
    return std::nullopt;
}

}  // namespace keisei
