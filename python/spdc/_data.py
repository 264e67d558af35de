"""Arrays and files become data sets of the library: where they lie if they can, else converted once."""

from __future__ import annotations

import os
import weakref

import numpy as np
import scipy.sparse

from . import _core

_MOST_COLUMNS = 2**31

# Sparse matrices of Data that are in use, by the address of their values.
_in_use: weakref.WeakValueDictionary[int, _core.Dataset] = weakref.WeakValueDictionary()


def _floating(dtype: np.dtype) -> np.dtype:
    """float32 or float64: the type itself, or the smaller one that holds every value."""
    if dtype.kind not in "biuf" and dtype.kind != "O":
        raise ValueError(f"X has values of type {dtype}; expected numbers")
    if dtype.kind in "bf" and dtype.itemsize <= 4 or dtype.kind in "iu" and dtype.itemsize <= 2:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def _csr(X) -> _core.Dataset:
    X = X.tocsr()
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension; expected a table of rows and columns")
    if X.shape[1] > _MOST_COLUMNS:
        raise ValueError(f"X has {X.shape[1]} columns; expected at most {_MOST_COLUMNS}")
    try:
        return _view(X)
    except ValueError:
        # The library looks at every entry: asking SciPy first whether columns are out of order or twice would be a second look.
        if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
            raise ValueError(f"X has a column index outside of its {X.shape[1]} columns") from None
        if np.any(np.diff(X.indptr) < 0) or not 0 <= X.indptr[0] <= X.indptr[-1] <= min(len(X.indices), len(X.data)):
            raise  # SciPy would go there
        X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)  # without what X believes of its order
        if X.has_canonical_format:
            raise
        X = X.copy()
        X.sum_duplicates()
        return _view(X)


def _is_same(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays are the same memory."""
    return array.__array_interface__ == other.__array_interface__


def _as_read(X) -> _core.Dataset | None:
    """The matrix of the Data that X comes from, if it does. Its entries are the library's memory, which is read-only and was looked at
    when it was read: a second look would be 1 % of a fit. The offsets are SciPy's copy, which anybody may change."""
    if X.data.flags.writeable:
        return None
    matrix = _in_use.get(X.data.__array_interface__["data"][0])
    if matrix is None or matrix.shape != X.shape:
        return None
    offsets, columns, values = matrix.arrays()
    is_it = _is_same(X.indices, columns) and _is_same(X.data, values) and np.array_equal(X.indptr, offsets)
    return matrix if is_it else None


def _view(X) -> _core.Dataset:
    return _as_read(X) or _core.csr(
        X.shape[1],
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32 if X.indices.dtype.itemsize < 4 else None),
        np.ascontiguousarray(X.data, dtype=_floating(X.dtype)),
    )


def as_dataset(X) -> _core.Dataset:
    """The matrix of an array, a sparse matrix, a frame or a Data."""
    if isinstance(X, Data):
        return X.dataset
    if scipy.sparse.issparse(X):
        return _csr(X)
    if not isinstance(X, np.ndarray):
        X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; expected 2: a table of rows and columns")
    return _core.dense(np.ascontiguousarray(X, dtype=_floating(X.dtype)))


def with_constant(X, value: float):
    """X with one more column."""
    if not scipy.sparse.issparse(X):
        X = np.asarray(X)
    column = np.full((X.shape[0], 1), value, dtype=_floating(X.dtype))
    return scipy.sparse.hstack([X, column], format="csr") if scipy.sparse.issparse(X) else np.hstack([X, column])


def as_numbers(values, name: str, rows: int) -> np.ndarray:
    """One double for every row or feature."""
    array = np.ascontiguousarray(np.asarray(values).ravel(), dtype=np.float64)
    if len(array) != rows:
        raise ValueError(f"{name} has {len(array)} numbers; expected {rows}")
    return array


def as_targets(y, rows: int) -> tuple[np.ndarray, list[str]]:
    """Targets as numbers, and the names of text labels, ascending."""
    array = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"y has {array.ndim} dimensions; expected one target a row")
    names: list[str] = []
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            labels, array = np.unique(array.astype(str), return_inverse=True)
            names = [str(label) for label in labels]
    return as_numbers(array, "y", rows), names


