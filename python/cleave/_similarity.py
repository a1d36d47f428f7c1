# SPDX-License-Identifier: Apache-2.0
"""Computes cosines of vectors in the host's memory. Arguments and results are those of sentence-transformers' methods;
callers who give tensors of PyTorch, or ask for them, get tensors."""
import importlib
import sys
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError


def tensor_maker(what: str) -> Callable[[NDArray[Any]], Any]:
    """Returns PyTorch's function that makes a tensor of an array. Cleave itself does not need PyTorch."""
    try:
        made: Callable[[NDArray[Any]], Any] = importlib.import_module("torch").from_numpy
    except ImportError:
        raise ArgumentError(f"{what}: convert_to_tensor=True needs PyTorch, which is not installed; without "
                            "convert_to_tensor the result is a NumPy array") from None
    return made


def _like(first: Any, result: NDArray[np.float32]) -> Any:
    """Returns the result as a tensor if the caller's first argument is one."""
    torch = sys.modules.get("torch")
    return torch.from_numpy(result) if torch and isinstance(first, torch.Tensor) else result


def _pair(embeddings1: Any, embeddings2: Any) -> list[NDArray[np.float32]]:
    return [np.atleast_2d(np.asarray(e, np.float32)) for e in (embeddings1, embeddings2)]


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.float32(1e-12)), np.float32)


def similarity_pairwise(embeddings1: Any, embeddings2: Any) -> Any:
    """Returns the cosines of the vectors at the same place in two lists of vectors, [n]: a tensor of PyTorch if the
    first list is a tensor."""
    a, b = _pair(embeddings1, embeddings2)
    if a.ndim != 2 or a.shape != b.shape:
        raise ArgumentError(f"similarity_pairwise: got vectors of shapes {a.shape} and {b.shape}, but both must be "
                            "[n, width]")
    return _like(embeddings1, np.asarray((_unit(a) * _unit(b)).sum(1), np.float32))


def similarity(embeddings1: Any, embeddings2: Any) -> Any:
    """Returns the cosines of all pairs of two lists of vectors, [n, m], as SentenceTransformer.similarity does: a
    tensor of PyTorch if the first list is a tensor."""
    a, b = _pair(embeddings1, embeddings2)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ArgumentError(f"similarity: got vectors of shapes {a.shape} and {b.shape}, but [n, width] and "
                            "[m, width] are expected")
    return _like(embeddings1, np.asarray(_unit(a) @ _unit(b).T, np.float32))
