"""Kernels in C for a processor: they execute programs recorded from models (`glassformer.runtime`) on plain buffers."""
