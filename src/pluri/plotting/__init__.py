"""Pictures of fitted models, as Display classes in the manner of scikit-learn.

``SomeDisplay.from_estimator(model)`` draws at once and returns the display; its ``plot`` draws the same data again, on
other axes or in another style. Axes may be given (``ax=``), are kept as ``ax_`` and ``figure_``, and nothing is ever
shown or saved here. Matplotlib is imported when something is drawn.
"""

from pluri.plotting.bhattacharyya import BhattacharyyaDisplay
from pluri.plotting.chains.annealing_path import AnnealingPathDisplay
from pluri.plotting.chains.autocorrelation import AutocorrelationDisplay
from pluri.plotting.chains.elbo import ElboDisplay
from pluri.plotting.chains.particle_cloud import ParticleCloudDisplay
from pluri.plotting.chains.rank import RankDisplay
from pluri.plotting.chains.sampled_states import SampledStatesDisplay
from pluri.plotting.chains.trace import TraceDisplay
from pluri.plotting.co_clustering import CoClusteringDisplay
from pluri.plotting.component_count import ComponentCountDisplay
from pluri.plotting.convergence import ConvergenceDisplay
from pluri.plotting.decisions.ensemble_diversity import EnsembleDiversityDisplay
from pluri.plotting.decisions.learning_curves import LearningCurvesDisplay
from pluri.plotting.decisions.queried_points import QueriedPointsDisplay
from pluri.plotting.decisions.selection_value import SelectionValueDisplay
from pluri.plotting.decisions.sensor_map import SensorMapDisplay
from pluri.plotting.decoded_sequence import DecodedSequenceDisplay
from pluri.plotting.dictionaries.left_ordered import LeftOrderedDisplay
from pluri.plotting.dictionaries.measurement_error import MeasurementErrorDisplay
from pluri.plotting.dictionaries.mosaic import DictionaryMosaicDisplay
from pluri.plotting.dictionaries.restoration import RestorationDisplay
from pluri.plotting.dictionaries.segmentation import SegmentationDisplay
from pluri.plotting.dictionaries.usage import UsageDisplay
from pluri.plotting.diversity_sweep import DiversitySweepDisplay
from pluri.plotting.dynamics.counts import CrossCovarianceDisplay, DispersionDisplay, ShapeDisplay
from pluri.plotting.dynamics.forecast import ForecastDisplay
from pluri.plotting.dynamics.regime_usage import RegimeUsageDisplay
from pluri.plotting.dynamics.regimes import RegimesDisplay
from pluri.plotting.dynamics.trajectories import TrajectoryDisplay
from pluri.plotting.dynamics.vector_field import VectorFieldDisplay
from pluri.plotting.ellipses import EllipsesDisplay
from pluri.plotting.embedding.cut import CutDisplay
from pluri.plotting.embedding.dimension import DimensionDisplay
from pluri.plotting.embedding.embedding_map import EmbeddingDisplay
from pluri.plotting.embedding.images import ImagesDisplay
from pluri.plotting.gram_blocks import GramBlocksDisplay
from pluri.plotting.kmeans_bound import KMeansBoundDisplay
from pluri.plotting.loadings import LoadingsDisplay
from pluri.plotting.networks.attention import AttentionDisplay
from pluri.plotting.networks.beam_tree import BeamTreeDisplay
from pluri.plotting.networks.decoding_errors import PositionErrorDisplay, TrainingErrorDisplay
from pluri.plotting.networks.schedule import ScheduleDisplay
from pluri.plotting.neurons import FiringRateDisplay, MembraneDisplay, PhasePlaneDisplay, SpikeRasterDisplay
from pluri.plotting.optimization.acquisition import AcquisitionDisplay
from pluri.plotting.optimization.annealing import AnnealingDisplay
from pluri.plotting.optimization.best_so_far import BestSoFarDisplay, LiveBestSoFar
from pluri.plotting.optimization.search_surface import SearchSurfaceDisplay
from pluri.plotting.optimization_gap import OptimizationGapDisplay
from pluri.plotting.responsibilities import ResponsibilityDisplay
from pluri.plotting.sequences.alignment import AlignmentDisplay
from pluri.plotting.state_histogram import StateHistogramDisplay
from pluri.plotting.style import PALETTE, state_colors
from pluri.plotting.subsets.inclusion import InclusionDisplay
from pluri.plotting.subsets.kernel_spectrum import KernelSpectrumDisplay
from pluri.plotting.subsets.subset_pair import SubsetDisplay
from pluri.plotting.subsets.timeline import TimelineDisplay
from pluri.plotting.topics.topic_graph import TopicGraphDisplay
from pluri.plotting.topics.topic_number import TopicNumberDisplay
from pluri.plotting.topics.topic_trends import TopicTrendsDisplay
from pluri.plotting.topics.topic_words import TopicWordsDisplay
from pluri.plotting.transition import TransitionDisplay

__all__ = [
    "PALETTE",
    "AcquisitionDisplay",
    "AlignmentDisplay",
    "AnnealingDisplay",
    "AnnealingPathDisplay",
    "AttentionDisplay",
    "AutocorrelationDisplay",
    "BeamTreeDisplay",
    "BestSoFarDisplay",
    "BhattacharyyaDisplay",
    "CoClusteringDisplay",
    "ComponentCountDisplay",
    "ConvergenceDisplay",
    "CrossCovarianceDisplay",
    "CutDisplay",
    "DecodedSequenceDisplay",
    "DictionaryMosaicDisplay",
    "DimensionDisplay",
    "DispersionDisplay",
    "DiversitySweepDisplay",
    "ElboDisplay",
    "EllipsesDisplay",
    "EmbeddingDisplay",
    "EnsembleDiversityDisplay",
    "FiringRateDisplay",
    "ForecastDisplay",
    "GramBlocksDisplay",
    "ImagesDisplay",
    "InclusionDisplay",
    "KMeansBoundDisplay",
    "KernelSpectrumDisplay",
    "LearningCurvesDisplay",
    "LeftOrderedDisplay",
    "LiveBestSoFar",
    "LoadingsDisplay",
    "MeasurementErrorDisplay",
    "MembraneDisplay",
    "OptimizationGapDisplay",
    "ParticleCloudDisplay",
    "PhasePlaneDisplay",
    "PositionErrorDisplay",
    "QueriedPointsDisplay",
    "RankDisplay",
    "RegimeUsageDisplay",
    "RegimesDisplay",
    "ResponsibilityDisplay",
    "RestorationDisplay",
    "SampledStatesDisplay",
    "ScheduleDisplay",
    "SearchSurfaceDisplay",
    "SegmentationDisplay",
    "SelectionValueDisplay",
    "SensorMapDisplay",
    "ShapeDisplay",
    "SpikeRasterDisplay",
    "StateHistogramDisplay",
    "SubsetDisplay",
    "TimelineDisplay",
    "TopicGraphDisplay",
    "TopicNumberDisplay",
    "TopicTrendsDisplay",
    "TopicWordsDisplay",
    "TraceDisplay",
    "TrainingErrorDisplay",
    "TrajectoryDisplay",
    "TransitionDisplay",
    "UsageDisplay",
    "VectorFieldDisplay",
    "state_colors",
]
