"""Text from a store as a terminal may get it: it moves no cursor, sets no colour and turns no reading direction."""

REASON_LENGTH = 200  # characters of a reason or note in a table
WHOLE_LENGTH = 2000  # and where one result is shown with everything


def printable(text: str) -> str:
    """One line without control characters, bidirectional overrides or other unprintables, which are written as escapes.

    Line breaks and tabs become spaces.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(each) for each in text)


def clipped(text: str, length: int = REASON_LENGTH) -> str:
    """The beginning of a text that is longer than ``length`` characters, with an ellipsis."""
    return text if len(text) <= length else text[: length - 3] + "..."


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if character in "\n\r\t":
        return " "
    if character.isspace() and ord(character) > 0x9F:
        return " "  # a no-break space, a line separator
    return ascii(character)[1:-1]
