"""The estimators' manners: scikit-learn's own checks, its tools, and the certificate's attributes."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from conftest import CLASSIFIERS, ESTIMATORS, targets_for
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import spdc
from spdc.estimators import _factors
from spdc.estimators._classifiers import encoded

# what the twins skip, too
SKIPPED = ("SCIPY_ARRAY_API is not set", "does not have a predict_proba method")


@pytest.fixture
def model(name):
    return getattr(spdc, name)()


@pytest.fixture
def fitted(name, rng):
    X = rng.normal(size=(80, 5))
    return getattr(spdc, name)().fit(X, targets_for(name, X, rng)), X


def test_check_estimator(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, on_fail=None)
    assert len(results) > 40
    wrong = [
        (result["check_name"], result["status"], repr(result["exception"]))
        for result in results
        if result["status"] != "passed"
        and not (result["status"] == "skipped" and any(words in str(result["exception"]) for words in SKIPPED))
    ]
    assert not wrong


def test_parameters_are_scikit_learns(name, model):
    twin = ESTIMATORS[name]()
    ours = model.get_params()
    for parameter, value in twin.get_params().items():
        assert parameter in ours
        differs = parameter == "solver"  # the library's auto
        assert differs or ours[parameter] == value
    assert {"n_jobs", "copy", "tol", "max_iter"} <= set(ours)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_attributes_have_the_twins_shapes(name, fit_intercept, rng):
    X = rng.normal(size=(60, 4))
    three = [np.digitize(X[:, 0], [-0.5, 0.5])] if name in CLASSIFIERS else []
    for y in [targets_for(name, X, rng), *three]:
        ours, twin = (kind(fit_intercept=fit_intercept).fit(X, y) for kind in (getattr(spdc, name), ESTIMATORS[name]))
        expected = {attribute: value for attribute, value in vars(twin).items() if attribute.endswith("_") and value is not None}
        assert len(expected) >= 3
        for attribute, value in expected.items():
            assert np.shape(getattr(ours, attribute)) == np.shape(value), attribute
        assert ours.predict(X).shape == twin.predict(X).shape


def test_certificate_attributes(fitted):
    model, _ = fitted
    assert model.stop_reason_ == "gap_reached" and 0 <= model.relative_gap_ <= model.tol
    assert model.dual_gap_ >= 0 and model.n_iter_ >= 1
    assert isinstance(model.result_, spdc.Result) and model.result_.converged


def test_scores_as_well_as_the_twin(name, fitted, rng):
    model, X = fitted
    y = targets_for(name, X, np.random.default_rng(5))
    twin = ESTIMATORS[name](**({"max_iter": 10000} if hasattr(model, "warm_start") else {})).fit(X, y)
    assert model.fit(X, y).score(X, y) == pytest.approx(twin.score(X, y), abs=0.03)


def test_warns_with_the_gap_that_was_reached(rng):
    X = rng.normal(size=(300, 50)) * np.logspace(-2, 2, 50)
    y = targets_for("LogisticRegression", X, rng)
    model = spdc.LogisticRegression(solver="spdc", C=1e4, max_iter=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .*, above tol=1e-09: the pass limit .* raise max_iter or tol$"):
        model.fit(X, y)
    assert model.stop_reason_ == "pass_limit" and model.relative_gap_ > 1e-9 and model.n_iter_ == 2


def test_pickle_clone_and_joblib(fitted, tmp_path):
    model, X = fitted
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X)) and again.relative_gap_ == model.relative_gap_
    joblib.dump(model, tmp_path / "model")
    assert np.array_equal(joblib.load(tmp_path / "model").predict(X), model.predict(X))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params() and not hasattr(fresh, "coef_")


def test_pipeline_search_and_names(name, model, rng):
    X = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
    y = targets_for(name, X.to_numpy(), rng)
    assert list(model.fit(X, y).feature_names_in_) == list("abcd")
    parameter = "C" if hasattr(model, "C") else "alpha"
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {f"{name.lower()}__{parameter}": [0.01, 1.0]}, cv=3)
    search.fit(X, y)
    assert search.best_estimator_[-1].relative_gap_ <= model.tol
    framed = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(model)).fit(X, y)
    assert list(framed[-1].feature_names_in_) == list("abcd")


def test_fits_in_processes(name, model, rng):
    X = rng.normal(size=(60, 3))
    y = targets_for(name, X, rng)
    one = cross_val_score(model, X, y, cv=3)
    two = cross_val_score(model, X, y, cv=3, n_jobs=2)
    assert np.array_equal(one, two)


def test_metadata_routing(name, model, rng):
    X = rng.normal(size=(60, 3))
    y = targets_for(name, X, rng)
    weights = rng.integers(1, 4, 60).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        routed = pipeline.fit(X, y, sample_weight=weights)[-1]
    direct = clone(model).fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    assert np.array_equal(routed.coef_, direct.coef_)


def test_sample_weights_are_repeated_rows(name, rng):
    X = rng.normal(size=(50, 4))
    y = targets_for(name, X, rng)
    weights = rng.integers(0, 4, 50)
    tight = getattr(spdc, name)(tol=1e-12 if name != "QuantileRegressor" else 1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = clone(tight).fit(X, y, sample_weight=weights)
        two = clone(tight).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=2e-4)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=2e-3)


def test_sparse_is_dense_and_float32_is_close(name, rng):
    X = rng.normal(size=(100, 8)) * (rng.random((100, 8)) < 0.4)
    y = targets_for(name, X, rng)
    dense = getattr(spdc, name)(tol=1e-6).fit(X, y)
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        np.testing.assert_allclose(getattr(spdc, name)(tol=1e-6).fit(kind(X), y).coef_, dense.coef_, atol=2e-2)
    single = getattr(spdc, name)(tol=1e-6).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, dense.coef_, atol=2e-2)


def test_same_bits_at_any_number_of_jobs(name, rng):
    X = rng.normal(size=(200, 10))
    y = targets_for(name, X, rng)
    fits = [getattr(spdc, name)(n_jobs=jobs).fit(X, y) for jobs in (None, 1, 2, 4, -1)]
    assert all(np.array_equal(fit.coef_, fits[0].coef_) for fit in fits)


def test_random_state_is_the_seed(rng):
    X = rng.normal(size=(300, 40))
    y = targets_for("LinearSVC", X, rng)
    fits = [spdc.LinearSVC(solver="spdc_fast", random_state=s).fit(X, y).coef_ for s in (None, None, 3, 3, 4)]
    assert np.array_equal(fits[0], fits[1]) and np.array_equal(fits[2], fits[3])
    assert not np.array_equal(fits[2], fits[4])
    state = np.random.RandomState(0)
    assert spdc.LinearSVC(solver="spdc_fast", random_state=state).fit(X, y).relative_gap_ <= 1e-4


@pytest.mark.parametrize("name", ["LogisticRegression", "Lasso", "ElasticNet", "HuberRegressor", "PoissonRegressor"])
def test_warm_start(name, rng):
    X = rng.normal(size=(200, 20))
    y = targets_for(name, X, rng)
    model = getattr(spdc, name)(warm_start=True, tol=1e-7).fit(X, y)
    cold = model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < max(cold, 2) and model.relative_gap_ <= 1e-7
    for rows, columns in ((150, 20), (200, 12)):
        model.fit(X[:rows, :columns], y[:rows])
        assert model.relative_gap_ <= 1e-7
    model.set_params(fit_intercept=False).fit(X, y)
    assert model.relative_gap_ <= 1e-7


def test_huber_fits_again_where_it_ended():
    for seed in (0, 4, 5, 6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3))
        y = X @ [1.0, 2.0, 3.0] + rng.normal(size=60)
        model = spdc.HuberRegressor(warm_start=True).fit(X, y)
        scale = model.scale_
        for _ in range(3):
            assert model.fit(X, y).scale_ == pytest.approx(scale, rel=1e-3)


@pytest.mark.parametrize("name", ["Ridge", "Lasso", "ElasticNet"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_column_as_the_target(name, fit_intercept, rng):
    X, y = rng.normal(size=(60, 5)), rng.normal(size=(60, 1))
    ours, twin = (kind(alpha=0.1, fit_intercept=fit_intercept).fit(X, y) for kind in (getattr(spdc, name), ESTIMATORS[name]))
    assert ours.coef_.shape == twin.coef_.shape and ours.predict(X).shape == twin.predict(X).shape
    if name == "Ridge":
        assert np.shape(ours.intercept_) == np.shape(twin.intercept_)


@pytest.mark.parametrize("name", ["Ridge", "Lasso", "ElasticNet"])
def test_several_targets(name, rng):
    X, Y = rng.normal(size=(60, 5)), rng.normal(size=(60, 3))
    model = getattr(spdc, name)(alpha=0.1).fit(X, Y)
    assert model.coef_.shape == (3, 5) and model.intercept_.shape == (3,) and model.predict(X).shape == (60, 3)
    assert model.dual_gap_.shape == model.relative_gap_.shape == model.n_iter_.shape == (3,)
    for k in range(3):
        alone = getattr(spdc, name)(alpha=0.1).fit(X, Y[:, k])
        np.testing.assert_allclose(alone.coef_, model.coef_[k], rtol=1e-10, atol=1e-12)
    if name == "Ridge":
        each = spdc.Ridge(alpha=[0.1, 1.0, 10.0]).fit(X, Y)
        np.testing.assert_allclose(each.coef_[0], model.coef_[0], rtol=1e-10, atol=1e-12)
        assert not np.allclose(each.coef_[1], model.coef_[1], rtol=1e-3)
        with pytest.raises(ValueError, match="penalties"):
            spdc.Ridge(alpha=[1.0, 2.0]).fit(X, Y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(5000, 20), (60, 400)])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_several_targets_of_ridge_share_one_factorization(kind, shape, dtype, fit_intercept, weighted, rng, monkeypatch):
    monkeypatch.setattr(_factors, "PIECE", 1e5)  # more than one piece of everything
    rows, features = shape
    X = (rng.normal(size=shape) + 3).astype(dtype)
    if kind is not np.asarray:
        X *= rng.random(shape) < 0.2
    Y = X @ rng.normal(size=(features, 4)) + rng.normal(size=(rows, 4))
    X = kind(X)
    weights = rng.integers(0, 3, rows).astype(float) if weighted else None
    options = {"alpha": 0.5, "fit_intercept": fit_intercept, "tol": 1e-10}
    model = spdc.Ridge(**options).fit(X, Y, weights)
    assert all(result.passes == 0 for result in model.result_)  # certified where they start
    assert np.all(model.relative_gap_ <= 1e-10)
    for k in range(4):
        alone = spdc.Ridge(**options).fit(X, Y[:, k], weights)
        assert alone.result_.passes > 0
        np.testing.assert_allclose(model.coef_[k], alone.coef_, atol=1e-6)
        np.testing.assert_allclose(np.ravel(model.intercept_)[k if fit_intercept else 0], alone.intercept_, atol=1e-5)


def test_a_factor_in_pieces_is_numpys(rng):
    for size in (1, 255, 256, 257, 700):
        a = rng.normal(size=(size, size))
        matrix = a @ a.T + size * np.eye(size)
        np.testing.assert_allclose(np.tril(_factors.cholesky(matrix.copy())), np.linalg.cholesky(matrix), atol=1e-10)
        for place in (0, size // 2, size - 1):
            spoilt = matrix.copy()
            spoilt[place, place] = -1.0
            with pytest.raises(np.linalg.LinAlgError):
                _factors.cholesky(spoilt)


def test_a_factor_is_shared_where_that_pays(rng):
    dense, sparse = np.zeros((50, 30)), scipy.sparse.random(3000, 1000, 0.01, format="csr", random_state=1)
    assert _factors.pays(dense, 2, 0.0) and _factors.pays(dense.T, 2, 0.1)
    assert not _factors.pays(dense, 1, 0.1) and not _factors.pays(dense.T, 2, 0.0)  # wide, and no penalty: no factor
    assert not _factors.pays(sparse, 2, 0.1) and _factors.pays(sparse, 1000, 0.1)
    assert not _factors.pays(scipy.sparse.random(6000, 6000, 1e-3, format="csr", random_state=1), 10**9, 0.1)


def test_several_targets_of_ridge_without_a_common_factorization(rng):
    """Singular, or so ill-conditioned that its solution is not good enough: the solver goes on."""
    X, Y = rng.normal(size=(200, 5)), rng.normal(size=(200, 3))
    for table, alpha in ((X[:, [0, 0, 1, 2, 2]], 0.0), (X[:, [0, 0, 1, 2, 2]] + 1e6, 1e-3)):
        model = spdc.Ridge(alpha=alpha, tol=1e-6).fit(table, Y)
        assert np.all(model.relative_gap_ <= 1e-6)
    assert min(result.passes for result in model.result_) > 0
    assert max(result.passes for result in spdc.Ridge(alpha=[1.0, 2.0, 3.0]).fit(X, Y).result_) > 0
    assert max(result.passes for result in spdc.Ridge(solver="spdc").fit(X, Y).result_) > 0


def test_three_classes_and_probabilities():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = spdc.LogisticRegression(tol=1e-8).fit(X, names)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)
    assert model.coef_.shape == (3, 4) and model.decision_function(X).shape == (150, 3)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    rest = spdc.LogisticRegression(tol=1e-8).fit(X, names == "virginica")
    np.testing.assert_allclose(model.coef_[2], rest.coef_[0], atol=1e-3)
    two = spdc.LogisticRegression().fit(X[:100], names[:100]).predict_proba(X[:100])
    assert two.shape == (100, 2) and np.all((two[:, 1] > 0.5) == (names[:100] == "versicolor"))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.int64, np.float32, np.float64, "U5"])
@pytest.mark.parametrize("values", [[0, 1], [1, 0], [1], [0, 1, 1, 0, 2], [2, 0, 1]])
def test_labels_are_coded_as_unique_codes_them(dtype, values):
    y = np.array(values * 3).astype(dtype)
    for found, expected in zip(encoded(y), np.unique(y, return_inverse=True)):
        assert np.array_equal(found, expected)
    assert encoded(y)[0].dtype == y.dtype


def test_spelled_numbers_are_numbers(name, model, rng):
    X = rng.normal(size=(40, 2))
    y = rng.poisson(3.0, size=40)
    if name not in CLASSIFIERS:
        assert np.array_equal(clone(model).fit(X, y.astype(str)).coef_, model.fit(X, y).coef_)
        with pytest.raises(ValueError, match="could not convert string to float"):
            model.fit(X, np.where(y > 3, "many", "few"))


def test_numbers_are_no_labels(rng):
    for y in (rng.normal(size=40), np.repeat([0.5, 1.0], 20), np.repeat([1.0, 0.5], 20)):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            spdc.LogisticRegression().fit(rng.normal(size=(40, 2)), y)


def test_names_of_an_earlier_fit_are_forgotten(name, model, rng):
    X = rng.normal(size=(40, 3))
    y = targets_for(name, X, rng)
    model.fit(pd.DataFrame(X, columns=list("abc")), y)
    model.fit(X[:, :2], y)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.predict(X)


def test_class_weights(rng):
    X = rng.normal(size=(100, 3))
    y = np.where(X[:, 0] > 1, 1, 0)
    for name in CLASSIFIERS:
        by_class = getattr(spdc, name)(class_weight={1: 5.0}, tol=1e-8).fit(X, y)
        by_row = getattr(spdc, name)(tol=1e-8).fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
        assert np.array_equal(by_class.coef_, by_row.coef_)
        balanced = getattr(spdc, name)(class_weight="balanced").fit(X, y)
        assert balanced.predict(X).sum() > getattr(spdc, name)().fit(X, y).predict(X).sum()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_balanced_weights_count_sample_weights_as_the_twin_does(name, rng):
    X = rng.normal(size=(100, 3))
    y = np.where(X[:, 0] + rng.normal(size=100) > 1, "yes", "no")
    weights = np.where(y == "yes", 4.0, 1.0) * rng.integers(0, 3, 100)
    ours = getattr(spdc, name)(class_weight="balanced", tol=1e-12).fit(X, y, weights)
    twin = ESTIMATORS[name](class_weight="balanced", tol=1e-10, max_iter=100000).fit(X, y, weights)
    np.testing.assert_allclose(np.ravel(ours.coef_), np.ravel(twin.coef_), atol=1e-5)


def test_three_classes_with_weights_weigh_every_row(rng):
    """LinearSVC's twin weighs the rows of the one class, and none of the rest."""
    X = rng.normal(size=(150, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=150), [-0.5, 0.8])
    weights = np.array([3.0, 0.5, 2.0])
    ours = spdc.LinearSVC(class_weight=dict(enumerate(weights)), tol=1e-12).fit(X, y)
    theirs = ESTIMATORS["LinearSVC"](class_weight=dict(enumerate(weights)), tol=1e-10, max_iter=100000).fit(X, y)
    for k in range(3):
        one = ESTIMATORS["LinearSVC"](tol=1e-10, max_iter=100000)
        all_rows = clone(one).fit(X, y == k, weights[y]).coef_[0]
        one_class = clone(one).fit(X, y == k, np.where(y == k, weights[k], 1.0)).coef_[0]
        np.testing.assert_allclose(ours.coef_[k], all_rows, atol=1e-5)
        np.testing.assert_allclose(theirs.coef_[k], one_class, atol=1e-5)


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_classes_without_weight_are_left_out(name, class_weight, rng):
    X = rng.normal(size=(120, 3))
    y = np.array(["a", "b", "c", "d"])[np.digitize(X[:, 0], [-0.7, 0, 0.7])]
    for none in (["b"], ["a", "d"], ["d"]):
        rows = ~np.isin(y, none)
        ours = getattr(spdc, name)(class_weight=class_weight).fit(X, y, sample_weight=rows.astype(float))
        alone = getattr(spdc, name)(class_weight=class_weight).fit(X[rows], y[rows])
        assert list(ours.classes_) == list(alone.classes_) == [label for label in "abcd" if label not in none]
        assert np.array_equal(ours.predict(X), alone.predict(X))
    with pytest.raises(ValueError, match="at least 2 classes .* only one class: .*'a'"):
        getattr(spdc, name)(class_weight={"b": 0.0}).fit(X[y <= "b"], y[y <= "b"])


