"""Reuters-21578: the documents of the ModApte split with their texts and topics."""

import gzip
import html
import re
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from experiments.shared.command_line import find_data

__all__ = ["ReutersDocuments", "make_features", "read_reuters"]

_FILES = [f"reuters21578/reut2-{number:03}.sgm.gz" for number in range(22)]
_DOCUMENT = re.compile(r"<REUTERS (.*?)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="(.*?)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>")
_TEXT = re.compile(r"<TEXT.*?>(.*?)</TEXT>", re.DOTALL)
_TAG = re.compile(r"</?(?:TITLE|BODY|DATELINE|AUTHOR)>")
_CONTROL = re.compile(r"&#\d+;|[\x00-\x08\x0b-\x1f]")


class ReutersDocuments(NamedTuple):
    """Documents in the order of the collection.

    Attributes
    ----------
    texts : list of str
        Title, date line and body.
    topics : list of tuple of str
        Topics of each document, possibly none.
    split : ndarray of str
        "train" or "test".
    """

    texts: list[str]
    topics: list[tuple[str, ...]]
    split: np.ndarray

    def has_topic(self, name):
        """1.0 for documents with this topic, else 0.0."""
        return np.array([float(name in topics) for topics in self.topics])


def read_reuters(data):
    """The ModApte split: TOPICS="YES" and LEWISSPLIT "TRAIN" (9,603) or "TEST" (3,299)."""
    texts = []
    topics = []
    split = []
    for path in find_data(data, *_FILES):
        with gzip.open(path, "rt", encoding="latin-1") as file:
            content = file.read()
        for head, body in _DOCUMENT.findall(content):
            attributes = dict(_ATTRIBUTE.findall(head))
            if attributes["TOPICS"] == "YES" and attributes["LEWISSPLIT"] in ("TRAIN", "TEST"):
                texts.append(_plain_text(_TEXT.search(body)[1]))
                topics.append(tuple(_TOPIC.findall(_TOPICS.search(body)[1])))
                split.append(attributes["LEWISSPLIT"].lower())
    return ReutersDocuments(texts, topics, np.array(split))


def make_features(texts):
    """TF-IDF of lower-case words in at least 3 documents, English stop words left out, CSR.

    Logarithmic term frequency, rows of unit length. The weights are counted over all documents
    given, without a look at topics.
    """
    vectorizer = TfidfVectorizer(
        stop_words="english", min_df=3, sublinear_tf=True, token_pattern=r"(?u)\b[a-zA-Z]{2,}\b"
    )
    return vectorizer.fit_transform(texts)


def _plain_text(text):
    return html.unescape(_TAG.sub(" ", _CONTROL.sub(" ", text))).strip()
