"""The published experiments with ensembles on Iris: bagging, boosting and stacking, with our models as members.

Published figures are of one 3-fold cross-validation; ours are means and standard deviations over 20 of them. Claims
that are judged: bagged deep trees are no worse than one by more than a standard deviation; bagged nearest neighbours
are worse than one, because with 0.8 of two columns each member sees a single column; stacking is no worse than its best
member by more than 0.01.

    python benchmarks/reproduce/iris_ensembles.py            # about a minute of CPU
    python benchmarks/reproduce/iris_ensembles.py --quick    # 3 cross-validations
"""

from __future__ import annotations

import sys

import numpy as np
from published import Report
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from pluri.decisions import ensemble_diversity
from pluri.mixtures import NaiveBayes


def scores(model: object, X: np.ndarray, y: np.ndarray, n_repeats: int) -> np.ndarray:
    folds = [StratifiedKFold(3, shuffle=True, random_state=seed) for seed in range(n_repeats)]
    return np.array([cross_val_score(model, X, y, cv=one).mean() for one in folds])


def main() -> None:
    n_repeats = 3 if "--quick" in sys.argv else 20
    data, y = load_iris(return_X_y=True)
    sepal, pair = data[:, :2], data[:, 1:3]
    stump = DecisionTreeClassifier(criterion="entropy", max_depth=1, random_state=0)
    deep, nearest = DecisionTreeClassifier(random_state=0), KNeighborsClassifier(1)
    settings = {"max_samples": 0.8, "max_features": 0.8, "random_state": 0}
    report = Report("Ensembles on Iris")
    seen = {}

    def show(name: str, published: float | None, model: object, X: np.ndarray) -> None:
        seen[name] = scores(model, X, y, n_repeats)
        report.row(name, published, seen[name].mean(), seen[name].std())

    show("stump, sepal", 0.63, stump, sepal)
    show("1-NN, sepal", 0.70, nearest, sepal)
    show("10 bagged stumps", 0.64, BaggingClassifier(stump, 10, **settings), sepal)
    show("10 bagged 1-NN (each sees one column)", 0.59, BaggingClassifier(nearest, 10, **settings), sepal)
    show("deep tree, sepal", None, deep, sepal)
    show("20 bagged deep trees, both columns", None, BaggingClassifier(deep, 20, random_state=0), sepal)
    show("10 boosted stumps, sepal", 0.65, AdaBoostClassifier(stump, n_estimators=10, random_state=0), sepal)
    show("40 boosted stumps, sepal", 0.68, AdaBoostClassifier(stump, n_estimators=40, random_state=0), sepal)
    ours = NaiveBayes("gaussian", inference="ml")
    show("10 boosted naive Bayes (ours), sepal", None, AdaBoostClassifier(ours, n_estimators=10, random_state=0), sepal)
    forest = RandomForestClassifier(10, random_state=1)
    members = [("1-NN", nearest), ("forest", forest), ("naive Bayes (ours)", ours)]
    for (name, one), published in zip(members, (0.91, 0.91, 0.92)):
        show(f"{name}, columns 1 and 2", published, one, pair)
    show("stacked", 0.95, StackingClassifier(members, LogisticRegression(), cv=5), pair)
    tree_gap = seen["20 bagged deep trees, both columns"].mean() - seen["deep tree, sepal"].mean()
    report.note(f"bagged trees minus one tree: {tree_gap:+.3f} (sd {seen['deep tree, sepal'].std():.3f})")
    near_gap = seen["10 bagged 1-NN (each sees one column)"].mean() - seen["1-NN, sepal"].mean()
    report.note(f"bagged 1-NN minus 1-NN: {near_gap:+.3f}")
    best = max(seen[f"{name}, columns 1 and 2"].mean() for name, _ in members)
    report.note(f"stacked minus best member: {seen['stacked'].mean() - best:+.3f}")
    train, test, y_train, y_test = train_test_split(sepal, y, test_size=1 / 3, stratify=y, random_state=0)
    bagged = BaggingClassifier(deep, 20, random_state=0).fit(train, y_train)
    report.note("20 bagged deep trees: " + ensemble_diversity(bagged, test, y_test).summary().replace("\n", "; "))
    report.close()


if __name__ == "__main__":
    main()
