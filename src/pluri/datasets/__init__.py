"""Data to learn on: generators that need no files, and loaders for files that may not be shipped.

Generators (``make_*``) return what was drawn together with the parameters it was drawn from. Loaders (``load_*``) look
in the folder given by :func:`data_home`.
"""

from pluri.datasets.commits import Commits, load_transactions, make_commits
from pluri.datasets.digits_and_papers import LabelledRows, load_cora_binary, load_mnist_test, load_usps
from pluri.datasets.enron import Correspondence, Snapshots, communication_snapshots, load_enron
from pluri.datasets.feeds import DocumentStream, document_stream
from pluri.datasets.flows import SwitchingFlow, make_switching_flow
from pluri.datasets.home import data_home
from pluri.datasets.image_manifolds import load_coil20, load_frey_faces
from pluri.datasets.lidar import load_lidar
from pluri.datasets.motion import (
    ExerciseRoutines,
    Markers,
    Motion,
    MotionCaptures,
    Skeleton,
    cmu_skeleton,
    load_cmu_exercises,
    load_cmu_walks,
    load_mocap6,
    load_osu_run,
    moving_joints,
    read_bvh,
    write_bvh,
)
from pluri.datasets.moving_clusters import MovingClusters, make_moving_clusters
from pluri.datasets.news import Documents, load_newsgroups, load_reuters
from pluri.datasets.ocr import OCRLetters, load_ocr_letters
from pluri.datasets.pictures import load_bsds_color, load_bsds_gray, load_test_images
from pluri.datasets.rated_documents import RatedDocuments, make_rated_documents
from pluri.datasets.records import LabelledSequences
from pluri.datasets.separated_gaussians import SeparatedGaussians, make_separated_gaussians
from pluri.datasets.simulated_hierarchies import (
    ConceptGraphDocuments,
    TreeDocuments,
    make_concept_graph_documents,
    make_tree_documents,
)
from pluri.datasets.simulated_topics import SimulatedDocuments, TopicDocuments, make_bars, make_topic_documents
from pluri.datasets.spikes import (
    ReachingCounts,
    SpikeTrains,
    TrackSpikes,
    bin_spikes,
    load_hippocampus_track,
    load_locust_odors,
    load_locust_spontaneous,
    load_macaque_reaching,
)
from pluri.datasets.token_sequences import (
    BracketedSentences,
    DigitFrames,
    NegatedSentences,
    SentimentPhrases,
    ShapeCaptions,
    StickyFrames,
    TokenPairs,
    load_spoken_digit_frames,
    load_sst_phrases,
    make_bracketed_sentences,
    make_negated_sentences,
    make_shape_captions,
    make_sticky_frames,
    make_two_tokens,
)
from pluri.datasets.topic_corpora import (
    load_ap_news,
    load_cora_abstracts,
    load_labelme_codewords,
    load_movie_polarity,
    load_movie_scale,
    load_nips_papers,
    load_political_blogs,
    load_psychological_review,
    load_restaurant_reviews,
)
from pluri.datasets.toy_hmm import ToyHMM, make_toy_hmm
from pluri.datasets.treebank import TAG_GROUPS, TreebankSample, load_treebank_sample
from pluri.datasets.utterances import Utterances, load_japanese_vowels, load_spoken_digits
from pluri.datasets.word_counts import WordCounts, count_words, train_test
from pluri.datasets.words import word_features
from pluri.datasets.zipf_tagging import ZipfTagging, make_zipf_tagging

__all__ = [
    "TAG_GROUPS",
    "BracketedSentences",
    "Commits",
    "ConceptGraphDocuments",
    "Correspondence",
    "DigitFrames",
    "DocumentStream",
    "Documents",
    "ExerciseRoutines",
    "LabelledRows",
    "LabelledSequences",
    "Markers",
    "Motion",
    "MotionCaptures",
    "MovingClusters",
    "NegatedSentences",
    "OCRLetters",
    "RatedDocuments",
    "ReachingCounts",
    "SentimentPhrases",
    "SeparatedGaussians",
    "ShapeCaptions",
    "SimulatedDocuments",
    "Skeleton",
    "Snapshots",
    "SpikeTrains",
    "StickyFrames",
    "SwitchingFlow",
    "TokenPairs",
    "TopicDocuments",
    "ToyHMM",
    "TrackSpikes",
    "TreeDocuments",
    "TreebankSample",
    "Utterances",
    "WordCounts",
    "ZipfTagging",
    "bin_spikes",
    "cmu_skeleton",
    "communication_snapshots",
    "count_words",
    "data_home",
    "document_stream",
    "load_ap_news",
    "load_bsds_color",
    "load_bsds_gray",
    "load_cmu_exercises",
    "load_cmu_walks",
    "load_coil20",
    "load_cora_abstracts",
    "load_cora_binary",
    "load_enron",
    "load_frey_faces",
    "load_hippocampus_track",
    "load_japanese_vowels",
    "load_labelme_codewords",
    "load_lidar",
    "load_locust_odors",
    "load_locust_spontaneous",
    "load_macaque_reaching",
    "load_mnist_test",
    "load_mocap6",
    "load_movie_polarity",
    "load_movie_scale",
    "load_newsgroups",
    "load_nips_papers",
    "load_ocr_letters",
    "load_osu_run",
    "load_political_blogs",
    "load_psychological_review",
    "load_restaurant_reviews",
    "load_reuters",
    "load_spoken_digit_frames",
    "load_spoken_digits",
    "load_sst_phrases",
    "load_test_images",
    "load_transactions",
    "load_treebank_sample",
    "load_usps",
    "make_bars",
    "make_bracketed_sentences",
    "make_commits",
    "make_concept_graph_documents",
    "make_moving_clusters",
    "make_negated_sentences",
    "make_rated_documents",
    "make_separated_gaussians",
    "make_shape_captions",
    "make_sticky_frames",
    "make_switching_flow",
    "make_topic_documents",
    "make_toy_hmm",
    "make_tree_documents",
    "make_two_tokens",
    "make_zipf_tagging",
    "moving_joints",
    "read_bvh",
    "train_test",
    "word_features",
    "write_bvh",
]
