"""Factors that many fits of the squared loss share. What comes of them is where certified fits start, or is certified on the data itself.

Everything is done in pieces of some 50 ms: Python hears a Ctrl-C between two of them.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse

PIECE = 5e8  # products of numbers
MOST_FACTORED = 5000  # rows or features, as for the solver newton


def _pieces(count: int, work: float):
    """Slices of ``count`` items, each item as many products as ``work``."""
    step = max(1, int(PIECE / max(work, 1.0)))
    return (slice(begin, begin + step) for begin in range(0, count, step))


def _rows(X, rows: slice) -> np.ndarray:
    """Some rows as a full table of doubles."""
    block = X[rows]
    return (block.toarray() if scipy.sparse.issparse(block) else block).astype(np.float64, copy=False)


def _products(X, weights) -> np.ndarray:
    """[X 1]' diag(weights) [X 1]"""
    d = X.shape[1]
    gram = np.zeros((d + 1, d + 1))
    for rows in _pieces(X.shape[0], (d + 1) ** 2):
        if scipy.sparse.issparse(X):
            block, w = X[rows].astype(np.float64), weights[rows]
            weighted = scipy.sparse.diags(w) @ block
            gram[:d, :d] += (weighted.T @ block).toarray()
            gram[d, :d] += block.T @ w
            gram[d, d] += w.sum()
        else:
            block = np.column_stack([_rows(X, rows), np.ones(len(X[rows]))])
            gram += (block * weights[rows, None]).T @ block
    gram[:d, d] = gram[d, :d]
    return gram


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """The lower factor, in place; LinAlgError where there is none."""
    size, step = len(matrix), 256
    for begin in range(0, size, step):
        end = min(begin + step, size)
        block = np.linalg.cholesky(matrix[begin:end, begin:end])
        matrix[begin:end, begin:end] = block
        below = scipy.linalg.solve_triangular(block, matrix[end:, begin:end].T, lower=True, check_finite=False).T
        matrix[end:, begin:end] = below
        for first in range(end, size, step):
            matrix[first:, first : first + step] -= below[first - end :] @ below[first - end : first - end + step].T
    return matrix


def _solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    half = scipy.linalg.solve_triangular(factor, right, lower=True, check_finite=False)
    return scipy.linalg.solve_triangular(factor, half, lower=True, trans=1, check_finite=False)


def _by_features(X, Y, w, l2, fit_intercept):
    d = X.shape[1]
    sides = np.zeros((d + 1, Y.shape[1]))
    for rows in _pieces(X.shape[0], d * Y.shape[1]):
        weighted = w[rows, None] * Y[rows]
        sides[:d] += X[rows].T @ weighted
        sides[d] += weighted.sum(axis=0)
    gram = _products(X, w)
    gram.flat[:: d + 2] += np.append(np.full(d, l2), 0.0)
    size = d + bool(fit_intercept)
    solutions = _solve(cholesky(gram[:size, :size]), sides[:size])
    return solutions[:d], solutions[d] if fit_intercept else np.zeros(Y.shape[1])


def _by_rows(X, Y, w, l2, fit_intercept):
    """With S = sqrt(w): coef = X'Sp, (S XX' S + l2) p = S (Y - b), and S p adds up to 0 where b is free."""
    X, Y, s = X[w > 0].astype(np.float64, copy=False), Y[w > 0], np.sqrt(w[w > 0])
    n = len(s)
    matrix = np.empty((n, n))
    for rows in _pieces(n, n * X.shape[1]):
        products = X @ X[rows].T
        matrix[:, rows] = products.toarray() if scipy.sparse.issparse(products) else products
    matrix *= s[:, None] * s
    matrix.flat[:: n + 1] += l2
    solutions = _solve(cholesky(matrix), s[:, None] * np.column_stack([Y, np.ones(n)]))
    p, of_ones = solutions[:, :-1], solutions[:, -1]
    b = (s @ p) / (s @ of_ones) if fit_intercept else np.zeros(Y.shape[1])
    a = s[:, None] * (p - np.outer(of_ones, b))
    coefs = np.zeros((X.shape[1], Y.shape[1]))
    for rows in _pieces(n, X.shape[1] * Y.shape[1]):
        coefs += X[rows].T @ a[rows]
    return coefs, b


