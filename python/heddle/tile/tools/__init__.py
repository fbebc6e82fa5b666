"""What is used beside kernels."""
