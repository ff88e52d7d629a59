"""The topic models that ``pluri topics`` knows by short names, and how its options become their parameters."""

from __future__ import annotations

import difflib
from typing import Any

from pluri.cli.registry import UsageError, parameters, parse_value
from pluri.cli.topics.sizing import TO_BE_FOUND, number_of_topics

#: Short names, classes, and what they find.
MODELS = {
    "lda": ("LatentDirichletAllocation", "a given number of flat topics"),
    "hdp": ("HDPTopicModel", "flat topics, as many as the documents need"),
    "hlda": ("HierarchicalLDA", "a tree of topics of fixed depth"),
    "concept-graph": ("ConceptGraph", "a graph in which a topic may have several parents"),
    "tree": ("TreeTopicModel", "topics of three scales, from general to special, which may have several parents"),
}
#: Ways of learning of each class that has several, the usual one first.
INFERENCES = {
    "LatentDirichletAllocation": ("gibbs", "vb", "svi", "em"),
    "HDPTopicModel": ("gibbs", "vb", "svi"),
    "TreeTopicModel": ("truncated", "retrospective", "slice"),
}
#: Passes of lda over the documents where it does not sample.
PASSES = {"vb": 100, "em": 100, "svi": 20}
#: Numbers of a sampler.
SAMPLING = ("n_warmup", "n_draws", "thin", "n_chains")
#: Share of the sweeps whose draws are kept.
KEPT = 5


#: Classes of models that learn from ratings, and from classes.
RATED = {"number": "SupervisedLDA", "class": "SupervisedLDAClassifier"}


def topic_class(name: str) -> type:
    """The class of a short name, or of a kind of rating."""
    import pluri.topics

    if name in RATED:
        rated: type = getattr(pluri.topics, RATED[name])
        return rated

    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"--model must be one of {', '.join(MODELS)}, got {name!r}{hint}")
    found: type = getattr(pluri.topics, MODELS[name][0])
    return found


def build_topic_model(
    name: str,
    *,
    n_topics: str | int | None = None,
    inference: str | None = None,
    n_sweeps: int | None = None,
    seed: int = 0,
    settings: list[str] | None = None,
    seeded: bool = False,
) -> Any:
    """A model with the options of the command; those that it does not have are refused where they were given."""
    kind = topic_class(name)
    known = parameters(kind)
    n_topics = number_of_topics(n_topics, name, inference)
    own = _own_settings(kind, known, settings or [], {"--topics": n_topics, "--inference": inference})
    chosen: dict[str, Any] = {"random_state": seed}
    if "n_components" in known:
        chosen["n_components"] = 20 if n_topics in (None, "auto") else n_topics
    elif n_topics is not None:
        raise UsageError(f"--topics must not be given for {name}, which finds the number of topics itself")
    if inference is not None:
        if "inference" not in known:
            raise UsageError(f"--inference must not be given for {name}, which has one way of learning only")
        ways = INFERENCES.get(kind.__name__, (inference,))
        if inference not in ways:
            raise UsageError(f"--inference must be one of {', '.join(ways)} for {name}, got {inference!r}")
        chosen["inference"] = inference
    elif name == "lda":
        chosen["inference"] = INFERENCES[kind.__name__][0] if kind.__name__ in INFERENCES else "gibbs"
    way = own.get("inference", chosen.get("inference"))
    if name == "lda" and way == "gibbs":
        # Documents differ in how many topics they have, and topics in how common they are.
        chosen["doc_topic_prior"] = "learn"
        if own.get("seed_words") is None and not seeded:
            chosen["topic_word_prior"] = "learn"
    elif name == "lda" and way in PASSES:
        chosen["max_iter"] = PASSES[way]
    if n_sweeps is not None:
        chosen |= _sweeps(n_sweeps, known, way)
    chosen |= own
    model = kind(**{key: value for key, value in chosen.items() if key in known})
    if n_topics == "auto":
        setattr(model, TO_BE_FOUND, True)
    _check(model)
    return model


def _own_settings(kind: type, known: dict[str, Any], settings: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """Parameters that were given one by one; refused if an option says the same."""
    found = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not key:
            raise UsageError(f"--set must have the form name=value, got {setting!r}")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(f"--set must name a parameter of {kind.__name__}, got {key!r}{hint}")
        for option, own in (("--topics", "n_components"), ("--inference", "inference")):
            if key == own and options[option] is not None:
                raise UsageError(f"{option} must not be given together with --set {key}, got both")
        found[key] = parse_value(text)
    return found


def _check(model: Any) -> None:
    """Refuse values that the model would refuse, before the documents are read."""
    from pluri.validation import check_parameters

    try:
        check_parameters(model, *SAMPLING)
        model.check_settings()
    except (TypeError, ValueError) as error:
        raise UsageError(str(error).replace(", None, got", ", got")) from error


def guide(model: Any, seeds: list[str], words: Any) -> None:
    """Tell a model the seed words of its topics; those that are no words of the documents are said, and left out."""
    from pluri.cli.console import note

    known, listed, missing = {str(word) for word in words}, [], []
    for text in seeds:
        parts = [part.strip().lower() for part in (text.split(",") if "," in text else text.split())]
        listed.append([part for part in parts if part in known])
        missing += [part for part in parts if part and part not in known]
    if missing:
        note(f"seed words that are not among the words of the documents: {', '.join(missing)}")
    if not any(listed):
        raise UsageError("--seed-words must name words of the documents, got none that is kept")
    if len(listed) > model.n_components:
        raise UsageError(f"--seed-words must be given at most {model.n_components} times (--topics), got {len(listed)}")
    model.set_params(seed_words=listed, vocabulary=[str(word) for word in words])


def _sweeps(n_sweeps: int, known: dict[str, Any], inference: str | None) -> dict[str, Any]:
    """Passes over the documents: of a sampler, those before the draws and those of the draws."""
    if "n_sweeps" in known:
        return {"n_sweeps": n_sweeps}
    if "n_draws" in known and inference in (None, "gibbs"):
        n_draws = max(1, n_sweeps // KEPT)
        return {"n_warmup": n_sweeps - n_draws, "n_draws": n_draws, "thin": 1}
    return {"max_iter": n_sweeps} if "max_iter" in known else {}
