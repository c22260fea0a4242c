"""``roofbench`` in a process forked from one that has its modules imported: what most of a short command's time goes into.

What concerns the start itself (imports, closed streams, signals at any moment) goes through ``command.start``.
"""

import atexit
import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]
MODULES = (
    "alembic.command", "hydra.compose", "numpy", "rich.live", "sqlalchemy.dialects.sqlite", "suite.cli", "suite.commands.plan",
    "suite.commands.report", "suite.commands.run", "suite.commands.show", "suite.commands.store", "suite.config.compose",
    "suite.store.maintain", "suite.store.merge", "suite.store.queries", "suite.store.writer",
)  # fmt: skip
REQUEST_BYTES = 1 << 20


class Server:
    """Started by the first call; ends with this process, whose end of the socket is then closed.

    ``path`` is its ``PYTHONPATH``, this process's own unless another is given.
    """

    def __init__(self, path: str | None = None) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.ready", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=None if path is None else {**os.environ, "PYTHONPATH": path},
            )
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES)
        atexit.register(self.close)

    def call(
        self, folder: Path, arguments: Sequence[str], environment: Mapping[str, str], limit_s: float
    ) -> tuple[int, str, str]:
        """Exit status as of ``subprocess``, standard output and standard error; raises ``TimeoutError`` past the limit."""
        pipes = [os.pipe(), os.pipe()]
        try:
            request = json.dumps([str(folder), list(arguments), dict(environment)]).encode()
            socket.send_fds(self._socket, [request], [writing for _, writing in pipes])
        finally:
            for _, writing in pipes:
                os.close(writing)
        answer = self._socket.recv(20)
        assert answer, "the process that forks has ended; standard error says why"
        pid = int(answer)
        try:
            out, err = _read_to_the_end([reading for reading, _ in pipes], limit_s)
        except TimeoutError:
            os.kill(pid, 9)
            raise
        finally:
            for reading, _ in pipes:
                os.close(reading)
            status = int(self._socket.recv(20))
        return status, out, err

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


def _read_to_the_end(descriptors: Sequence[int], limit_s: float) -> list[str]:
    read: dict[int, bytearray] = {each: bytearray() for each in descriptors}
    with selectors.DefaultSelector() as selector:
        for each in descriptors:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(limit_s)
            if not ready:
                raise TimeoutError(f"nothing was printed in {limit_s} s and the command had not ended")
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                read[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
    return [bytes(read[each]).decode() for each in descriptors]


def serve(descriptor: int) -> None:
    """Fork for each request: its process id is sent at once, its exit status when it has ended."""
    for module in MODULES:
        __import__(module)
    from suite.config import compose
    from suite.hardware.catalogue import all_specs

    all_specs()
    compose([])  # the parsers' tables are made by the first
    with socket.socket(fileno=descriptor) as requests:
        while True:
            request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES, 2)
            if not request:
                return
            pid = os.fork()
            if pid == 0:
                requests.close()
                _carry_out(request, descriptors)
            for each in descriptors:
                os.close(each)
            requests.send(str(pid).encode())
            requests.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _carry_out(request: bytes, descriptors: Sequence[int]) -> NoReturn:
    status = 1
    try:
        folder, arguments, environment = json.loads(request)
        for standard, given in zip((1, 2), descriptors, strict=True):
            os.dup2(given, standard)
            os.close(given)
        # What this process had before was another kind of file, and Python remembers which.
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv, sys.path[0] = ["roofbench", *arguments], folder
        from suite.cli import main

        status = main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
