"""Sparse text, end to end: scikit-learn's vectoriser and pipeline, our classifier.

The texts are made up on the spot: two kinds of recipes that share most of their words.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

import spdc

rng = np.random.default_rng(0)
shared = "take mix add heat stir serve bowl spoon minutes water salt slowly fresh warm little large with until then and".split()
kinds = {
    "bread": "flour yeast dough knead oven crust rye loaf rise bake wheat starter".split(),
    "soup": "broth onion carrot leek simmer pot ladle bean lentil celery stock parsley".split(),
}
texts, labels = [], []
for label, words in kinds.items():
    other = kinds["soup" if label == "bread" else "bread"]
    for _ in range(1500):
        words_of = [*rng.choice(words, 2), *rng.choice(other, 1), *rng.choice(shared, 25)]
        texts.append(" ".join(words_of))
        labels.append(label if rng.random() < 0.95 else "bread")  # some soups are filed under bread

train, test, y_train, y_test = train_test_split(texts, labels, random_state=0)
pipeline = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), spdc.LogisticRegression(tol=1e-6))
search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0, 10.0, 100.0]}, cv=3).fit(train, y_train)

vectorizer, model = search.best_estimator_
print(f"C = {model.C}, {vectorizer.transform(train).shape[1]} features")
print(f"accuracy on the test set {search.score(test, y_test):.3f}, relative gap {model.relative_gap_:.1e}")

names = vectorizer.get_feature_names_out()
order = np.argsort(model.coef_[0])
shown = np.r_[order[:12], order[-12:]]
figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
axis.barh(names[shown], model.coef_[0][shown], color=np.where(model.coef_[0][shown] > 0, "tab:orange", "tab:blue"))
axis.set_xlabel(f"weight: {model.classes_[0]} (left) or {model.classes_[1]} (right)")
axis.tick_params(axis="y", labelsize="small")
plt.savefig("sparse_text.png", dpi=120)
