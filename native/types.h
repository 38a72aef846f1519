// The vocabulary of the rules: colours, pieces, squares, moves, hands, and a result type for errors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace keisei {

enum Color : uint8_t { BLACK, WHITE };  // 先手, 後手
constexpr Color operator~(Color c) { return Color(c ^ 1); }

// Promotion sets bit 3. Slot 13, the promoted gold that does not exist, holds every piece that moves like a gold.
enum PieceType : uint8_t {
    NO_PIECE_TYPE,
    PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK,   // 歩香桂銀金角飛
    KING,                                              // 玉
    PRO_PAWN, PRO_LANCE, PRO_KNIGHT, PRO_SILVER,       // と杏圭全
    GOLD_LIKE,
    HORSE, DRAGON,                                     // 馬龍
    PIECE_TYPE_SLOTS
};
constexpr uint8_t PROMOTED = 8;
constexpr PieceType promoted(PieceType t) { return PieceType(t | PROMOTED); }
constexpr PieceType unpromoted(PieceType t) { return t == KING ? KING : PieceType(t & 7); }
constexpr bool is_promoted(PieceType t) { return t > KING; }
constexpr bool can_promote(PieceType t) { return t >= PAWN && t < KING && t != GOLD; }
constexpr bool moves_like_gold(PieceType t) { return t == GOLD || (t >= PRO_PAWN && t <= PRO_SILVER); }

// The number of each kind in a full set, P L N S G B R K.
constexpr int SET_COUNT[9] = {0, 18, 4, 4, 4, 4, 2, 2, 2};

using Piece = uint8_t;  // PieceType | Color << 4; 0 is an empty square
constexpr Piece NO_PIECE = 0;
constexpr Piece make_piece(Color c, PieceType t) { return Piece(c << 4 | t); }
constexpr Color color_of(Piece p) { return Color(p >> 4); }
constexpr PieceType type_of(Piece p) { return PieceType(p & 15); }

// Squares run down the files, from Black's right: 1a = 0, 1b = 1, …, 2a = 9, …, 9i = 80.
using Square = uint8_t;
constexpr int SQUARES = 81;
constexpr Square NO_SQUARE = 81;  // the king square of a side without a king: off the board, attacked by nothing
constexpr Square make_square(int file, int rank) { return Square(file * 9 + rank); }  // both from 0
constexpr int file_of(Square s) { return s / 9; }
constexpr int rank_of(Square s) { return s % 9; }

// Pieces in hand, one byte for each type, P at byte 1 to R at byte 7.
struct Hand {
    uint64_t counts = 0;
    int count(PieceType t) const { return int(counts >> (8 * t) & 0xff); }
    void add(PieceType t) { counts += uint64_t(1) << (8 * t); }
    void remove(PieceType t) { counts -= uint64_t(1) << (8 * t); }
    bool empty() const { return counts == 0; }
};

// 16 bits: to (0–6), from or the dropped piece type (7–13), promotion (14), drop (15).
class Move {
public:
    constexpr Move() = default;
    constexpr explicit Move(uint16_t code) : code_(code) {}
    static constexpr Move board(Square from, Square to, bool promote) {
        return Move(uint16_t(to | from << 7 | int(promote) << 14));
    }
    static constexpr Move drop(PieceType t, Square to) { return Move(uint16_t(to | t << 7 | 1 << 15)); }

    constexpr Square to() const { return code_ & 127; }
    constexpr Square from() const { return code_ >> 7 & 127; }
    constexpr PieceType dropped() const { return PieceType(code_ >> 7 & 127); }
    constexpr bool is_promotion() const { return code_ >> 14 & 1; }
    constexpr bool is_drop() const { return code_ >> 15; }
    constexpr uint16_t code() const { return code_; }
    constexpr bool operator==(const Move&) const = default;

private:
    uint16_t code_ = 0;
};

// The highest move number, so that every position of every game has an SFEN that can be read back.
constexpr int MAX_MOVE_NUMBER = 1'000'000;

// No position has more legal moves than this (593 is the known maximum), not even without the mover's king: a board
// that is empty except for the enemy king on the last rank allows 527 drops; with one piece of each kind kept in hand
// for them, a rook on the board adds at most 28, a bishop 17, each of three silvers 4, each of three lances 3.
constexpr int MAX_LEGAL_MOVES = 600;

// A text that cannot be parsed (SYNTAX), or one that can but breaks the rules (RULES).
struct Error {
    enum Kind : uint8_t { SYNTAX, RULES } kind;
    std::string message;
};

// A value or an error; check ok() before taking the value.
template <class T>
class Result {
public:
    Result(T value) : state_(std::move(value)) {}
    Result(Error error) : state_(std::move(error)) {}
    bool ok() const { return state_.index() == 0; }
    T& value() { return std::get<0>(state_); }
    const Error& error() const { return std::get<1>(state_); }

private:
    std::variant<T, Error> state_;
};

}  // namespace keisei
