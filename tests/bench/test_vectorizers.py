"""The sampler of peers that play with our network: legal actions only, from their softmax."""

import numpy as np
import vectorizers

from keisei.shogi.encoding import ACTIONS

LABELS = np.arange(ACTIONS) % 7  # several actions share a logit


def test_a_sample_follows_the_softmax_of_the_legal_logits() -> None:
    rows = 4000
    logits = np.tile(np.array([[0.0, np.log(3.0), 0.0, 9.0, 0.0, 0.0, 0.0]], np.float32), (rows, 1))
    mask = np.zeros((rows, ACTIONS), np.bool_)
    mask[:, [7, 8, ACTIONS - 1]] = True  # logits 0, log 3 and LABELS[-1]: weights 1, 3 and 1
    assert logits[0, LABELS[ACTIONS - 1]] == 0
    draws = (np.arange(rows) + 0.5) / rows
    chosen = vectorizers.sampled(logits, LABELS, mask, draws)
    actions, counts = np.unique(chosen, return_counts=True)
    assert actions.tolist() == [7, 8, ACTIONS - 1]
    np.testing.assert_allclose(counts / rows, [0.2, 0.6, 0.2], atol=0.001)


def test_a_game_without_legal_actions_disturbs_no_other() -> None:
    mask = np.zeros((4, ACTIONS), np.bool_)
    mask[0, 5], mask[2, 9] = True, True  # games 1 and 3 are over
    for draw in (0.0, 0.5, 1 - 2**-53):
        chosen = vectorizers.sampled(np.zeros((4, 7), np.float32), LABELS, mask, np.full(4, draw))
        assert chosen[[0, 2]].tolist() == [5, 9]
        assert ((chosen >= 0) & (chosen < ACTIONS)).all()
