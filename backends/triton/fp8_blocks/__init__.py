"""Products of fp8 in scaled blocks (A 1x128, B 128x128) by a kernel of their own, of one B or of groups of rows."""
