"""What a lock file says of who holds it: nothing hangs on that, the lock holds without."""

import errno
import os

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_label(descriptor: int, text: str) -> None:
    """Put the text in place of what a file holds; where there is no room for it the file is left empty."""
    content = text.encode()
    try:
        # Written over first and cut after: a file that gave its last block back might not get it again.
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        os.ftruncate(descriptor, 0)  # what an earlier holder wrote would name the wrong one
