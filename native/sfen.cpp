#include "sfen.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace keisei {
namespace {

constexpr std::string_view LETTERS = ".PLNSGBRK";  // by piece type
constexpr PieceType HAND_ORDER[] = {ROOK, BISHOP, GOLD, SILVER, KNIGHT, LANCE, PAWN};

PieceType type_of_letter(char upper) {
    const size_t i = LETTERS.find(upper);
    return i == std::string_view::npos || i == 0 ? NO_PIECE_TYPE : PieceType(i);
}

// What is wrong with the number of a side's kings.
std::optional<std::string> king_fault(const Position& pos, Color c, bool needed) {
    const int kings = pos.pieces(c, KING).count();
    if (kings == 1 || (kings == 0 && !needed)) return std::nullopt;
    return (c == BLACK ? "black has " : "white has ") + std::to_string(kings) + " kings, expected " +
           (needed ? "one" : "one or none");
}

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char to_upper(char c) { return is_lower(c) ? char(c - 'a' + 'A') : c; }

// Text is UTF-8: a letter is one byte, or a first byte and its continuation bytes.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Reads one SFEN from left to right; every method returns false once an error is set.
class Reader {
public:
    Reader(std::string_view text, Kings kings) : text_(text), kings_(kings) {}

    Result<Position> read() {
        if (!split() || !board() || !side() || !hands() || !move_number() || !rules()) return std::move(*error_);
        pos_.refresh();
        return pos_;
    }

private:
    bool fail(Error::Kind kind, std::string what) {
        error_ = Error{kind, "bad sfen '" + shown(text_) + "': " + std::move(what)};
        return false;
    }
    bool syntax(std::string what) { return fail(Error::SYNTAX, std::move(what)); }
    bool syntax_at(const char* where, std::string what) {
        const auto letters = std::count_if(text_.data(), where, [](char c) { return !continues(c); });
        return syntax(std::move(what) + " at character " + std::to_string(letters + 1));
    }
    std::string letter_at(const char* where) const {
        const char* end = where + 1;
        while (end < text_.data() + text_.size() && continues(*end)) ++end;
        return shown({where, end});
    }

    bool split() {
        for (size_t i = 0; i < text_.size();) {
            const size_t start = text_.find_first_not_of(' ', i);
            if (start == std::string_view::npos) break;
            i = std::min(text_.find(' ', start), text_.size());
            fields_.push_back(text_.substr(start, i - start));
            if (fields_.size() > 4) break;
        }
        if (fields_.size() != 3 && fields_.size() != 4)
            return syntax("expected board, side, hands and move number, got " +
                          (fields_.size() > 4 ? std::string("more than four") : std::to_string(fields_.size())) +
                          (fields_.size() == 1 ? " field" : " fields"));
        return true;
    }

    bool board() {
        int rank = 0, file = 8;  // the text starts at 9a
        bool promote = false;
        for (const char& c : fields_[0]) {
            if (promote && !can_promote(type_of_letter(to_upper(c)))) return syntax_at(&c, "'+' without a promotable piece");
            if (c == '/') {
                if (file != -1) return rank_width(rank, 8 - file);
                if (++rank == 9) return syntax_at(&c, "more than nine ranks");
                file = 8;
            } else if (c == '+') {
                promote = true;
            } else if (c >= '1' && c <= '9') {
                file -= c - '0';
                if (file < -1) return rank_width(rank, 8 - file);
            } else {
                const PieceType t = type_of_letter(to_upper(c));
                if (t == NO_PIECE_TYPE) return syntax_at(&c, "unknown piece '" + letter_at(&c) + "'");
                if (file < 0) return rank_width(rank, 10);
                pos_.put(make_square(file--, rank),
                         make_piece(is_lower(c) ? WHITE : BLACK, promote ? promoted(t) : t));
                promote = false;
            }
        }
        if (promote) return syntax("'+' without a promotable piece at the end of the board");
        if (file != -1) return rank_width(rank, 8 - file);
        if (rank != 8) return syntax("expected nine ranks, got " + std::to_string(rank + 1));
        return true;
    }
    bool rank_width(int rank, int squares) {
        return syntax("rank " + std::to_string(rank + 1) + " has " + (squares > 9 ? "more than nine" : std::to_string(squares)) +
                      " squares, expected nine");
    }

