"""Kinds of values in JSON columns, which take anything: what readers and ``store check`` hold them against."""


def is_text(value: object) -> bool:
    """A text."""
    return isinstance(value, str)


def are_texts(value: object) -> bool:
    """A list of texts."""
    return isinstance(value, list | tuple) and all(map(is_text, value))


def are_named_texts(value: object) -> bool:
    """An object whose values are texts."""
    return isinstance(value, dict) and all(map(is_text, value.values()))
