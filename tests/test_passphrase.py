import re

import pytest

from suite.errors import UsageError
from suite.passphrase import LONGEST, is_right, refuse_weak, sealed

PHRASE = "correct horse battery staple"


def test_a_seal_opens_for_its_passphrase_alone_and_says_nothing_of_it():
    seal = sealed(PHRASE)
    assert re.fullmatch(r"[0-9a-f]{32}\$[0-9a-f]{64}", seal)
    assert is_right(PHRASE, seal)
    assert not is_right(PHRASE + " ", seal)
    assert not is_right("", seal)
    assert sealed(PHRASE) != seal  # another salt


@pytest.mark.parametrize("seal", ["", "$", "zz$zz", "00$00", "0" * 97])
def test_what_is_no_seal_opens_for_nobody(seal):
    assert not is_right("", seal)
    assert not is_right(PHRASE, seal)


def test_a_guess_of_any_length_costs_no_more_than_a_long_one():
    seal = sealed("x" * LONGEST)
    assert is_right("x" * 10_000_000, seal)  # what is beyond is not looked at


def test_short_passphrases_are_refused_with_the_least_length():
    with pytest.raises(UsageError, match="11 characters; give at least 12"):
        refuse_weak("x" * 11)
    with pytest.raises(UsageError, match="1,025 characters; give at most 1,024"):
        refuse_weak("x" * 1025)
    refuse_weak("x" * 12)
