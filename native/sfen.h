// Reading and writing SFEN positions and USI moves.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "position.h"

namespace keisei {

inline constexpr std::string_view START_SFEN = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1";

// Board, side, hands and (optional, 1 if missing) move number. A position that breaks a rule is an error.
Result<Position> parse_sfen(std::string_view text, Kings kings = Kings::BOTH);
std::string to_sfen(const Position& pos);

// Which rule a position that was set up breaks; nothing if a game could continue from it. The generator relies on the
// limits checked here: one king per side and no more pieces than a full set.
std::optional<std::string> broken_rule(const Position& pos, Kings kings = Kings::BOTH);

// Which side does not have exactly one king, for callers that need both.
std::optional<std::string> missing_king(const Position& pos);

// 7g7f, 8h2b+, P*5e. Checks only the syntax, not whether the move is legal.
Result<Move> parse_usi(std::string_view text);
std::string to_usi(Move m);

// Text fit for a one-line error message: control characters as '?', length limited. UTF-8.
std::string shown(std::string_view text);

Result<Square> parse_square(std::string_view text);
std::string square_name(Square s);        // "7g"
std::string piece_name(Piece p);          // "P" and "+R" for Black, "p" and "+r" for White; "" for none
char piece_letter(PieceType unpromoted);  // 'P', 'L', …

}  // namespace keisei
