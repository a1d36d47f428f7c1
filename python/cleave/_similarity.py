# SPDX-License-Identifier: Apache-2.0
"""Computes similarities of vectors in the host's memory. Arguments and results are those of sentence-transformers'
methods; callers who give tensors of PyTorch, or ask for them, get tensors."""
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


def _negative_distances(a: NDArray[np.float32], b: NDArray[np.float32], order: int) -> NDArray[np.float32]:
    """Returns minus the distances of all pairs, row by row, because a difference of all pairs needs much memory."""
    return np.array([-np.linalg.norm(row - b, ord=order, axis=1) for row in a], np.float32).reshape(len(a), len(b))


# name -> (of all pairs, of the vectors at the same place); a larger number means that vectors are more similar
SIMILARITIES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cosine": (lambda a, b: _unit(a) @ _unit(b).T, lambda a, b: (_unit(a) * _unit(b)).sum(1)),
    "dot": (lambda a, b: a @ b.T, lambda a, b: (a * b).sum(1)),
    "euclidean": (lambda a, b: _negative_distances(a, b, 2), lambda a, b: -np.linalg.norm(a - b, axis=1)),
    "manhattan": (lambda a, b: _negative_distances(a, b, 1), lambda a, b: -np.abs(a - b).sum(1))}


def similarity_pairwise(embeddings1: Any, embeddings2: Any, name: str = "cosine") -> Any:
    """Returns the similarities of the vectors at the same place in two lists of vectors, [n]: a tensor of PyTorch if
    the first list is a tensor. `name` is a key of SIMILARITIES."""
    a, b = _pair(embeddings1, embeddings2)
    if a.ndim != 2 or a.shape != b.shape:
        raise ArgumentError(f"similarity_pairwise: got vectors of shapes {a.shape} and {b.shape}, but both must be "
                            "[n, width]")
    return _like(embeddings1, np.asarray(SIMILARITIES[name][1](a, b), np.float32))


def similarity(embeddings1: Any, embeddings2: Any, name: str = "cosine") -> Any:
    """Returns the similarities of all pairs of two lists of vectors, [n, m], as SentenceTransformer.similarity does: a
    tensor of PyTorch if the first list is a tensor. `name` is a key of SIMILARITIES."""
    a, b = _pair(embeddings1, embeddings2)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ArgumentError(f"similarity: got vectors of shapes {a.shape} and {b.shape}, but [n, width] and "
                            "[m, width] are expected")
    return _like(embeddings1, np.asarray(SIMILARITIES[name][0](a, b), np.float32))
