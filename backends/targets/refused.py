"""What a program is not compiled for: told apart from a compiler's errors, and without the tools of either kind of program."""


class Refused(Exception):
    """The product does not offer this program on this device; the message is the reason that a case would be given."""


class NothingFits(Exception):
    """Every configuration that the product would try spills, does not fit or does not compile; the message says which how."""


def refuse(reason: str | None) -> None:
    """Raises ``Refused`` where there is a reason."""
    if reason:
        raise Refused(reason)
