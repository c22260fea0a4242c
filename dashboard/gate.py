"""The gate in front of a dashboard that others can reach: nothing of a store is opened or shown before the passphrase."""

import os
from collections import deque
from collections.abc import Callable
from threading import Lock
from time import monotonic

import streamlit as st

from suite.passphrase import LONGEST, VARIABLE, is_right

WINDOW_S = 60.0
MOST_OF_ONE, MOST_OF_ALL = 5, 30  # wrong guesses within the window, from one address and from anywhere


class Guesses:
    """Wrong guesses of the last minute, by address: who has too many waits, and so does everybody where all have too many."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._wrong: deque[tuple[float, str]] = deque()

    def begin(self, address: str) -> float:
        """Let an address guess, and return 0; or return how many seconds it has to wait.

        A guess counts as wrong until it is known to be ``right``: many that come at once would else all find room.
        """
        with self._lock:
            self._forget()
            wait_s = self._wait_s(address)
            if not wait_s:
                self._wrong.append((self._now(), address))
            return wait_s

    def right(self, address: str) -> None:
        """The address's last guess was not wrong."""
        with self._lock:
            place = next((place for place in reversed(range(len(self._wrong))) if self._wrong[place][1] == address), None)
            if place is not None:
                del self._wrong[place]

    def _wait_s(self, address: str) -> float:
        own = [at for at, whose in self._wrong if whose == address]
        waits = [own[-MOST_OF_ONE]] if len(own) >= MOST_OF_ONE else []
        waits += [self._wrong[-MOST_OF_ALL][0]] if len(self._wrong) >= MOST_OF_ALL else []
        return max((at + WINDOW_S - self._now() for at in waits), default=0.0)

    def _forget(self) -> None:
        while self._wrong and self._wrong[0][0] <= self._now() - WINDOW_S:
            self._wrong.popleft()


def is_open() -> bool:
    """Whether this session may see the stores; draws the question where it may not."""
    seal = os.environ.get(VARIABLE)
    if not seal or st.session_state.get("passed") == seal:
        return True
    st.title("roofbench")
    with st.form("gate"):
        guess = st.text_input("Passphrase", type="password", max_chars=LONGEST, autocomplete="current-password")
        asked = st.form_submit_button("Open")
    if asked and _answer(guess, seal):
        st.session_state["passed"] = seal
        st.rerun()
    return False


def visitor() -> str:
    """Where a session comes from; behind a proxy all come from the proxy."""
    return st.context.ip_address or "this machine"


def _answer(guess: str | None, seal: str) -> bool:
    guesses, address = _guesses(), visitor()
    wait_s = guesses.begin(address)
    if wait_s > 0:
        st.error(f"Too many wrong passphrases. Wait {wait_s:.0f} seconds.")
        return False
    if is_right(guess or "", seal):
        guesses.right(address)
        return True
    st.error("That is not the passphrase.")
    return False


@st.cache_resource(show_spinner=False)
def _guesses() -> Guesses:
    return Guesses()
