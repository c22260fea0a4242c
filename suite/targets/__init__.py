"""What kernels become on targets that need not be there: records, occupancy, the matrix, and the children that compile."""
