#include "encode.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sfen.h"

namespace keisei {
namespace {

// The first plane of each group.
constexpr int OWN_PIECES = 0, ENEMY_PIECES = 14, OWN_HAND = 28, ENEMY_HAND = 35;
constexpr int MOVER_IS_BLACK = 42, GAME_LENGTH = 43, REPETITION = 44, CHECK = 45;

// A board square as the mover's network sees it (row * 9 + column from the mover's far left), and back.
struct Views {
    uint8_t to_network[2][SQUARES];
    Square to_board[2][SQUARES];
};

constexpr Views make_views() {
    Views v{};
    for (int s = 0; s < SQUARES; ++s) {
        const int seen_by_black = rank_of(Square(s)) * 9 + 8 - file_of(Square(s));
        v.to_network[BLACK][s] = uint8_t(seen_by_black);
        v.to_network[WHITE][s] = uint8_t(80 - seen_by_black);
        v.to_board[BLACK][seen_by_black] = Square(s);
        v.to_board[WHITE][80 - seen_by_black] = Square(s);
    }
    return v;
}
constexpr Views views = make_views();

// The offset of a piece's plane, by mover and piece. An empty square writes into the last plane, which is filled later.
constexpr PieceType PLANE_ORDER[14] = {PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK, KING,
                                       PRO_PAWN, PRO_LANCE, PRO_KNIGHT, PRO_SILVER, HORSE, DRAGON};
using PlaneTable = std::array<std::array<uint16_t, 32>, 2>;

constexpr PlaneTable make_plane_starts() {
    PlaneTable table{};
    for (Color mover : {BLACK, WHITE}) {
        table[mover][NO_PIECE] = CHECK * SQUARES;
        for (int i = 0; i < 14; ++i) {
            table[mover][make_piece(mover, PLANE_ORDER[i])] = uint16_t((OWN_PIECES + i) * SQUARES);
            table[mover][make_piece(~mover, PLANE_ORDER[i])] = uint16_t((ENEMY_PIECES + i) * SQUARES);
        }
    }
    return table;
}
constexpr PlaneTable plane_starts = make_plane_starts();

void fill_plane(float* out, int plane, double value) { std::fill_n(out + plane * SQUARES, SQUARES, float(value)); }

void write_hand(const uint8_t* counts, float* out, int first_plane) {
    for (int i = 0; i < HAND_TYPES; ++i)
        if (counts[i]) fill_plane(out, first_plane + i, double(counts[i]) / SET_COUNT[i + PAWN]);
}

constexpr std::array<bool, 256> make_square_bytes() {
    std::array<bool, 256> valid{};
    valid[NO_PIECE] = true;
    for (Color c : {BLACK, WHITE})
        for (PieceType t : PLANE_ORDER) valid[make_piece(c, t)] = true;
    return valid;
}
constexpr std::array<bool, 256> is_square_byte = make_square_bytes();

Color mover_of(const PackedPosition& packed) { return Color(packed.flags & 1); }

// What is wrong with the bytes themselves, before the position can be checked against the rules.
const char* broken_bytes(const PackedPosition& packed) {
    for (uint8_t byte : packed.board)
        if (!is_square_byte[byte]) return "invalid piece on the board";
    for (const auto& hand : packed.hands)
        for (int i = 0; i < HAND_TYPES; ++i)
            if (hand[i] > SET_COUNT[i + PAWN]) return "too many pieces in hand";
    if (packed.ply >= uint32_t(MAX_MOVE_NUMBER)) return "ply out of range";
    if (packed.max_moves == 0 || packed.max_moves >= uint32_t(MAX_MOVE_NUMBER)) return "max_moves out of range";
    if (packed.flags >> 4) return "unknown flags";
    return nullptr;
}

PackedPosition make_packed(const Position& pos, int max_moves, int earlier, bool in_check) {
    PackedPosition packed;
    packed.ply = uint32_t(pos.ply());
    packed.max_moves = uint32_t(max_moves);
    for (Color c : {BLACK, WHITE})
        for (int i = 0; i < HAND_TYPES; ++i) packed.hands[c][i] = uint8_t(pos.hand(c).count(PieceType(i + PAWN)));
    packed.flags = uint8_t(pos.side() | int(in_check) << 1 | earlier << 2);
    std::memcpy(packed.board, pos.board(), sizeof packed.board);
    return packed;
}

}  // namespace

PackedPosition pack(const Game& game) {
    return make_packed(game.position(), game.rules().max_moves, game.earlier_occurrences(), game.in_check());
}

PackedPosition pack(const Position& pos, int max_moves) { return make_packed(pos, max_moves, 0, pos.in_check()); }

Result<Position> unpack(const PackedPosition& packed) {
    if (const char* fault = broken_bytes(packed)) return Error{Error::RULES, fault};
    Position pos;
    for (int s = 0; s < SQUARES; ++s)
        if (packed.board[s] != NO_PIECE) pos.put(Square(s), packed.board[s]);
    for (Color c : {BLACK, WHITE})
        for (int i = 0; i < HAND_TYPES; ++i)
            for (int n = packed.hands[c][i]; n > 0; --n) pos.add_to_hand(c, PieceType(i + PAWN));
    pos.set_side(mover_of(packed));
    pos.set_ply(int(packed.ply));
    if (const auto broken = broken_rule(pos)) return Error{Error::RULES, *broken};
    if (pos.in_check() != bool(packed.flags >> 1 & 1)) return Error{Error::RULES, "check flag does not match the board"};
    pos.refresh();
    return pos;
}

void write_planes(const PackedPosition& packed, float* out) {
    const Color mover = mover_of(packed);
    std::memset(out, 0, OBSERVATION_SIZE * sizeof *out);
    const auto& starts = plane_starts[mover];
    const auto& to_network = views.to_network[mover];
    for (int s = 0; s < SQUARES; ++s) out[starts[packed.board[s]] + to_network[s]] = 1;  // faster than a test for pieces
    write_hand(packed.hands[mover], out, OWN_HAND);
    write_hand(packed.hands[~mover], out, ENEMY_HAND);
    if (mover == BLACK) fill_plane(out, MOVER_IS_BLACK, 1);
    if (packed.ply) fill_plane(out, GAME_LENGTH, double(packed.ply) / packed.max_moves);
    if (const int earlier = packed.flags >> 2 & 3) fill_plane(out, REPETITION, earlier / 3.0);
    fill_plane(out, CHECK, packed.flags >> 1 & 1);
}

int action_of(Move m, Color mover) {
    const int to = views.to_network[mover][m.to()];
    if (m.is_drop()) return BOARD_ACTIONS + to * HAND_TYPES + (m.dropped() - PAWN);
    const int from = views.to_network[mover][m.from()];
    return from * (SQUARES - 1) * 2 + (to - (to > from)) * 2 + m.is_promotion();
}

Move move_of(int action, Color mover) {
    const auto& to_board = views.to_board[mover];
    if (action >= BOARD_ACTIONS) {
        const int drop = action - BOARD_ACTIONS;
        return Move::drop(PieceType(PAWN + drop % HAND_TYPES), to_board[drop / HAND_TYPES]);
    }
    const int from = action / ((SQUARES - 1) * 2), other = action / 2 % (SQUARES - 1);
    return Move::board(to_board[from], to_board[other + (other >= from)], action & 1);
}

void write_actions(const MoveList& list, Color mover, int32_t* out) {
    for (Move m : list) *out++ = action_of(m, mover);
}

void write_mask(const MoveList& list, Color mover, bool* out) {
    std::memset(out, 0, ACTIONS);
    for (Move m : list) out[action_of(m, mover)] = true;
}

}  // namespace keisei
