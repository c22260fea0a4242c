"""One file a command.  Each offers ``SUMMARY``, ``DETAIL``, ``EXAMPLES``, ``arguments(parser)`` and ``run(args) -> int``.

These modules are imported for every ``roofbench --help``: what a command needs beyond the standard library, it imports
when it runs.
"""
