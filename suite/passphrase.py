"""A passphrase kept as a salted scrypt digest: made by the command, compared by the dashboard's gate, never kept itself."""

import hashlib
import hmac
import os
import re

from suite.errors import UsageError

VARIABLE = "ROOFBENCH_DASHBOARD_GATE"  # of the server's environment, and of no command line
SHORTEST = 12
LONGEST = 1024  # characters that are looked at; more cost time and make nothing safer
_N, _R, _P, _BYTES = 2**14, 8, 1, 32  # about 16 MiB and 50 ms for one guess
_SEALED = re.compile(r"[0-9a-f]{32}\$[0-9a-f]{64}")


def refuse_weak(passphrase: str) -> None:
    """``UsageError`` for one that is too short to be left to the network."""
    if len(passphrase) < SHORTEST:
        raise UsageError(
            f"the passphrase has {len(passphrase)} characters; give at least {SHORTEST}, such as four random words"
        )
    if len(passphrase) > LONGEST:
        raise UsageError(f"the passphrase has {len(passphrase):,} characters; give at most {LONGEST:,}")


def sealed(passphrase: str) -> str:
    """``salt$digest`` in hexadecimal digits, another each time."""
    salt = os.urandom(16)
    return f"{salt.hex()}${_digest(passphrase, salt).hex()}"


def is_right(passphrase: str, seal: str) -> bool:
    """Whether a passphrase is the sealed one, compared in constant time; never for a seal that is none."""
    if not _SEALED.fullmatch(seal):
        return False
    salt, digest = (bytes.fromhex(part) for part in seal.split("$"))
    return hmac.compare_digest(_digest(passphrase[:LONGEST], salt), digest)


def _digest(passphrase: str, salt: bytes) -> bytes:
    return hashlib.scrypt(passphrase.encode("utf-8", "replace"), salt=salt, n=_N, r=_R, p=_P, dklen=_BYTES)
