"""Texts of the frame around every page of `keisei web`: English and Japanese, as in keisei.language."""

TEXTS: dict[str, tuple[str, str]] = {
    # Names of the pages, in the navigation and in the title.
    "shell.live": ("Live", "ライブ"),
    "shell.games": ("Games", "棋譜"),
    "shell.replay": ("Replay", "棋譜再生"),
    "shell.play": ("Play", "対局"),
    "shell.ladder": ("Ladder", "レーティング"),
    "shell.navigation": ("pages", "ページ"),
    "shell.skip": ("Skip to the content", "本文へ"),
    # Choices.
    "shell.letters": ("show letters on the pieces", "駒をアルファベットで表示"),
    "shell.kanji": ("show kanji on the pieces", "駒を漢字で表示"),
    "shell.theme auto": ("colours: as the system", "配色: システムに合わせる"),
    "shell.theme light": ("colours: light", "配色: ライト"),
    "shell.theme dark": ("colours: dark", "配色: ダーク"),
    "shell.close": ("close", "閉じる"),
    "shell.no answer": (
        "keisei web does not answer; is it still running?",
        "keisei web が応答しません。動作しているか確認してください",
    ),
}