def pays(X, targets: int, l2: float) -> bool:
    """Whether a factor for all targets is small enough, and cheaper than a fit of each."""
    n, d = X.shape
    size = min(n, d)
    if size > MOST_FACTORED or targets < 2 or (n < d and l2 == 0):
        return False
    products = X.shape[0] * X.shape[1] * size if not scipy.sparse.issparse(X) else X.nnz**2 / max(n, d) + n * d
    # without a factor, fits of sparse data take some 30 passes; those of dense data would each factor their own
    return not scipy.sparse.issparse(X) or size**3 / 3 + products <= 100.0 * targets * X.nnz


def common_solutions(X, Y, weights, l2: float, fit_intercept: bool) -> list[tuple] | None:
    """(coef, intercept) of the ridge of every target by one factorization, or None where that fails."""
    n, d = X.shape
    w = np.full(n, 1 / n) if weights is None else weights / np.sum(weights)
    try:
        coefs, intercepts = (_by_features if d <= n else _by_rows)(X, Y, w, l2, fit_intercept)
    except np.linalg.LinAlgError:
        return None
    if not (np.all(np.isfinite(coefs)) and np.all(np.isfinite(intercepts))):
        return None
    return [(coefs[:, k], intercepts[k] if fit_intercept else None) for k in range(Y.shape[1])]


def triangle(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R and r with at most one row more than features, for which |Rw - r|²/rows = |Xw - y|²/n whatever w is.

    Pivoted, so that columns may depend on each other, and of columns in units of their length, so that small ones count.
    """
    n, d = X.shape
    gram = np.zeros((d + 1, d + 1))
    for rows in _pieces(n, (d + 1) ** 2):
        block = np.column_stack([_rows(X, rows), y[rows]])
        gram += block.T @ block
    unit = np.sqrt(gram.diagonal())
    unit[unit == 0] = 1
    upper, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram / np.outer(unit, unit))
    both = np.empty((rank, d + 1))
    both[:, pivots - 1] = np.triu(upper)[:rank]
    both *= unit * np.sqrt(rank / n)
    return np.ascontiguousarray(both[:, :d]), np.ascontiguousarray(both[:, d])


def path_gaps(X: np.ndarray, y: np.ndarray, coefs: np.ndarray, l1: np.ndarray, l2: np.ndarray, positive: bool):
    """Gaps of elastic nets and their sizes relative to the objective, one for each column of ``coefs``.

    With r = y - Xw and u = X'r/n, s r is a dual point for any s in [0, 1]: the bound is s r'y/n - s² r'r/2n - Σ h(s u), h(v) =
    ((|v| - l1)₊)²/2 l2, or infinity where l2 = 0, so that s must be at most l1/max |u|. With weights that must not be negative, negative v
    cost nothing.
    """
    n = X.shape[0]
    fit, square, u = np.zeros(coefs.shape[1]), np.zeros(coefs.shape[1]), np.zeros(coefs.shape)
    for rows in _pieces(n, coefs.size):
        block = _rows(X, rows)
        r = y[rows, None] - block @ coefs
        square += np.sum(r * r, axis=0) / n
        fit += r.T @ y[rows] / n
        u += block.T @ r / n
    size = np.maximum(u, 0) if positive else np.abs(u)
    primal = square / 2 + l1 * np.abs(coefs).sum(axis=0) + l2 / 2 * np.sum(coefs**2, axis=0)
    scale = np.ones(coefs.shape[1])
    for k in np.flatnonzero(l2 == 0):
        scale[k] = min(1.0, l1[k] / max(size[:, k].max(initial=0), np.finfo(float).tiny)) * (1 - 4e-16)
    excess = np.maximum(scale * size - l1, 0)
    dual = scale * fit - scale**2 * square / 2 - np.sum(excess**2, axis=0) / (2 * np.where(l2 == 0, np.inf, l2))
    gaps = np.maximum(primal - dual, 0)
    return gaps, gaps / np.maximum(np.maximum(np.abs(primal), np.abs(dual)), np.finfo(float).tiny)
