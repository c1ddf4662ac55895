r"""
Is this difference real? Two runs and missing judgments
=======================================================

Two retrieval runs are compared by NDCG@10 over 50 queries. Only some of the documents have been
judged. The figure shows the difference if unjudged documents count as not relevant, its 95%
interval over queries, and the lowest and highest difference over all grades of the unjudged
documents.
"""

# %%
# Two runs and complete judgments
# -------------------------------
# Each query has 60 documents, some of them relevant. The scores of both runs are the grades plus
# noise, with less noise in the first run.

import matplotlib.pyplot as plt
import numpy as np

from rankwise.model_selection import compare

rng = np.random.default_rng(0)
documents = [f"d{k:02}" for k in range(60)]
grades = rng.choice([0, 0, 0, 0, 1, 2], size=(50, 60))
qrels = {}
runs = {"hybrid": {}, "BM25": {}}
for number, relevance in enumerate(grades):
    query = f"q{number:02}"
    qrels[query] = dict(zip(documents, relevance.tolist(), strict=True))
    for name, noise in {"hybrid": 1.0, "BM25": 1.25}.items():
        scores = relevance + noise * rng.normal(size=60)
        runs[name][query] = dict(zip(documents, scores.tolist(), strict=True))

print(compare(runs, qrels=qrels, metric="nDCG@10").summary())

# %%
# Judgments are removed
# ---------------------
# The documents are judged in random order.

order = {query: rng.permutation(documents) for query in qrels}
shares = np.array([1.0, 0.98, 0.95, 0.9, 0.8, 0.6, 0.4])
comparisons = []
for share in shares:
    n_judged = round(share * len(documents))
    visible = {
        query: {document: qrels[query][document] for document in order[query][:n_judged]}
        for query in qrels
    }
    comparisons.append(compare(runs, qrels=visible, metric="nDCG@10", unjudged="bounds"))

rows = [comparison.rows[0] for comparison in comparisons]
bounds = [comparison.bounds["hybrid", "BM25"] for comparison in comparisons]

figure, ax = plt.subplots(layout="constrained")
missing = 100 * (1 - shares)
ax.fill_between(
    missing,
    [bound.low for bound in bounds],
    [bound.high for bound in bounds],
    color="#0072B2",
    alpha=0.2,
    label="all grades of unjudged documents",
)
ax.fill_between(
    missing,
    [row.low for row in rows],
    [row.high for row in rows],
    color="#0072B2",
    alpha=0.5,
    label="95% interval over queries",
)
ax.plot(missing, [row.difference for row in rows], "o-", color="#0072B2", label="unjudged = 0")
ax.axhline(0.0, color="black", linewidth=1)
ax.set(xlabel="judgments removed, %", ylabel="NDCG@10, hybrid − BM25")
ax.legend(loc="lower left")
plt.show()

# %%
# How many documents reverse the order?
# -------------------------------------
# The bounds assume the worst grades for each document, so they contain 0 as soon as a few judgments
# are missing. The number of documents that must be relevant to reverse the order is informative for
# longer.

for share, bound in zip(shares[1:], bounds[1:], strict=True):
    to_flip = bound.judgments_to_flip
    n_unjudged = bound.n_unjudged_of_loser
    if to_flip is None:
        print(f"{1 - share:.0%} removed: no grades reverse the order")
    else:
        print(f"{1 - share:.0%} removed: {to_flip} of BM25's {n_unjudged} unjudged documents")
