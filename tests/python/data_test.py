"""What may come in as X: every kind gives the same answer, and the usual ones are not copied."""

import gc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn.datasets
from conftest import ESTIMATORS

import spdc


@pytest.fixture
def table(rng):
    X = rng.integers(-3, 4, size=(80, 7)).astype(np.float64)
    X[::9] = 0  # empty rows
    X[:, 3] = 0  # an empty column
    y = np.sign(X[:, 0] + 0.1 + rng.normal(size=80))
    return X, y


KINDS = {
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "int8": lambda X: X.astype(np.int8),
    "int64": lambda X: X.astype(np.int64),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "big endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "object": lambda X: X.astype(object),
    "pandas": pd.DataFrame,
    "polars": lambda X: pl.DataFrame(X),
    "csr_matrix": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
    "csc_matrix": scipy.sparse.csc_matrix,
    "coo_array": scipy.sparse.coo_array,
    "csr float32": lambda X: scipy.sparse.csr_matrix(X.astype(np.float32)),
    "csr int": lambda X: scipy.sparse.csr_matrix(X.astype(np.int32)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copy", ["auto", False])
def test_every_kind_gives_the_same_answer(kind, copy, table):
    X, y = table
    expected = spdc.solve(X, y, l2=0.1, intercept=True, tolerance=1e-10)
    result = spdc.solve(KINDS[kind](X), y, l2=0.1, intercept=True, tolerance=1e-10, copy=copy)
    np.testing.assert_allclose(result.coef, expected.coef, atol=1e-5)
    assert result.primal == pytest.approx(expected.primal, rel=1e-9)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_index_types_unsorted_and_duplicate_entries(index, make, table):
    X, y = table
    clean = scipy.sparse.csr_matrix(X)
    expected = spdc.solve(clean, y, l2=0.1, tolerance=1e-8)
    messy = clean.copy()
    for i in range(messy.shape[0]):  # columns backwards
        part = slice(messy.indptr[i], messy.indptr[i + 1])
        messy.indices[part] = messy.indices[part][::-1].copy()
        messy.data[part] = messy.data[part][::-1].copy()
    twice = np.repeat(messy.indices, 2).astype(index)
    halves = make((np.repeat(messy.data / 2, 2), twice, (2 * messy.indptr).astype(index)), shape=clean.shape)
    halves.indices, halves.indptr = halves.indices.astype(index), halves.indptr.astype(index)
    before = halves.indices.copy()
    result = spdc.solve(halves, y, l2=0.1, tolerance=1e-8)
    assert np.array_equal(result.coef, expected.coef)
    assert np.array_equal(halves.indices, before)  # the caller's matrix is as it was
    assert halves.indices.dtype == index


def test_boolean_arrays(rng):
    X = rng.random((60, 5)) < 0.5
    y = np.where(X[:, 0] ^ (rng.random(60) < 0.1), 1, -1)
    expected = spdc.solve(X.astype(float), y, l2=0.1)
    assert np.array_equal(spdc.solve(X, y, l2=0.1).coef, expected.coef)


def test_targets_of_any_kind(table):
    X, y = table
    expected = spdc.solve(X, y, l2=0.1)
    kinds = [y.astype(int), y > 0, list(y), pd.Series(y), pl.Series(y), y[:, None], y.astype(object), np.where(y > 0, "p", "n")]
    for kind in kinds:
        assert np.array_equal(spdc.solve(X, kind, l2=0.1).coef, expected.coef)


def test_read_only_memory_maps(tmp_path, table):
    X, y = table
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.array_equal(spdc.solve(mapped, y).coef, spdc.solve(X, y).coef)
    assert np.array_equal(spdc.Ridge().fit(mapped, y).coef_, spdc.Ridge().fit(X, y).coef_)


@pytest.fixture
def file_read(tmp_path, table):
    """A sparse matrix and targets that spdc.read has read."""
    path = tmp_path / "table.svm"
    sklearn.datasets.dump_svmlight_file(*table, str(path), zero_based=False)
    return spdc.read(path, features=table[0].shape[1])


def test_what_was_read_is_not_looked_at_again(file_read, monkeypatch):
    X, y = file_read
    expected = [spdc.solve(X.copy(), y).coef, spdc.LogisticRegression().fit(X.copy(), y).coef_]

    def refuse(*arguments):
        raise AssertionError("a second look")

    monkeypatch.setattr(spdc._core, "csr", refuse)
    assert np.array_equal(spdc.solve(X, y).coef, expected[0])
    assert np.array_equal(spdc.LogisticRegression().fit(X, y).coef_, expected[1])
    with pytest.raises(AssertionError, match="a second look"):
        spdc.solve(X.copy(), y)


def wrong_offsets(X):
    X.indptr[5] += 1000


def wrong_values(X):
    X.data = np.full_like(X.data, np.nan)


def wrong_columns(X):
    X.indices = X.indices + X.shape[1]


def fewer_columns(X):
    X._shape = (X.shape[0], 2)


@pytest.mark.parametrize("change", [wrong_offsets, wrong_values, wrong_columns, fewer_columns])
def test_what_was_read_and_changed_is_looked_at(change, file_read):
    X, y = file_read
    spdc.solve(X, y)
    change(X)
    with pytest.raises(ValueError, match="matrix: |column index outside"):
        spdc.solve(X, y)


def test_parts_of_what_was_read(file_read):
    """The same values, with other offsets or in another shape, are another matrix."""
    X, y = file_read
    make = lambda offsets, columns: scipy.sparse.csr_matrix((X.data, X.indices, offsets), shape=(len(offsets) - 1, columns))
    for part in (make(X.indptr[:61], X.shape[1]), make(X.indptr, X.shape[1] + 3)):
        expected = spdc.solve(part.toarray(), y[: part.shape[0]], l2=0.1, tolerance=1e-9)
        result = spdc.solve(part, y[: part.shape[0]], l2=0.1, tolerance=1e-9)
        np.testing.assert_allclose(result.coef, expected.coef, atol=1e-5)


def test_what_was_read_goes_with_its_arrays(file_read):
    known = spdc._data._in_use
    kept = file_read.X.data
    address = kept.__array_interface__["data"][0]
    file_read._arrays = file_read.dataset = None
    gc.collect()
    assert address in known  # its values are in use
    del kept
    gc.collect()
    assert address not in known


def test_empty_and_misshapen():
    for X in (np.zeros((0, 3)), np.zeros(3), np.zeros((2, 2, 2))):
        with pytest.raises(ValueError):
            spdc.solve(X, np.zeros(len(X)), loss="squared")
    with pytest.raises(ValueError, match="numbers"):
        spdc.solve(np.ones((2, 2), dtype=complex), [0, 1])
    with pytest.raises(ValueError):
        spdc.solve(np.array([["a", "b"]]), [0])
    no_columns = spdc.solve(np.zeros((4, 0)), [1.0, 2, 3, 4], loss="squared", intercept=True)
    assert no_columns.intercept == pytest.approx(2.5)


@pytest.mark.parametrize("index", [2**32 + 1, 2**31, 3, -1])
def test_column_indices_that_do_not_fit_are_an_error(index):
    X = scipy.sparse.csr_matrix(np.ones((2, 3)))
    X.indices = X.indices.astype(np.int64)
    X.indices[-1] = index
    with pytest.raises(ValueError, match="column index outside of its 3 columns"):
        spdc.solve(X, [1, -1])


@pytest.mark.parametrize("place, offset", [(5, 10**6), (5, -1), (0, -3), (-1, 10**6)])
@pytest.mark.parametrize("fit", [spdc.solve, lambda X, y: spdc.LogisticRegression().fit(X, y)])
def test_offsets_that_lead_astray_are_an_error(fit, place, offset, table):
    X, y = table
    X = scipy.sparse.csr_matrix(X)
    X.indptr[place] = offset
    with pytest.raises(ValueError, match="matrix: .*offset"):
        fit(X, y)


@pytest.mark.parametrize("kind", ["float32", "csr_array"])
def test_rows_of_weight_zero_without_a_copy(kind, table):
    X, y = table
    weights = np.arange(len(y)) % 3.0
    kept = weights > 0
    y = np.where(kept, y, 5)  # a label that no row with a weight has
    X, kept_X = KINDS[kind](X), KINDS[kind](X[kept])
    options = {"l2": 0.1, "intercept": True, "tolerance": 1e-10, "copy": False}
    expected = spdc.solve(kept_X, y[kept], weights=weights[kept], **options)
    result = spdc.solve(X, y, weights=weights, **options)
    assert result.converged and result.classes.tolist() == [-1, 1]
    np.testing.assert_allclose(result.coef, expected.coef, atol=1e-5)
    assert result.primal == pytest.approx(expected.primal, rel=1e-9)
    assert spdc.verify(X, y, result).certified
    y_of_two = np.where(kept, y, 1)
    models = [spdc.LogisticRegression(tol=1e-10, copy=copy).fit(X, y_of_two, weights) for copy in ("auto", False)]
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, atol=1e-5)


@pytest.mark.parametrize("scaling", [0.3, 20.0])
@pytest.mark.parametrize(
    "name, parameters",
    [
        ("LinearSVC", {"C": 0.1}),
        ("LinearSVC", {"C": 0.1, "penalty": "l1"}),
        ("LinearSVR", {"C": 0.1, "epsilon": 0.2}),
        ("LogisticRegression", {"C": 0.1, "solver": "liblinear"}),
        ("LogisticRegression", {"C": 0.1, "solver": "liblinear", "l1_ratio": 1.0}),
    ],
)
def test_a_scaled_intercept_without_a_copy(name, parameters, scaling, table):
    X, y = table
    make = lambda copy: getattr(spdc, name)(**parameters, intercept_scaling=scaling, tol=1e-8, max_iter=10**5, copy=copy)
    copied, in_place = make("auto").fit(X, y + 3), make(False).fit(X, y + 3)
    np.testing.assert_allclose(in_place.coef_, copied.coef_, atol=1e-3)
    np.testing.assert_allclose(in_place.intercept_, copied.intercept_, atol=1e-3)
    assert in_place.result_.primal == pytest.approx(copied.result_.primal, rel=1e-7)
    assert in_place.relative_gap_ <= 1e-8
    assert spdc.verify(X, y + 3, in_place.result_).certified


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["float32", "csr_array", "fortran"])
def test_estimators_speak_of_nan_as_scikit_learn_does(kind, value, table):
    X, y = table
    X = X.copy()
    X[7, 2] = value
    sentence = "Input X contains NaN.\nLogisticRegression does not accept" if np.isnan(value) else "Input X contains infinity"
    with pytest.raises(ValueError, match=f"(?s){sentence}.*row 7, column 2"):
        spdc.LogisticRegression().fit(KINDS[kind](X), y)
    with pytest.raises(ValueError, match="row 7, column 2"):
        spdc.solve(KINDS[kind](X), y)