    bool side() {
        if (fields_[1] == "w") pos_.set_side(WHITE);
        else if (fields_[1] != "b") return syntax("side to move is '" + shown(fields_[1]) + "', expected b or w");
        return true;
    }

    bool hands() {
        if (fields_[2] == "-") return true;
        int count = 0;  // 0: no number before this letter
        bool seen[2][8] = {};
        for (const char& c : fields_[2]) {
            if (is_digit(c)) {
                count = count * 10 + (c - '0');
                if (count == 0 || count > 18) return syntax_at(&c, "number in hand not in 1 to 18");
                continue;
            }
            const PieceType t = type_of_letter(to_upper(c));
            if (t == NO_PIECE_TYPE || t == KING) return syntax_at(&c, "unknown piece in hand '" + letter_at(&c) + "'");
            bool& again = seen[is_lower(c)][t];
            if (again) return syntax_at(&c, std::string("piece in hand '") + c + "' given twice");
            again = true;
            if (count == 0) count = 1;
            while (count) pos_.add_to_hand(is_lower(c) ? WHITE : BLACK, t), --count;
        }
        if (count && is_digit(fields_[2].back())) return syntax("number without a piece at the end of the hands");
        return true;
    }

    bool move_number() {
        if (fields_.size() == 3) return true;
        const std::string_view f = fields_[3];
        int number = 0;
        const auto [end, fault] = std::from_chars(f.data(), f.data() + f.size(), number);
        if (fault != std::errc{} || end != f.data() + f.size() || number < 1 || number > MAX_MOVE_NUMBER)
            return syntax("move number is '" + shown(f) + "', expected 1 to " + std::to_string(MAX_MOVE_NUMBER));
        pos_.set_ply(number - 1);
        return true;
    }

    bool rules() {
        if (const auto broken = broken_rule(pos_, kings_)) return fail(Error::RULES, *broken);
        return true;
    }

    std::string_view text_;
    const Kings kings_;
    std::vector<std::string_view> fields_;
    Position pos_;
    std::optional<Error> error_;
};

// Returns a square, or 255.
Square square_at(char file, char rank) {
    if (file < '1' || file > '9' || rank < 'a' || rank > 'i') return 255;
    return make_square(file - '1', rank - 'a');
}

}  // namespace

std::string shown(std::string_view text) {
    size_t limit = std::min<size_t>(text.size(), 200);
    while (limit < text.size() && limit > 0 && continues(text[limit])) --limit;
    std::string out;
    for (char c : text.substr(0, limit)) out += (static_cast<unsigned char>(c) < 32 || c == 127) ? '?' : c;
    return limit < text.size() ? out + "…" : out;
}

std::optional<std::string> missing_king(const Position& pos) {
    for (Color c : {BLACK, WHITE})
        if (auto fault = king_fault(pos, c, true)) return fault;
    return std::nullopt;
}