@pytest.mark.parametrize("model", [spdc.LinearSVC(intercept_scaling=10), spdc.LinearSVR(intercept_scaling=10), spdc.LinearSVC()])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, pd.DataFrame, lambda X: X.astype(np.float32)])
def test_results_of_estimators_verify(model, kind, labelled):
    X, y = labelled
    result = clone(model).fit(kind(X), y).result_
    assert spdc.verify(kind(X), y, result).certified


LABELS = {
    "numbers": np.array([2, 10, 100]),
    "text": np.array(["b", "a", "c"]),
    "numbers as text": np.array(["9", "10", "100"]),  # another order than that of the numbers
    "objects": np.array(["x", "y", "z"], dtype=object),
}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_results_of_classifiers_verify_with_their_labels(name, labels, count, rng):
    X = rng.normal(size=(90, 4))
    codes = np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5][: count - 1])
    y = LABELS[labels][codes]
    weights = rng.integers(0, 3, 90).astype(float)
    model = getattr(spdc, name)(class_weight="balanced").fit(X, y, weights)
    for given in (y, list(y), pd.Series(y)):
        results = model.result_ if isinstance(model.result_, list) else [model.result_]
        assert all(spdc.verify(X, given, result).certified for result in results)
    other = LABELS[labels][(codes + 1) % count]
    assert not any(spdc.verify(X, other, result).certified for result in results)
    if name != "RidgeClassifier":
        assert np.array_equal(model.result_.classes, model.classes_)


