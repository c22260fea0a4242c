"""Entry of a worker process."""

import argparse
import faulthandler
import os
import socket
import sys

from suite.worker.lifeline import bind_to_parent, leave_no_core


def main() -> int:
    """Bind to the parent first, then import what is heavy and serve."""
    parser = argparse.ArgumentParser(prog="python -m suite.worker")
    parser.add_argument("--fd", type=int, required=True, help="the inherited end of the launcher's socket pair")
    parser.add_argument("--parent", type=int, required=True, help="process id of the launcher")
    parser.add_argument("--target", required=True, help="module:Class of the backend")
    parser.add_argument("--index", type=int, required=True, help="the device's index in the backend's order")
    parser.add_argument("--hold", type=int, action="append", default=[], help="inherited descriptors of the device's lock")
    given = parser.parse_args()
    bind_to_parent(given.parent)
    leave_no_core()
    faulthandler.enable()
    for descriptor in (given.fd, *given.hold):
        os.set_inheritable(descriptor, False)

    from suite.worker.serve import serve

    connected, own = socket.socket(fileno=given.fd), os.getpid()
    os.register_at_fork(after_in_child=connected.close)
    status = serve(connected, given.target, given.index)
    if os.getpid() != own:
        os._exit(status)  # a copy that a kernel forked: what is registered for the end is the worker's to run
    return status


if __name__ == "__main__":
    sys.exit(main())
