"""Names and data shared by the tests of metrics."""

EVERY = [
    *("ndcg@3", "map", "p@2", "recall@1", "mrr", "err", "auc(relevant=1)"),
    *("disagreement", "concordance", "tau", "spearman", "hit"),
]
UNDEFINED_IN_B = [name for name in EVERY if name != "p@2"]

# group a is defined for all metrics, b for none but precision
Y = [0, 1, 0, 2, 0]
SCORE = [0.3, 0.1, 0.2, 0.9, 0.4]
GROUPS = ["b", "a", "b", "a", "a"]
