"""The gate in front of a dashboard that others can reach."""

import pytest

from dashboard import gate
from dashboard.gate import MOST_OF_ALL, MOST_OF_ONE, WINDOW_S, Guesses
from suite.passphrase import VARIABLE, sealed
from tests.dashboard.opened import opened, words

PHRASE = "correct horse battery staple"


@pytest.fixture
def gated(monkeypatch, one_store):
    monkeypatch.setenv(VARIABLE, sealed(PHRASE))
    monkeypatch.setattr("dashboard.gate.visitor", lambda: "10.0.0.9")
    return lambda **address: opened(monkeypatch, one_store, job="calibration", **address)


def guess(app, text):
    app.text_input[0].set_value(text)
    return app.button[0].click().run()


def test_nothing_of_a_store_is_opened_or_shown_before_the_passphrase(monkeypatch, gated):
    asked = []
    monkeypatch.setattr("suite.store.browsing.Browser.open", asked.append)
    app = gated(passphrase=PHRASE)  # an address is no place for it
    assert not app.exception
    assert [field.label for field in app.text_input] == ["Passphrase"]
    assert not asked
    assert not app.dataframe
    assert "Testium" not in words(app)


def test_a_wrong_passphrase_opens_nothing_and_the_right_one_does(gated):
    app = guess(gated(), "correct horse")
    assert [error.value for error in app.error] == ["That is not the passphrase."]
    assert not app.dataframe
    guess(app, PHRASE)
    assert not app.exception
    assert "1 device, 1 result" in words(app)
    assert not app.text_input
    assert PHRASE not in str(app.query_params)
    app.run()  # the session is let in for good
    assert "1 device, 1 result" in words(app)


def test_another_session_is_asked_again(gated):
    assert "1 device, 1 result" in words(guess(gated(), PHRASE))
    assert not gated().dataframe


def test_after_too_many_wrong_guesses_even_the_right_one_waits(gated):
    app = gated()
    for _ in range(MOST_OF_ONE):
        guess(app, "wrong")
    guess(app, PHRASE)
    assert "Too many wrong passphrases. Wait " in app.error[0].value
    assert not app.dataframe


def test_a_seal_that_is_none_lets_nobody_in(monkeypatch, one_store):
    monkeypatch.setenv(VARIABLE, "broken")
    app = guess(opened(monkeypatch, one_store), "")
    assert [error.value for error in app.error] == ["That is not the passphrase."]
    assert not app.dataframe


def test_guesses_are_counted_by_address_over_a_minute_and_over_all():
    now = [0.0]
    guesses = Guesses(lambda: now[0])
    for number in range(MOST_OF_ONE):
        now[0] = float(number)
        assert guesses.begin("a") == 0
    assert guesses.begin("a") == WINDOW_S - (MOST_OF_ONE - 1)
    assert guesses.begin("b") == 0
    guesses.right("b")
    now[0] = WINDOW_S
    assert guesses.begin("a") == 0  # the first is forgotten
    now[0] = 2 * WINDOW_S
    for number in range(MOST_OF_ALL):
        assert guesses.begin(f"other {number}") == 0
    assert guesses.begin("anybody") == WINDOW_S
    now[0] = 3 * WINDOW_S
    assert guesses.begin("anybody") == 0


def test_right_guesses_make_nobody_wait():
    guesses = Guesses(lambda: 0.0)
    for _ in range(2 * MOST_OF_ALL):
        assert guesses.begin("a") == 0
        guesses.right("a")


def test_guesses_that_come_at_once_are_no_more_than_one_after_another(monkeypatch):
    """Each is being looked at, which takes a while, when the next one comes."""
    guesses, admitted, errors = Guesses(lambda: 0.0), [], []
    monkeypatch.setattr("dashboard.gate._guesses", lambda: guesses)
    monkeypatch.setattr("dashboard.gate.visitor", lambda: "10.0.0.9")
    monkeypatch.setattr("dashboard.gate.st.error", errors.append)

    def is_right(guess, seal):
        admitted.append(guess)
        if len(admitted) <= 3 * MOST_OF_ONE:
            gate._answer(f"{len(admitted)}", seal)
        return False

    monkeypatch.setattr("dashboard.gate.is_right", is_right)
    gate._answer("0", "")
    assert admitted == [str(number) for number in range(MOST_OF_ONE)]
    assert errors[0] == "Too many wrong passphrases. Wait 60 seconds."
