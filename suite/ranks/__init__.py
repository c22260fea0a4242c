"""Ranks that somebody else started: found in the environment, brought together by rank 0, kept by a process each.

Under torchrun, srun or mpirun every rank is a ``roofbench run``.  Rank 0's measures, as it would without them, and is alone in
opening the store.  The others each keep one rank: a child, which they start when the crew of rank 0's worker wants one, and
kill and start anew when a case hung or crashed, so that the launcher's own processes outlive whatever a case does.
"""
