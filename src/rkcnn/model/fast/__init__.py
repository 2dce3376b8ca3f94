"""RKCNN steps in fused Triton kernels, for training in bf16 on a GPU; steps/rkcnn.py stays the reference."""
