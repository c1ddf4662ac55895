r"""
Calibration: are the probabilities right?
=========================================

"The first is above the second with 80 %": of all pairs of which that is said, 80 % should come out
so. `CalibratedRanker` learns its probabilities on pairs that were held out, exactly and without
training again. Here they are checked on queries that it has never seen.
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
# Said and seen
# -------------
# All pairs of new queries with different grades, the better item first. A point is a tenth of
# them; on the diagonal what was said is what came out. Left: held-out pairs of the training
# queries. Right: new queries.

winner, loser = np.nonzero((y[test][:, None] > y[test]) & (groups[test][:, None] == groups[test]))
probability = model.predict_above(X[test], winner, loser)
figure, (known, new) = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
ReliabilityDisplay.from_estimator(model, ax=known)
ReliabilityDisplay.from_probabilities(probability, ax=new)
known.set_title("training queries, held out")
new.set_title("new queries")
plt.show()
print(f"log loss on new pairs: {-np.log(probability).mean():.3f} (random order: {np.log(2):.3f})")
