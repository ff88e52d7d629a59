"""The types that a model file may hold: an explicit list of names, and nothing else is ever imported.

A new model or prior is added here by the name of its module and class; a test checks that each name exists and that
each public model is among them. Naming them as text keeps this folder free of imports from the model families.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from pluri.io.trusted_parts import PARTS
from pluri.io.trusted_sklearn import SKLEARN

MODELS = frozenset(
    {
        "pluri.cochange.models.baselines.CoOccurrence",
        "pluri.cochange.models.baselines.FrequentItemsets",
        "pluri.cochange.models.baselines.Popularity",
        "pluri.cochange.models.neighbors.CommitNeighbors",
        "pluri.cochange.recommender.FileRecommender",
        "pluri.decisions.bayesian_optimization.search_cv.BayesSearchCV",
        "pluri.decisions.imbalance.cost_sensitive.CostSensitiveClassifier",
        "pluri.decisions.imbalance.tomek_links.IteratedTomekLinks",
        "pluri.decisions.selection.covers.estimators.MaxKCover",
        "pluri.decisions.selection.covers.estimators.SetCover",
        "pluri.decisions.selection.selectors.BudgetSelector",
        "pluri.decisions.selection.selectors.GreedySelector",
        "pluri.decisions.selection.sensors.SensorPlacement",
        "pluri.decisions.selection.streaming.selector.StreamSelector",
        "pluri.decisions.active.committee.Committee",
        "pluri.decisions.active.committee.QueryByCommittee",
        "pluri.decisions.active.learner.ActiveLearner",
        "pluri.dynamics.counts.regression.GeneralizedCountRegression",
        "pluri.dynamics.counts.systems.CountDynamicalSystem",
        "pluri.dynamics.counts.systems.PoissonDynamicalSystem",
        "pluri.dynamics.linear.estimator.LinearDynamicalSystem",
        "pluri.dynamics.regions.single.LatentDynamics",
        "pluri.dynamics.regions.tasks.MultiTaskDynamics",
        "pluri.dynamics.switching.estimator.SwitchingDynamicalSystem",
        "pluri.embedding.dimension.estimator.IntrinsicDimension",
        "pluri.embedding.neighbors.mixture_sne.MixtureSNE",
        "pluri.embedding.neighbors.sne.SNE",
        "pluri.embedding.regression.aligned.AlignedFactorAnalyzers",
        "pluri.embedding.regression.estimator.SpectralRegression",
        "pluri.embedding.spectral.diffusion.DiffusionMap",
        "pluri.embedding.spectral.estimator.SpectralKMeans",
        "pluri.factors.binary_rbm.BinaryRBM",
        "pluri.factors.dictionaries.estimator.BetaProcessDictionary",
        "pluri.factors.dictionaries.sensing.baselines.basis_pursuit.BasisPursuit",
        "pluri.factors.dictionaries.sensing.baselines.fast_bcs.FastBCS",
        "pluri.factors.dictionaries.sensing.baselines.greedy.LarsLasso",
        "pluri.factors.dictionaries.sensing.baselines.greedy.MatchingPursuit",
        "pluri.factors.dictionaries.sensing.baselines.greedy.StOMP",
        "pluri.factors.dictionaries.sensing.baselines.variational_bcs.VariationalBCS",
        "pluri.factors.dictionaries.sensing.patch_compressor.PatchCompressor",
        "pluri.factors.dictionaries.sensing.recovery.CompressiveRecovery",
        "pluri.factors.dictionaries.sensing.svd_projection.SVDProjection",
        "pluri.factors.dictionaries.images.denoiser.ImageDenoiser",
        "pluri.factors.dictionaries.images.inpainter.ImageInpainter",
        "pluri.factors.dictionaries.images.patches.PatchExtractor",
        "pluri.factors.exponential_family.pca.ExponentialFamilyPCA",
        "pluri.factors.factor_analysis.BayesianFactorAnalysis",
        "pluri.factors.ibp_linear_gaussian.IBPLinearGaussian",
        "pluri.factors.logistic_pca.LogisticPCA",
        "pluri.mixtures.batches.dependent_dirichlet_mixture.DependentDirichletMixture",
        "pluri.mixtures.batches.dynamic_means.DynamicMeans",
        "pluri.mixtures.bayesian_bernoulli.estimator.BayesianBernoulliMixture",
        "pluri.mixtures.dirichlet_process.estimator.DirichletProcessMixture",
        "pluri.mixtures.discrete.bernoulli.BernoulliMixture",
        "pluri.mixtures.discrete.categorical.CategoricalMixture",
        "pluri.mixtures.discrete.multinomial.MultinomialMixture",
        "pluri.mixtures.discrete.poisson.PoissonMixture",
        "pluri.mixtures.dp_means.DPMeans",
        "pluri.mixtures.experts.infinite.InfiniteMixtureOfExperts",
        "pluri.mixtures.exponential_family_pca.mixture.ExponentialFamilyPCAMixture",
        "pluri.mixtures.factor_analyzers.mixture.FactorAnalyzerMixture",
        "pluri.mixtures.factor_analyzers.nonparametric.NonparametricFactorAnalyzerMixture",
        "pluri.mixtures.gaussian.estimator.GaussianMixture",
        "pluri.mixtures.gaussian.metropolis.MetropolisGaussianMixture",
        "pluri.mixtures.naive_bayes.estimator.NaiveBayes",
        "pluri.networks.classifiers.bilstm.BiLSTMClassifier",
        "pluri.networks.classifiers.text_cnn.TextCNNClassifier",
        "pluri.networks.frame_tagger.FrameTagger",
        "pluri.networks.sequence_decoder.SequenceDecoder",
        "pluri.networks.sequence_parser.SequenceParser",
        "pluri.neurons.fitting.passive_membrane.PassiveMembraneFit",
        "pluri.processes.bayesian_linear.BayesianLinearRegression",
        "pluri.processes.dpp.learning.conditional.ConditionalDPP",
        "pluri.processes.dpp.learning.kernel_learner.DPPKernelLearner",
        "pluri.processes.dpp.learning.spikes.LatentInhibition",
        "pluri.processes.dpp.learning.variable_selection.DPPVariableSelection",
        "pluri.processes.dpp.selection.selector.DPPSelector",
        "pluri.processes.dpp.successive.sequential_learning.SequentialDPPLearner",
        "pluri.processes.dpp.tracking.separate.SeparateDPP",
        "pluri.processes.dpp.tracking.time_varying.TimeVaryingDPP",
        "pluri.processes.flow_density.FlowDensity",
        "pluri.processes.gaussian_process_classification.GaussianProcessClassifier",
        "pluri.processes.gaussian_process_regression.GaussianProcessRegressor",
        "pluri.processes.ising.estimator.IsingDenoiser",
        "pluri.sequences.alignment.classification.SequenceSVC",
        "pluri.sequences.alignment.regression.SequenceSVR",
        "pluri.sequences.alignment.transformers.FrameTransformer",
        "pluri.sequences.alignment.transformers.LinearTimeNormalizer",
        "pluri.sequences.bernoulli.BernoulliHMM",
        "pluri.sequences.categorical.CategoricalHMM",
        "pluri.sequences.driven.autoregressive.AutoregressiveHMM",
        "pluri.sequences.driven.driven_hmm.DrivenHMM",
        "pluri.sequences.driven.regression.RegressionHMM",
        "pluri.sequences.gaussian.GaussianHMM",
        "pluri.sequences.gmm.GMMHMM",
        "pluri.sequences.infinite.estimator.InfiniteHMM",
        "pluri.sequences.labelled.classifier.HMMClassifier",
        "pluri.sequences.labelled.sequence_classifier.SequenceClassifier",
        "pluri.sequences.multinomial.MultinomialHMM",
        "pluri.sequences.poisson.PoissonHMM",
        "pluri.sequences.sampled.bayesian_categorical.BayesianCategoricalHMM",
        "pluri.sequences.sampled.symbol_classes.SymbolClassHMM",
        "pluri.sequences.selection.search.HMMSearchCV",
        "pluri.sequences.variational.categorical.VariationalCategoricalHMM",
        "pluri.sequences.variational.gaussian.VariationalGaussianHMM",
        "pluri.topics.concept_graph.estimator.ConceptGraph",
        "pluri.topics.hdp.estimator.HDPTopicModel",
        "pluri.topics.hierarchical.nested_crp.HierarchicalLDA",
        "pluri.topics.hierarchical.pachinko.HierarchicalPachinko",
        "pluri.topics.lda.estimator.LatentDirichletAllocation",
        "pluri.topics.number.search.TopicSearchCV",
        "pluri.topics.supervised.classification.SupervisedLDAClassifier",
        "pluri.topics.supervised.regression.SupervisedLDA",
        "pluri.topics.tree.estimator.TreeTopicModel",
    }
)

#: Named tuples that a model may hold.
RECORDS = frozenset(
    f"pluri.processes.dpp.tracking.{name}"
    for name in ("separate.Drawing", "state.Particles", "state.Stamp", "state.Workspace")
)

#: Functions that a model may refer to: pure functions of data, which `load` looks up and does not call.
FUNCTIONS = frozenset(
    {
        "pluri.sequences.selection.scorers.accuracy",
        "pluri.sequences.selection.scorers.log_likelihood_per_sample",
    }
)

BIT_GENERATORS = frozenset({"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"})

#: Scalars and keys. Both spellings of a name that changed between NumPy 1 and 2.
NUMPY_SCALARS = frozenset(
    f"numpy.{name}"
    for name in (
        *("bool", "bool_", "str_", "bytes_", "float16", "float32", "float64", "longdouble"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "longlong", "ulonglong"),
        *("datetime64", "timedelta64"),
    )
)
KEYS = frozenset({"builtins.int", "builtins.str"}) | NUMPY_SCALARS

#: For each kind of node of a skops file that may occur, the types it may build; objects and functions are listed above.
CONTAINERS: dict[str, frozenset[str]] = {
    "DictNode": frozenset({"builtins.dict"}),
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"}),
    "NdArrayNode": NUMPY_SCALARS | {"numpy.ndarray"},
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "TupleNode": RECORDS | {"builtins.tuple"},
    "TypeNode": KEYS | {"builtins.float"},
}


@dataclass(frozen=True)
class Allowed:
    """Names that a file may refer to."""

    objects: frozenset[str] = MODELS | PARTS | SKLEARN
    functions: frozenset[str] = FUNCTIONS

    def of_node(self, kind: str) -> frozenset[str]:
        """Names that a kind of node of a skops file may have."""
        listed = {"ObjectNode": self.objects, "FunctionNode": self.functions}
        return listed.get(kind) or CONTAINERS.get(kind, frozenset())

    @property
    def names(self) -> list[str]:
        """All of them, for skops."""
        return sorted(self.objects | self.functions | RECORDS)


def type_name(kind: Any) -> str:
    """Module and name of a class or function, as a file spells it.

    Examples
    --------
    >>> from collections import deque
    >>> from pluri.io.trusted import type_name
    >>> type_name(deque)
    'collections.deque'
    """
    return f"{kind.__module__}.{kind.__name__}"


def allowed(extra: Iterable[Any] = ()) -> Allowed:
    """Names of what may be stored: ours, and the classes and functions the caller vouches for."""
    objects, functions = set(), set()
    for item in extra:
        if isinstance(item, type):
            objects.add(type_name(item))
        elif isinstance(item, FunctionType) and item.__name__ == item.__qualname__:
            functions.add(type_name(item))
        else:
            raise TypeError(f"trusted must hold classes and functions of modules, got {item!r}")
    default = Allowed()
    return Allowed(default.objects | objects, default.functions | functions)