class Data:
    """A data file in memory: ``X, y = spdc.read(path)``, or pass it to ``solve`` as it is.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The features; LIBSVM text is sparse, CSV dense. A view of the library's memory, read-only.
    y : ndarray
        The targets: numbers, or text where the file has text labels.
    weights : ndarray or None
        Row weights, which only .spdc files have.
    feature_names : list of str
        From the header of a CSV file; empty without one.
    """

    def __init__(self, dataset: _core.Dataset):
        self.dataset = dataset
        self._arrays: tuple | None = None

    def _load(self) -> tuple:
        if self._arrays is None:
            ordered = self.dataset.in_user_order()
            alone = ordered.matrix()
            matrix = alone.arrays()
            if isinstance(matrix, tuple):
                offsets, columns, values = matrix
                matrix = scipy.sparse.csr_matrix((values, columns, offsets), shape=ordered.shape)
                matrix.has_canonical_format = True
                _in_use[values.__array_interface__["data"][0]] = alone
            y = ordered.targets
            if ordered.label_names:
                y = np.asarray(ordered.label_names)[y.astype(np.int64)]
            self._arrays = matrix, y
        return self._arrays

    @property
    def X(self):
        return self._load()[0]

    @property
    def y(self) -> np.ndarray:
        return self._load()[1]

    @property
    def weights(self):
        return self.dataset.weights

    @property
    def feature_names(self) -> list[str]:
        return self.dataset.feature_names

    @property
    def shape(self) -> tuple[int, int]:
        return self.dataset.shape

    def __iter__(self):
        return iter(self._load())

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<spdc.Data: {rows} rows, {columns} features, {self.dataset.nonzeros} entries>"


def read(
    path,
    *,
    format: str = "auto",
    index_base: int | None = None,
    features: int = 0,
    label_column: int | str = "",
    threads: int | None = None,
) -> Data:
    """Read LIBSVM text, CSV, TSV or .spdc; plain or compressed with gzip, bzip2, xz or zstd.

    Parameters
    ----------
    path : str or path-like
        The file.
    format : {"auto", "libsvm", "csv", "tsv", "spdc"}, default="auto"
        ``"auto"`` goes by the name and the first line.
    index_base : {0, 1}, optional
        Number of the first feature of LIBSVM text; by default 0 if some index is 0, else 1.
    features : int, default=0
        At least this many columns; an index beyond them is an error. 0: as many as the data have.
    label_column : int or str, default=""
        CSV and TSV: the label's column by name or by number from 1, negative from the end. By default the first.
    threads : int, optional
        Threads that read LIBSVM text; by default all cores.

    Returns
    -------
    Data
        ``X, y = spdc.read(path)`` unpacks it.

    Examples
    --------
    >>> import spdc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.svm")
    >>> _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    >>> X, y = spdc.read(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]], dtype=float32)
    >>> y
    array([ 1., -1.])
    """
    path = os.fsdecode(path)
    try:
        dataset = _core.read(
            path, format, index_base, features, str(label_column), threads or _core.available_cores(), True
        )
    except OSError as error:
        if not os.path.exists(path):
            raise FileNotFoundError(str(error)) from None
        raise
    return Data(dataset)


def load_svmlight(path, *, n_features: int | None = None, dtype=None, zero_based: bool | str = "auto"):
    """Read LIBSVM text as scikit-learn's ``load_svmlight_file`` does, several times faster.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed.
    n_features : int, optional
        Number of columns; by default as many as the data have.
    dtype : numpy dtype, optional
        Type of the values; by default float32 where every value is exact in it, else float64.
    zero_based : bool or "auto", default="auto"
        Whether features count from 0.

    Returns
    -------
    X : csr_matrix
    y : ndarray

    Examples
    --------
    >>> import spdc, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.svm")
    >>> _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    >>> X, y = spdc.load_svmlight(path)
    >>> X.shape
    (2, 3)
    """
    base = None if zero_based == "auto" else (0 if zero_based else 1)
    X, y = read(path, format="libsvm", index_base=base, features=n_features or 0)
    return X.astype(dtype or X.dtype, copy=False), y
