"""Data to learn on: generators that need no files, and loaders for files that may not be shipped.

Generators (``make_*``) return what was drawn together with the parameters it was drawn from. Loaders (``load_*``) look
in the folder given by :func:`data_home`.
"""

from pluri.datasets.commits import Commits, load_transactions, make_commits
from pluri.datasets.digits_and_papers import LabelledRows, load_cora_binary, load_mnist_test, load_usps
from pluri.datasets.enron import Correspondence, Snapshots, communication_snapshots, load_enron
from pluri.datasets.feeds import DocumentStream, document_stream
from pluri.datasets.home import data_home
from pluri.datasets.lidar import load_lidar
from pluri.datasets.moving_clusters import MovingClusters, make_moving_clusters
from pluri.datasets.news import Documents, load_newsgroups, load_reuters
from pluri.datasets.ocr import OCRLetters, load_ocr_letters
from pluri.datasets.records import LabelledSequences
from pluri.datasets.separated_gaussians import SeparatedGaussians, make_separated_gaussians
from pluri.datasets.tag_groups import TAG_GROUPS
from pluri.datasets.toy_hmm import ToyHMM, make_toy_hmm
from pluri.datasets.treebank import TreebankSample, load_treebank_sample
from pluri.datasets.words import word_features
from pluri.datasets.zipf_tagging import ZipfTagging, make_zipf_tagging

__all__ = [
    "TAG_GROUPS",
    "Commits",
    "Correspondence",
    "DocumentStream",
    "Documents",
    "LabelledRows",
    "LabelledSequences",
    "MovingClusters",
    "OCRLetters",
    "SeparatedGaussians",
    "Snapshots",
    "ToyHMM",
    "TreebankSample",
    "ZipfTagging",
    "communication_snapshots",
    "data_home",
    "document_stream",
    "load_cora_binary",
    "load_enron",
    "load_lidar",
    "load_mnist_test",
    "load_newsgroups",
    "load_ocr_letters",
    "load_reuters",
    "load_transactions",
    "load_treebank_sample",
    "load_usps",
    "make_commits",
    "make_moving_clusters",
    "make_separated_gaussians",
    "make_toy_hmm",
    "make_zipf_tagging",
    "word_features",
]