def test_results_of_several_labels_at_once_verify(rng):
    X = rng.normal(size=(60, 3))
    Y = (X @ rng.normal(size=(3, 2)) > 0).astype(int)
    model = spdc.RidgeClassifier().fit(X, Y)
    assert all(spdc.verify(X, Y[:, k], model.result_[k]).certified for k in range(2))


def test_sparsify_and_sparse_coef(rng):
    X = rng.normal(size=(80, 30))
    y = targets_for("LinearSVC", X, rng)
    for model in (spdc.LinearSVC(penalty="l1", C=0.1), spdc.LogisticRegression(l1_ratio=1.0, C=0.1)):
        expected = model.fit(X, y).predict(X)
        assert scipy.sparse.issparse(model.sparsify().coef_) and np.array_equal(model.predict(X), expected)
        assert model.coef_.nnz < 30
    lasso = spdc.Lasso(alpha=0.2).fit(X, X[:, 0])
    assert lasso.sparse_coef_.nnz == np.count_nonzero(lasso.coef_) < 30


def test_calibration(rng):
    X = rng.normal(size=(150, 3))
    y = targets_for("LinearSVC", X, rng)
    calibrated = CalibratedClassifierCV(spdc.LinearSVC(), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 2)


def test_huber_finds_scale_and_outliers(rng):
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=200)
    y[:10] += 30
    ours, twin = spdc.HuberRegressor(tol=1e-8).fit(X, y), ESTIMATORS["HuberRegressor"](tol=1e-9, max_iter=5000).fit(X, y)
    assert ours.scale_ == pytest.approx(twin.scale_, rel=1e-3)
    assert np.array_equal(ours.outliers_, twin.outliers_) and ours.outliers_[:10].all()
    np.testing.assert_allclose(ours.coef_, twin.coef_, atol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no noise: scale and objective go to 0, and no relative gap is small
        exact = spdc.HuberRegressor(alpha=0.0).fit(X, X @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose(exact.coef_, [1, 2, 3], atol=1e-3)


@pytest.mark.filterwarnings("ignore:'penalty' was deprecated")
def test_bad_parameters(labelled):
    X, y = labelled
    for model, words in [
        (spdc.LogisticRegression(C=-1), "C"),
        (spdc.LogisticRegression(l1_ratio=2), "l1_ratio"),
        (spdc.LinearSVC(loss="log"), "loss"),
        (spdc.Ridge(alpha=-1), "alpha"),
        (spdc.Lasso(tol=0), "tol"),
        (spdc.QuantileRegressor(quantile=1), "quantile"),
        (spdc.HuberRegressor(epsilon=0.5), "epsilon"),
        (spdc.PoissonRegressor(copy="sometimes"), "copy"),
        (spdc.LogisticRegression(solver="spdc-fast"), "solver"),
        (spdc.HuberRegressor(solver="newtn"), "solver"),
    ]:
        with pytest.raises(ValueError, match=f"'{words}' parameter"):
            model.fit(X, y)
    for solver in ("spdc_fast", "newton-cholesky", "highs-ds"):
        assert spdc.Ridge(solver=solver).fit(X, y).relative_gap_ <= 1e-4
    with pytest.raises(NotImplementedError, match="crammer_singer"):
        spdc.LinearSVC(multi_class="crammer_singer").fit(X, y)
    for words in ({"l1_ratio": 0.5}, {"penalty": "elasticnet", "l1_ratio": 0.5}):  # as its twin
        for kind in (spdc.LogisticRegression, ESTIMATORS["LogisticRegression"]):
            with pytest.raises(ValueError, match="elastic ?net"):
                kind(solver="liblinear", **words).fit(X, y)
    with pytest.raises(ValueError, match="negative"):
        spdc.PoissonRegressor().fit(X, y)
    with pytest.raises(ValueError, match="(?i)weight"):
        spdc.Ridge().fit(X, y, sample_weight=np.zeros(120))


def test_data_is_to_be_unpacked(name, model, tmp_path):
    path = tmp_path / "tiny.svm"
    path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    data = spdc.read(path)
    with pytest.raises(TypeError, match="X, y = data"):
        model.fit(data, data.y)


def test_text_classification_with_the_import_replaced():
    """A scikit-learn script, end to end: vectoriser, pipeline and search, with either import."""
    rng = np.random.default_rng(0)
    topics = {"sea": "wave salt tide boat gull reef sail harbour", "hill": "peak snow trail goat rock pine ridge cabin"}
    common = "the a of day walk light wind long small old".split()
    texts, labels = [], []
    for label, words in topics.items():
        for _ in range(60):
            texts.append(" ".join(rng.choice(words.split(), 3).tolist() + rng.choice(common, 9).tolist()))
            labels.append(label)

    def script(LogisticRegression, **parameters):
        pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(**parameters))
        return GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0, 10.0]}, cv=3).fit(texts, labels)

    def objective(model, X):
        margins = np.where(np.array(labels) == model.classes_[1], 1, -1) * model.decision_function(X)
        return model.C * np.logaddexp(0, -margins).sum() + 0.5 * np.sum(model.coef_**2)

    ours, theirs = script(spdc.LogisticRegression, tol=1e-8), script(ESTIMATORS["LogisticRegression"])
    assert ours.best_params_ == theirs.best_params_
    X = ours.best_estimator_[0].transform(texts)
    assert objective(ours.best_estimator_[1], X) <= objective(theirs.best_estimator_[1], X)
    assert ours.best_estimator_[1].relative_gap_ <= 1e-8


@pytest.mark.parametrize("shift", [0.0, 1e3, -1e6])
def test_quantiles_of_targets_far_from_zero(shift):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 400))
    y = X[:, :5].sum(axis=1) + 0.1 * rng.normal(size=80)
    near, far = (spdc.QuantileRegressor(alpha=1e-3, tol=1e-8, max_iter=5000).fit(X, t) for t in (y, y + shift))
    assert far.relative_gap_ <= 1e-8
    assert far.result_.primal == pytest.approx(near.result_.primal, rel=1e-6)
    assert far.intercept_ == far.result_.intercept == pytest.approx(near.intercept_ + shift, abs=1e-6)
    assert spdc.verify(X, y + shift, far.result_).certified
    far.result_.intercept += 1e-3
    assert not spdc.verify(X, y + shift, far.result_).certified
