"""The published experiments with ensembles on Iris: bagging, boosting and stacking, with our models as members.

Published figures are of one 3-fold cross-validation, read off pictures where no number is given; ours are means and
standard deviations over 20 of them. The picture of bagged trees by their number has levels that the two sepal columns
do not reach; all four columns stand beside them, and are better with a single tree. Errors of training and test are
those at the end of the learning curves, two thirds of the rows. Claims that are judged: bagged deep trees are no worse
than one by more than a standard deviation; bagged nearest neighbours are worse than one, because with 0.8 of two
columns each member sees a single column; stacking is no worse than its best member by more than 0.01.

    python benchmarks/reproduce/iris_ensembles.py            # a minute of CPU
    python benchmarks/reproduce/iris_ensembles.py --quick    # 3 cross-validations
"""

from __future__ import annotations

import sys

import numpy as np
from published import Report
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score, cross_validate, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from pluri.decisions import ensemble_diversity
from pluri.mixtures import NaiveBayes


def scores(model: object, X: np.ndarray, y: np.ndarray, n_repeats: int) -> np.ndarray:
    folds = [StratifiedKFold(3, shuffle=True, random_state=seed) for seed in range(n_repeats)]
    return np.array([cross_val_score(model, X, y, cv=one).mean() for one in folds])


def errors(model: object, X: np.ndarray, y: np.ndarray, n_repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """Share of mistakes on the rows of training and on the others."""
    folds = [StratifiedKFold(3, shuffle=True, random_state=seed) for seed in range(n_repeats)]
    found = [cross_validate(model, X, y, cv=one, return_train_score=True) for one in folds]
    return tuple(1.0 - np.array([one[f"{part}_score"].mean() for one in found]) for part in ("train", "test"))


def sizes(report: Report, sepal: np.ndarray, data: np.ndarray, y: np.ndarray, n_repeats: int) -> None:
    """Accuracy against the number of members, and errors at the end of the learning curves."""
    deep, stump = (DecisionTreeClassifier(criterion="entropy", max_depth=depth, random_state=0) for depth in (None, 1))
    for number, published in ((1, 0.75), (6, 0.74), (11, 0.81), (16, 0.92)):
        bagged = BaggingClassifier(deep, number, max_samples=0.8, max_features=0.8, random_state=0)
        for name, columns in (("sepal", sepal), ("all four columns", data)):
            found = scores(bagged, columns, y, n_repeats)
            report.row(f"{number} bagged trees of 0.8 and 0.8, {name}", published, found.mean(), found.std())
    for number, published in ((1, 0.63), (6, 0.60), (11, 0.65), (21, 0.66), (100, 0.675)):
        boosted = scores(AdaBoostClassifier(stump, n_estimators=number, random_state=0), sepal, y, n_repeats)
        report.row(f"{number} boosted stumps, sepal", published, boosted.mean(), boosted.std())
    ends = {
        "10 boosted stumps, sepal": (AdaBoostClassifier(stump, n_estimators=10, random_state=0), 0.31, 0.40),
        "20 bagged trees of 0.8 and 0.8, sepal": (
            BaggingClassifier(deep, 20, max_samples=0.8, max_features=0.8, random_state=0), 0.15, None,
        ),
    }  # fmt: skip
    for name, (model, train, test) in ends.items():
        for part, published, found in zip(("training", "test"), (train, test), errors(model, sepal, y, n_repeats)):
            report.row(f"error in {part}, {name}", published, found.mean(), found.std())


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
    stacked = StackingClassifier(members, LogisticRegression(), cv=5)
    show("stacked", 0.95, stacked, pair)
    for part, published, found in zip(("training", "test"), (0.01, 0.067), errors(stacked, pair, y, n_repeats)):
        report.row(f"error in {part}, stacked", published, found.mean(), found.std())
    sizes(report, sepal, data, y, n_repeats)
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
