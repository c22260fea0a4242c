"""Comparing two runs: which cases belong together, whether the second is faster or slower, and what else differed.

Pure over rows and samples: nothing here knows a store or a terminal.  ``runs.compare_runs`` is the whole of it.
"""
