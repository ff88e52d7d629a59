"""How many topics: a sweep over their number, one recommendation, and its reasons."""

from pluri.topics.number.search import TopicSearchCV, choose_n_topics

__all__ = ["TopicSearchCV", "choose_n_topics"]
