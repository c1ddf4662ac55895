r"""
Calibration of probabilities
============================

Of all pairs for which `CalibratedRanker` predicts a probability of 80%, about 80% should be in the
predicted order. The probabilities are calibrated on held-out pairs, exactly and without refits.
This example checks them on new queries.
"""

# %%
# Noisy data
# ----------

import matplotlib.pyplot as plt
import numpy as np

from rankwise import CalibratedRanker
from rankwise.datasets import make_ranking
from rankwise.plot import ReliabilityDisplay

X, y, groups = make_ranking(n_queries=300, n_documents=10, noise=1.5, random_state=0)[:3]
train, test = groups < 150, groups >= 150
model = CalibratedRanker().fit(X[train], y[train], groups[train])

# %%
# Predicted probabilities and observed shares
# -------------------------------------------
# All pairs of items with different grades. Each point is a tenth of the pairs; on the diagonal, the
# observed share equals the predicted probability. Left: held-out pairs of the training queries.
# Right: new queries.

winner, loser = np.nonzero((y[test][:, None] > y[test]) & (groups[test][:, None] == groups[test]))
probability = model.predict_above(X[test], winner, loser)
figure, (known, new) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
ReliabilityDisplay.from_estimator(model, ax=known)
ReliabilityDisplay.from_probabilities(probability, ax=new)
known.set_title("training queries, held out")
new.set_title("new queries")
plt.show()
print(f"log loss on new pairs: {-np.log(probability).mean():.3f} (random order: {np.log(2):.3f})")
