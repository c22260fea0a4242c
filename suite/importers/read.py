"""One door for what nccl-tests and rccl-tests leave behind, whatever its form."""

from pathlib import PurePath

from suite.collectives.names import Op, op_of
from suite.errors import UsageError
from suite.importers.copies import without_copies
from suite.importers.json_stream import documents
from suite.importers.nccl_tests_json import is_nccl_tests_json, read_nccl_tests_json
from suite.importers.nccl_tests_text import read_nccl_tests
from suite.importers.rccl_tests_records import is_rccl_tests_csv, is_record, read_rccl_tests_csv, read_rccl_tests_json
from suite.importers.rows import CollectiveLog

BYTE_ORDER_MARK = "\ufeff"  # which editors of Windows put in front, and shells that redirect
LOOKED_AT = 2**16  # characters: the end of a log may be garbage, where a machine went down
MOST_UNREADABLE = 0.1  # of them

_CONTROLS = {code: None for code in (*range(32), 127, 0xFFFD) if chr(code) not in "\t\n\r\f\b\x1b"}


def read_collectives(text: str, name: str = "") -> tuple[CollectiveLog, ...]:
    """Every run in a text; the file's ``name`` helps where the text does not name its operation.

    Raises ``UsageError`` for a text that holds nothing of either tool, and at once for what is no text.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    _refuse_binary(text, name)
    logs = without_copies(_read(text, op_of_name(name)))
    if not logs:
        raise UsageError(
            f"{name or 'the text'} holds no run of nccl-tests or rccl-tests; "
            "give what they print, their JSON (-J), or what rccl-tests write with -x"
        )
    return logs


def _refuse_binary(text: str, name: str) -> None:
    begins = text[:LOOKED_AT]
    unreadable = len(begins) - len(begins.translate(_CONTROLS))
    if unreadable > MOST_UNREADABLE * len(begins):
        raise UsageError(
            f"{name or 'the text'} holds no run of nccl-tests or rccl-tests: {unreadable} of its first {len(begins)} "
            "characters are no text; give what they print, unpacked and in UTF-8"
        )


def _read(text: str, known: Op | None) -> tuple[CollectiveLog, ...]:
    if is_rccl_tests_csv(text):
        return read_rccl_tests_csv(text)
    if not text.lstrip().startswith(("{", "[")):
        return read_nccl_tests(text, known)
    found = list(documents(text))
    runs = tuple(read_nccl_tests_json(document) for document in found if is_nccl_tests_json(document.value))
    if runs:
        return runs
    firsts = [document.value[:1] if isinstance(document.value, list) else [document.value] for document in found]
    if any(is_record(value) for values in firsts for value in values):
        return read_rccl_tests_json(found)
    return read_nccl_tests(text, known)


def op_of_name(name: str) -> Op | None:
    """The operation that a file's name has, the longest where one is in another; ``None`` for none."""
    plain = PurePath(name).name.lower().replace("_", "").replace("-", "")
    held = [op for op in Op if op.value.replace("_", "") in plain]
    longest = max(held, key=lambda op: len(op.value), default=None)
    return op_of(longest) if longest else None
