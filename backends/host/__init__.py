"""What the operating system says about this machine; reads files under /proc and /sys, imports no framework."""
