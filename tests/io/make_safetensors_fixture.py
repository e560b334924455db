"""Writes tests/io/data/reference.safetensors with the PyPI packages safetensors and numpy.

The test reads it and writes the same tensors again: both files must be equal byte by byte.
"""

import pathlib

import numpy
from safetensors.numpy import save_file

TENSORS = {
    "weight": numpy.arange(6, dtype=numpy.float32).reshape(2, 3),
    "bias": numpy.array([1.5, -2.0], dtype=numpy.float64),
    "mask": numpy.array([True, False, True]),
    "ids": numpy.array([-1, 2], dtype=numpy.int32),
    "half": numpy.array([0.5], dtype=numpy.float16),
    "scalar": numpy.array(7, dtype=numpy.int64),
    "empty": numpy.zeros((0, 4), dtype=numpy.float32),
}

path = pathlib.Path(__file__).parent / "data" / "reference.safetensors"
save_file(TENSORS, path, metadata={"format": "pt"})
