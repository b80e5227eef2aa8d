"""Fast inference on a CPU: models recorded as programs, quantized to int8, executed by `glassformer.kernels`."""
