"""Generated data of many shapes, for the benchmarks. Everything is a function of its seed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import sparse

Data = tuple[sparse.csr_matrix, np.ndarray]


def labels_of(scores: np.ndarray, noise: float, random: np.random.Generator) -> np.ndarray:
    """Signs of the scores around their median, a share of them flipped."""
    signs = np.where(scores > np.median(scores), 1.0, -1.0)
    return np.where(random.random(scores.size) < noise, -signs, signs)


def unit_rows(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Every row divided by its length."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(lengths, 1e-300)) @ rows)


def text(count: int, features: int, words: int, seed: int = 1, noise: float = 0.05) -> Data:
    """Bags of words: frequencies fall as 1/rank (Zipf), rows of length 1, some words decide."""
    random = np.random.default_rng(seed)
    lengths = random.poisson(words, count) + 1
    # Inverse of the distribution function of 1/rank on 1..features, by its continuous form.
    ranks = np.exp(random.random(lengths.sum()) * np.log(features)).astype(np.int64)
    columns = np.minimum(ranks, features) - 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = sparse.csr_matrix((np.ones(columns.size), columns, offsets), shape=(count, features))
    rows.sum_duplicates()
    rarity = np.log(count / (1.0 + np.bincount(rows.indices, minlength=features)))
    rows.data = (1 + np.log(rows.data)) * np.maximum(rarity[rows.indices], 0.1)
    rows = unit_rows(rows)
    return rows, labels_of(rows @ random.standard_normal(features), noise, random)


def dense(count: int, features: int, seed: int = 1, noise: float = 0.1) -> Data:
    """Correlated normal features: a few factors and independent noise."""
    random = np.random.default_rng(seed)
    factors = random.standard_normal((count, 4)) @ random.standard_normal((4, features))
    table = random.standard_normal((count, features)) + 0.5 * factors
    scores = table @ random.standard_normal(features)
    return sparse.csr_matrix(table / np.sqrt(features)), labels_of(scores, noise, random)


def write_libsvm(path: Path, data: Data) -> None:
    """LIBSVM text with all digits, so that every program sees the same numbers."""
    rows, targets = data
    rows = sparse.csr_matrix(rows)
    rows.sort_indices()
    rows.eliminate_zeros()
    with open(path, "w", encoding="ascii") as file:
        file.writelines(libsvm_lines(rows, targets))


def libsvm_lines(rows: sparse.csr_matrix, targets: np.ndarray) -> Iterable[str]:
    """One line per row."""
    for i, target in enumerate(targets):
        span = slice(rows.indptr[i], rows.indptr[i + 1])
        pairs = zip(rows.indices[span].tolist(), rows.data[span].tolist(), strict=True)
        yield " ".join([f"{float(target)!r}", *(f"{j + 1}:{v!r}" for j, v in pairs)]) + "\n"


# Shapes for ./run bench robust: small, each with one trait that has broken some solver somewhere.


def tall(seed: int) -> Data:
    """Many rows, few features."""
    return dense(20000, 20, seed)


def square(seed: int) -> Data:
    """As many rows as features, dense."""
    return dense(500, 500, seed)


def wide_dense(seed: int) -> Data:
    """Fewer rows than features, dense."""
    return dense(200, 2000, seed)


def wide_text(seed: int) -> Data:
    """Few documents, many words."""
    return text(300, 20000, 100, seed)


def zipf_text(seed: int) -> Data:
    """Documents."""
    return text(4000, 10000, 40, seed)


def separable_text(seed: int) -> Data:
    """Documents without a wrong label: the optimum goes off to infinity as lambda goes to 0."""
    return text(4000, 20000, 60, seed, noise=0.0)


def near_separable(seed: int) -> Data:
    """Dense, one wrong label in a thousand."""
    return dense(4000, 30, seed, noise=0.001)


def unequal_rows(seed: int) -> Data:
    """Documents whose row norms spread over four orders of magnitude."""
    rows, targets = text(3000, 5000, 40, seed)
    scale = 10 ** np.random.default_rng(seed).normal(0, 0.7, rows.shape[0])
    return sparse.csr_matrix(sparse.diags(scale) @ rows), targets


def unscaled_columns(seed: int) -> Data:
    """Columns from 1e-3 to 1e3."""
    rows, targets = dense(3000, 20, seed)
    return sparse.csr_matrix(rows @ sparse.diags(np.logspace(-3, 3, 20))), targets


def one_huge_column(seed: int) -> Data:
    """One feature a million times the others."""
    rows, targets = dense(3000, 20, seed)
    scale = np.ones(20)
    scale[7] = 1e6
    return sparse.csr_matrix(rows @ sparse.diags(scale)), targets


def unscaled_text(seed: int) -> Data:
    """Word counts as they are: rare words 1, frequent ones hundreds."""
    random = np.random.default_rng(seed)
    rows, targets = text(3000, 5000, 60, seed)
    rows.data = np.ceil(random.pareto(1.2, rows.data.size) + 0.5)
    return rows, targets


def proportional_columns(seed: int) -> Data:
    """Every column three times: as it is, the same again, and times -5."""
    rows, targets = text(2000, 1500, 30, seed)
    return sparse.csr_matrix(sparse.hstack([rows, rows, -5 * rows])), targets


def constant_and_empty_columns(seed: int) -> Data:
    """Columns of ones, of hundreds, and with nothing in them."""
    rows, targets = dense(2000, 10, seed)
    ones = np.ones((rows.shape[0], 1))
    parts = [rows, ones, 100 * ones, sparse.csr_matrix((rows.shape[0], 50))]
    return sparse.csr_matrix(sparse.hstack(parts)), targets


def far_from_zero(seed: int) -> Data:
    """Columns with mean 100 and deviation 1."""
    rows, targets = dense(3000, 15, seed)
    return sparse.csr_matrix(rows.toarray() + 100), targets


def imbalanced(seed: int) -> Data:
    """One positive in a hundred."""
    random = np.random.default_rng(seed)
    rows, _ = dense(10000, 30, seed)
    scores = rows @ random.standard_normal(30) + 0.3 * random.standard_normal(10000)
    return rows, np.where(scores > np.quantile(scores, 0.99), 1.0, -1.0)


def duplicated_rows(seed: int) -> Data:
    """Every document twenty times, some with the other label."""
    rows, targets = text(300, 2000, 40, seed)
    random = np.random.default_rng(seed)
    picked = random.integers(0, 300, 6000)
    flips = np.where(random.random(6000) < 0.1, -1.0, 1.0)
    return rows[picked], targets[picked] * flips


def near_copies(seed: int) -> Data:
    """Half the documents are those before them but for a word, as where long ones were cut up or quote one another."""
    random = np.random.default_rng(seed)
    frequencies = np.arange(1, 20001) ** -0.8
    frequencies /= frequencies.sum()
    rows: list[np.ndarray] = []
    for _ in range(8000):
        words = random.choice(20000, 40, p=frequencies)
        if rows and random.random() < 0.5:
            words = np.concatenate([random.permutation(rows[-1])[1:], words[:1]])
        rows.append(np.unique(words))
    offsets = np.concatenate([[0], np.cumsum([row.size for row in rows])])
    columns = np.concatenate(rows)
    counts = sparse.csr_matrix((1 + 0.03 * (columns % 11), columns, offsets), shape=(8000, 20000))
    return unit_rows(counts), labels_of(counts @ random.standard_normal(20000), 0.05, random)


def one_hot(seed: int) -> Data:
    """Categories as zeros and ones, with linear dependence among the columns."""
    random = np.random.default_rng(seed)
    sizes = [2, 3, 5, 8, 13, 21, 34]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    columns = np.stack([random.integers(0, size, 10000) for size in sizes], axis=1) + starts
    offsets = np.arange(0, columns.size + 1, len(sizes))
    parts = (np.ones(columns.size), columns.ravel(), offsets)
    rows = sparse.csr_matrix(parts, shape=(10000, sum(sizes)))
    scores = rows @ random.standard_normal(sum(sizes))
    return rows, labels_of(scores, 0.15, random)


def nested_categories(seed: int) -> Data:
    """Categories with many values, most of them rare, some of which imply others: towns, counties, states."""
    random = np.random.default_rng(seed)
    towns, streets = (
        np.minimum(random.pareto(1.1, 30000) * size / 50, size - 1).astype(np.int64)
        for size in (3000, 800)
    )
    hours = random.integers(0, 24, 30000)
    fields = (towns, towns // 10, towns // 100, streets, hours)
    found = [np.unique(field, return_inverse=True) for field in fields]
    sizes = [values.size for values, _ in found]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    columns = np.stack([places for _, places in found], axis=1) + starts
    offsets = np.arange(0, columns.size + 1, len(sizes))
    parts = (np.ones(columns.size), columns.ravel(), offsets)
    rows = sparse.csr_matrix(parts, shape=(30000, sum(sizes)))
    return rows, labels_of(rows @ random.standard_normal(sum(sizes)), 0.15, random)


def tall_counts(seed: int) -> Data:
    """A few words each of 2500, twenty times as many documents, unequal counts."""
    random = np.random.default_rng(seed)
    rows, _ = text(50000, 2500, 8, seed)
    rows.data = np.ceil(4 * random.exponential(1.0, rows.data.size)) / 4
    return rows, labels_of(rows @ random.standard_normal(2500), 0.2, random)


def word_counts(seed: int) -> Data:
    """How often words occur in texts of unequal length: a few words are most of all squares, though not of every row."""
    random = np.random.default_rng(seed)
    lengths = 20 + (40 * random.pareto(1.3, 5000)).astype(np.int64).clip(0, 4000)
    ranks = np.exp(random.random(lengths.sum()) * np.log(8000)).astype(np.int64) - 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = sparse.csr_matrix((np.ones(ranks.size), ranks, offsets), shape=(5000, 8000))
    rows.sum_duplicates()
    return rows, labels_of(unit_rows(rows) @ random.standard_normal(8000), 0.05, random)


def common_mean(seed: int) -> Data:
    """Dense rows, fewer than features, that have a large mean in common."""
    rows, targets = dense(500, 1000, seed)
    mean = 10 * np.random.default_rng(seed).standard_normal(1000) / np.sqrt(1000)
    return sparse.csr_matrix(rows.toarray() + mean), targets


def mixture(seed: int) -> Data:
    """A few dense numbers beside many words."""
    rows, targets = text(3000, 5000, 30, seed)
    numbers, _ = dense(3000, 8, seed)
    return sparse.csr_matrix(sparse.hstack([10 * numbers, rows])), targets


def few_rows(seed: int) -> Data:
    """Ten rows."""
    return dense(10, 4, seed)


SHAPES = (
    tall, square, wide_dense, wide_text, zipf_text, separable_text, near_separable, unequal_rows,
    unscaled_columns, one_huge_column, unscaled_text, proportional_columns,
    constant_and_empty_columns, far_from_zero, imbalanced, duplicated_rows, near_copies, one_hot,
    nested_categories, tall_counts, word_counts, common_mean, mixture, few_rows,
)  # fmt: skip


def regression(data: Data, seed: int) -> Data:
    """The same rows with numbers to predict, some of them far out."""
    rows, _ = data
    random = np.random.default_rng(seed + 1000)
    scale = np.sqrt(np.asarray(rows.multiply(rows).mean(axis=0)).ravel())
    weights = random.standard_normal(rows.shape[1]) / np.maximum(scale, 1e-300) * (scale > 0)
    scores = rows @ weights
    noise = random.standard_t(3, scores.size) * 0.3 * scores.std()
    return rows, (scores + noise) / max(float(scores.std()), 1e-300)


def bundled() -> dict[str, Data]:
    """The data sets that scikit-learn carries with it, unscaled."""
    from sklearn import datasets

    names = ("iris", "wine", "breast_cancer", "digits", "diabetes")
    sets = {}
    for name in names:
        table, targets = getattr(datasets, f"load_{name}")(return_X_y=True)
        sets[name] = (sparse.csr_matrix(table), targets.astype(float))
    return sets
