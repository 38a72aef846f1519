"""The texts themselves, English and Japanese side by side; in braces what is filled in.

Plain data, so that other doors than the terminal can use it. A test checks that both texts of a key have the
same braces.
"""

from keisei.shogi.why_illegal import FAULTS

# Why a move is illegal; the English is the rules' own.
_FAULTS = {
    "over": "対局は終わっています: {outcome}",
    "still in check": "王手がかかったままです",
    "into check": "玉を取られてしまいます（自玉に王手がかかる手です）",
    "mate by a pawn": "打ち歩詰めです",
    "still in check or mate by a pawn": "王手がかかったままか、打ち歩詰めです",
    "not in hand": "持駒に{piece}がありません",
    "occupied": "{to}には駒があります",
    "dead drop": "そこに打った{piece}は動けません（行き所のない駒）",
    "two pawns": "二歩です（{file}筋に歩があります）",
    "no piece": "{start}に駒がありません",
    "not yours": "{start}の駒はあなたの駒ではありません",
    "own piece": "{to}には自分の駒があります",
    "cannot reach": "{start}の{piece}は{to}に動けません",
    "cannot promote": "{piece}は成れません",
    "too far to promote": "成れるのは敵陣三段目までに入る、そこで動く、そこから出るときだけです",
    "must promote": "{piece}はそこでは動けなくなるので、成らなければなりません（{usi}+）",
    "none on the board": "盤上に{piece}がありません",
    "not like that": "そのように動ける{piece}はありません",
}