def unseen(X, value, dtype, indices):
    """CSR with a value in row 7, column 2, whose finiteness the library leaves to who reads it first."""
    X = X.copy()
    X[7, 2] = value
    matrix = scipy.sparse.csr_matrix(X.astype(dtype))
    matrix.indices, matrix.indptr = matrix.indices.astype(indices), matrix.indptr.astype(indices)
    return matrix


@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", spdc.SOLVERS)
def test_every_solver_sees_what_is_not_finite(solver, dtype, indices, table):
    X, y = table
    penalty = {"l1": 0.01} if solver == "working_set" else {}
    for value in (np.nan, np.inf, -np.inf):
        for presolve in ("auto", True):
            with pytest.raises(ValueError, match="row 7, column 2: value -?(nan|inf), expected a finite number"):
                spdc.solve(unseen(X, value, dtype, indices), y, solver=solver, presolve=presolve, **penalty)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator_sees_what_is_not_finite(name, table):
    X, y = table
    for value, sentence in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=f"(?s)Input X contains {sentence}.*row 7, column 2"):
            getattr(spdc, name)().fit(unseen(X, value, np.float64, np.int32), y + 1)


def test_what_reads_values_besides_solvers_sees_what_is_not_finite(table):
    X, y = table
    bad = unseen(X, np.nan, np.float64, np.int32)
    with pytest.raises(ValueError, match="row 7, column 2"):
        spdc.solve(bad, y, l1="0.1max")
    with pytest.raises(ValueError, match="row 7, column 2"):
        spdc.solve(bad, y, weights=np.arange(len(y)) % 2)
    with pytest.raises(ValueError, match="row 7, column 2"):
        spdc.verify(bad, y, spdc.solve(X, y))


def test_values_whose_squares_are_infinite_are_finite(table):
    X, y = table
    spdc.solve(unseen(X, 1e200, np.float64, np.int32), y, max_passes=1)
    spdc.solve(unseen(X, 3e38, np.float32, np.int32), y, max_passes=1)