std::optional<std::string> broken_rule(const Position& pos, Kings kings) {
    for (Color c : {BLACK, WHITE})
        if (auto fault = king_fault(pos, c, kings == Kings::BOTH || c != pos.side())) return fault;
    for (int i = PAWN; i <= ROOK; ++i) {
        const PieceType t = PieceType(i);
        int count = 0;
        for (Color c : {BLACK, WHITE}) {
            count += pos.hand(c).count(t) + pos.pieces(c, t).count();
            if (can_promote(t)) count += pos.pieces(c, promoted(t)).count();
        }
        if (count > SET_COUNT[t]) return "more than " + std::to_string(SET_COUNT[t]) + " of piece " + piece_letter(t);
    }
    for (Color c : {BLACK, WHITE}) {
        const Bitboard pawns = pos.pieces(c, PAWN);
        if (files_without(pawns).count() + 9 * pawns.count() != SQUARES)
            for (int file = 0; file < 9; ++file)
                if ((pawns & Bitboard(FILE_1 << (file * 9))).more_than_one())
                    return "two pawns of one side on file " + std::to_string(file + 1);
        for (PieceType t : {PAWN, LANCE, KNIGHT})
            if (const Bitboard stuck = pos.pieces(c, t) & dead_ranks(c, t))
                return "a piece that can never move on " + square_name(stuck.first());
    }
    if (pos.attacked(pos.king(~pos.side()), pos.side(), pos.occupied())) return "the side to move can take the king";
    return std::nullopt;
}

Result<Position> parse_sfen(std::string_view text, Kings kings) { return Reader(text, kings).read(); }

std::string to_sfen(const Position& pos) {
    std::string out;
    out.reserve(96);
    for (int rank = 0; rank < 9; ++rank) {
        if (rank) out += '/';
        int empty = 0;
        for (int file = 8; file >= 0; --file) {
            const Piece p = pos.piece_on(make_square(file, rank));
            if (p == NO_PIECE) {
                ++empty;
                continue;
            }
            if (empty) out += char('0' + std::exchange(empty, 0));
            out += piece_name(p);
        }
        if (empty) out += char('0' + empty);
    }
    out += pos.side() == BLACK ? " b " : " w ";
    if (pos.hand(BLACK).empty() && pos.hand(WHITE).empty()) out += '-';
    for (Color c : {BLACK, WHITE})
        for (PieceType t : HAND_ORDER) {
            const int n = pos.hand(c).count(t);
            if (n > 1) out += std::to_string(n);
            if (n > 0) out += piece_name(make_piece(c, t));
        }
    return out + ' ' + std::to_string(pos.ply() + 1);
}

Result<Move> parse_usi(std::string_view text) {
    const auto fail = [&] {
        return Error{Error::SYNTAX, "bad usi move '" + shown(text) + "': expected a move like 7g7f, 8h2b+ or P*5e"};
    };
    if (text.size() != 4 && text.size() != 5) return fail();
    const Square to = square_at(text[2], text[3]);
    if (to == 255) return fail();
    if (text[1] == '*') {
        const PieceType t = type_of_letter(text[0]);
        if (t == NO_PIECE_TYPE || t == KING || text.size() != 4) return fail();
        return Move::drop(t, to);
    }
    const Square from = square_at(text[0], text[1]);
    if (from == 255 || from == to || (text.size() == 5 && text[4] != '+')) return fail();
    return Move::board(from, to, text.size() == 5);
}

std::string to_usi(Move m) {
    if (m.is_drop()) return std::string{piece_letter(m.dropped()), '*'} + square_name(m.to());
    return square_name(m.from()) + square_name(m.to()) + (m.is_promotion() ? "+" : "");
}

Result<Square> parse_square(std::string_view text) {
    const Square s = text.size() == 2 ? square_at(text[0], text[1]) : 255;
    if (s == 255) return Error{Error::SYNTAX, "bad square '" + shown(text) + "': expected a square like 7g"};
    return s;
}

std::string square_name(Square s) { return {char('1' + file_of(s)), char('a' + rank_of(s))}; }

std::string piece_name(Piece p) {
    if (p == NO_PIECE) return "";
    const char letter = piece_letter(unpromoted(type_of(p)));
    const char sided = color_of(p) == BLACK ? letter : char(letter - 'A' + 'a');
    return is_promoted(type_of(p)) ? std::string{'+', sided} : std::string{sided};
}

char piece_letter(PieceType t) { return LETTERS[t]; }

}  // namespace keisei