TEXTS: dict[str, tuple[str, str]] = {
    # Sides and results.
    "black": ("black", "先手"),
    "white": ("white", "後手"),
    "win": ("{side} wins by {reason}", "{side}の勝ち（{reason}）"),
    "draw": ("draw by {reason}", "引き分け（{reason}）"),
    "unfinished": ("unfinished", "未了"),
    "checkmate": ("checkmate", "詰み"),
    "no legal move": ("no legal move", "指し手なし"),
    "repetition": ("repetition", "千日手"),
    "perpetual check": ("perpetual check", "連続王手の千日手"),
    "declaration": ("declaration", "入玉宣言"),
    "maximum length": ("maximum length", "最大手数"),
    "resignation": ("resignation", "投了"),
    "time": ("time", "時間切れ"),
    "illegal move": ("illegal move", "反則"),
    "forfeit": ("forfeit", "反則負け"),
    "agreed impasse": ("agreed impasse", "持将棋"),
    "adjudication": ("adjudication", "裁定"),
    # A game in the terminal.
    "play.loading": ("loading the network", "ネットワークを読み込んでいます"),
    "play.starting": ("starting the engine", "エンジンを起動しています"),
    "play.start": (
        "you are {side}, against {opponent}; type help for the commands",
        "あなたは{side}、相手は {opponent} です。help でコマンドの一覧を表示します",
    ),
    "play.prompt": ("{side}, move {number}: ", "{side} {number}手目: "),
    "play.end": ("{outcome}, after {moves} moves", "まで{moves}手で{outcome}"),
    "play.last": ("last move: {usi}  {kif}", "直前の手: {kif}  {usi}"),
    "play.check": ("check!", "王手！"),
    "play.unknown": (
        "unknown command {word}: type help for the list, or a move such as 7g7f",
        "{word} というコマンドはありません。help で一覧を表示します。"
        "指し手は ７六歩、76歩、7g7f のように入力します",
    ),
    "play.refused": ("{mistake}", "できません: {mistake}"),
    "play.unreadable": (
        "expected a move such as 7g7f, 76歩, P-7f or 7776FU; given {text}",
        "{text} は指し手として読めません。76歩、７六歩、7g7f、P-7f、7776FU のように入力してください",
    ),
    "play.ambiguous": (
        "{text} may be any of {moves}: expected one of them",
        "{text} はどの手か決まりません。次のどれかを入力してください: {moves}",
    ),
    "play.illegal": ("{text} is illegal: {fault}", "{text} は指せません: {fault}"),
    "play.legal": ("{illegal}; legal: {moves}", "{illegal}。指せる手: {moves}"),
    "play.declare": ("declare", "declare（入玉宣言）で勝ちです"),
    "play.no hint": (
        "no hint: {opponent} has no values; a trained network gives hints",
        "{opponent} は評価値を持たないため、ヒントを出せません。学習したネットワークなら出せます",
    ),
    "play.hint": ("{move}, {chance}; line: {line}", "{move}  {chance}  読み筋: {line}"),
    "play.no undo": ("you have no move to take back", "待ったできる手がありません"),
    "play.you": ("you", "あなた"),
    "play.saved": ("saved {path}", "{path} に保存しました"),
    "play.not saved": ("not saved: {mistake}", "保存できませんでした: {mistake}"),
    "save.kind": (
        "cannot save to {path}: expected {kinds}",
        "{path} には保存できません: 拡張子は {kinds} のどれかにしてください",
    ),
    "save.exists": (
        "cannot save to {path}: it already exists",
        "{path} には保存できません: 同じ名前のファイルがあります",
    ),
    "save.no directory": (
        "cannot save to {path}: no directory {directory}",
        "{path} には保存できません: {directory} というフォルダーがありません",
    ),
    "save.not writable": (
        "cannot save to {path}: directory {directory} is not writable",
        "{path} には保存できません: フォルダー {directory} に書き込めません",
    ),
    "play.save as": (
        "save the game as (.kif, .csa or .usi; empty to discard it): ",
        "棋譜の保存先（.kif、.csa、.usi。空欄なら保存しません）: ",
    ),
    "play.moves": (
        "the game is not saved; its moves: {moves}",
        "棋譜は保存されていません。指し手: {moves}",
    ),
    "play.help": (
        """\
7g7f  8h2b+  P*5e   move, move and promote, drop a pawn; also 76歩, 22角成, 55歩打, 58金右,
                    P-7f, Bx2b+, G6i-5h and 7776FU
moves               the legal moves
hint                the best move and line, and your chance to win
undo                take back your last move and the reply to it
board               show the board again
declare             claim a win with the king in the enemy camp
resign              give up
save                write the game so far to a new file; save NAME names it (.kif, .csa or .usi)
quit                leave\
""",
        """\
76歩 22角成 55歩打 58金右   指し手。７六歩、7g7f、8h2b+、P*5e、P-7f、7776FU とも書けます
moves                       指せる手の一覧
hint                        最善手、読み筋、勝率
undo                        待った（自分の手と相手の応手を戻します）
board                       盤面をもう一度表示
declare                     入玉宣言
resign                      投了
save                        ここまでの棋譜を新しいファイルに保存。save 名前 で名前を指定（.kif、.csa、.usi）
quit                        終了\
""",
    ),
    # The games of a training.
    "watch.start": (
        "watching {run}; games appear after its next update, Ctrl-C ends",
        "{run} を観戦します。次の更新のあとに対局を表示します。Ctrl-C で終了します",
    ),
    "watch.training": ("{run}, {step} moves of training", "{run}、学習 {step} 手"),
    "watch.move": ("game {number}, move {move}", "第{number}局 {move}手目"),
    "watch.estimate": (", network: ☗ {black} % ☖ {white} %", "  期待勝率 ☗ {black} % ☖ {white} %"),
    "watch.end": ("game {number}: {outcome}, {moves} moves", "第{number}局: まで{moves}手で{outcome}"),
    "watch.not training": ("{run} is not training", "{run} は学習中ではありません"),
    "watch.kept": ("the last of {games} games kept", "保存した{games}局の最後の対局"),
    "watch.evaluated": ("a game of its evaluations", "評価対局の一局"),
    # Values.
    "win rate": ("win rate {percent}", "勝率 {percent}"),
    "mate": ("mate in {plies}", "{plies}手詰"),
    "mated": ("mated in {plies}", "{plies}手で詰まされます"),
    "declare": ("declare", "宣言"),
    # The analysis of a game.
    "analysis.game": ("{players}: {moves} moves, {outcome}", "{players}: {moves}手、{outcome}"),
    "analysis.network": (
        "{mark} {network}, {visits} visits per position",
        "{mark} {network}、1局面あたり{visits}回探索",
    ),
    "analysis.move": ("move", "手数"),
    "analysis.black": ("Black", "先手"),
    "analysis.mover": ("mover", "手番"),
    "analysis.lost": ("lost", "損失"),
    "analysis.best": ("move", "最善"),
    "analysis.better": ("better", "最善の読み筋"),
    "analysis.graph": ("win rate of Black", "先手の勝率"),
    "analysis.summary": (
        "{side}: {best} of {moves} moves are the network's own, {missed} missed a better one, "
        "{average} points lost on average",
        "{side}: {moves}手のうち最善手 {best}、逃した好手 {missed}、平均損失 {average} ポイント",
    ),
    "analysis.opening comment": (
        "{network}, {visits} visits: Black's win rate is {rate}",
        "{network}、{visits}回探索: 先手の勝率 {rate}",
    ),
    "analysis.comment": ("Black's win rate {rate}", "先手の勝率 {rate}"),
    "analysis.missed comment": (
        "{side} lost {points} points; better: {line}",
        "{side}は{points}ポイントの損。最善: {line}",
    ),
    "analysis.written": ("with comments: {path}", "コメント付きの棋譜: {path}"),
    "analysis.drawn": ("graph: {path}", "グラフ: {path}"),
    "analysis.progress": ("{network}: {done} of {of} positions", "{network}: {of}局面中 {done}局面"),
    **{f"illegal.{key}": (FAULTS[key], japanese) for key, japanese in _FAULTS.items()},
}
