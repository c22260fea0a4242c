"""What CUDA's timing events resolve."""

# cudaEventElapsedTime's documented resolution.
EVENT_RESOLUTION_S = 0.5e-6
