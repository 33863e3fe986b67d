"""Runs compiled Triton kernels without a GPU: devices, the executor of PTX, Triton's driver."""
