r"""
Which benchmark differences are real?
=====================================

Eight models are evaluated on 20 tasks of four kinds. The mean score orders the models; the
intervals of the differences show which models are tied with the first.
"""

# %%
# Scores
# ------
# The scores are simulated. Models differ in their strength on each kind of task, and one model was
# evaluated on two kinds only.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankwise import rate_scores

rng = np.random.default_rng(4)
kind = np.repeat(["code", "facts", "math", "search"], 5)
models = [f"model {letter}" for letter in "ABCDEFGH"]
strength = np.linspace(70, 56, 8)[:, None]
strength_by_kind = rng.normal(0, 3, (8, 4)).repeat(5, axis=1)
difficulty = rng.normal(0, 10, 20)
noise = rng.normal(0, 3, (8, 20))
scores = pd.DataFrame(strength + strength_by_kind + difficulty + noise, index=models)
scores.columns = [f"{name}-{k % 5 + 1}" for k, name in enumerate(kind)]
scores.iloc[2, 10:] = np.nan
board = rate_scores(scores)
print(board)

# %%
# Ranks and tasks
# ---------------
# Left: the possible ranks of each model, thin for all models at once. Right: what each task
# contributes to the errors of the differences; the line is an equal share.

rows = list(board)[::-1]
place = np.arange(len(rows))
figure, (ranks, shares) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
ranks.hlines(
    place, [row.best_of_all for row in rows], [row.worst_of_all for row in rows], color="gray"
)
ranks.hlines(
    place,
    [row.best_rank for row in rows],
    [row.worst_rank for row in rows],
    color="#009E73",
    linewidth=7,
)
ranks.plot([row.rank for row in rows], place, "o", color="black")
ranks.set_yticks(place, [row.item for row in rows])
ranks.set(xlabel="possible ranks", xticks=range(1, 9))
tasks = board.tasks[::-1]
shares.barh([task.task for task in tasks], [task.share for task in tasks], color="#0072B2")
shares.axvline(1 / len(tasks), color="black", linewidth=1)
shares.set(xlabel="share of the squared errors")
plt.show()

# %%
# Next evaluations
# ----------------
# Model C lacks ten tasks. These evaluations reduce the error of the leading models most.

for cell in board.next_cells(3):
    print(cell.item, cell.task, round(cell.error_ratio, 3))
