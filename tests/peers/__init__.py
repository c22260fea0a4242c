"""What roofbench is held against: one script a claim, each beside the peers that answer the same question.  See README.md."""
