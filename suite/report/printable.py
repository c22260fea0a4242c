"""Text from a store as a terminal may get it: it moves no cursor, sets no colour and turns no reading direction."""

REASON_LENGTH = 200  # characters of a reason or note in a table
WHOLE_LENGTH = 2000  # and where one result is shown with everything
LEAST_NAME = 4  # characters that are left of a name whose brackets stay whole
_CUT = "..."


def printable(text: str) -> str:
    """One line without control characters, bidirectional overrides or other unprintables, which are written as escapes.

    Line breaks and tabs become spaces.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(each) for each in text)


def clipped(text: str, length: int = REASON_LENGTH) -> str:
    """The beginning of a text that is longer than ``length`` characters, with an ellipsis."""
    return text if len(text) <= length else text[: length - len(_CUT)] + _CUT


def shortened(text: str, length: int) -> str:
    """A name of at most ``length`` characters: what stands in brackets behind it stays, for that tells it from others."""
    if len(text) <= length:
        return text
    name, bracket, told = text.rpartition(" (")
    kept = f"{bracket}{told}"
    room = length - len(kept) - len(_CUT)
    if bracket and room >= LEAST_NAME:
        return f"{name[:room].rstrip()}{_CUT}{kept}"
    return clipped(text, length)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if character in "\n\r\t":
        return " "
    if character.isspace() and ord(character) > 0x9F:
        return " "  # a no-break space, a line separator
    return ascii(character)[1:-1]
