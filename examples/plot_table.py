r"""
A table of rows and columns: new rows, new columns, both
========================================================

Drugs and proteins have features, and the affinities of some pairs are known. `ConditionalRankRLS`
ranks the proteins for each drug, including new drugs and new proteins. The accuracy, and the best
alpha, depend on what is new.
"""

# %%
# A table with missing cells
# --------------------------
# 40 drugs and 30 proteins; a third of the cells is unknown. The last eight drugs and the last six
# proteins are not used for training.

import matplotlib.pyplot as plt
import numpy as np

from rankwise import ConditionalRankRLS, ConditionalRankRLSCV
from rankwise.metrics import disagreement_error

rng = np.random.default_rng(3)
drugs, proteins = rng.standard_normal((40, 3)), rng.standard_normal((30, 2))
basis = np.column_stack([drugs, np.sin(2 * drugs)])
truth = basis @ rng.standard_normal((6, 2)) @ proteins.T + 0.8 * proteins[:, 0]
measured = truth + 0.6 * rng.standard_normal(truth.shape)
known = measured[:32, :24].copy()
known[rng.random(known.shape) < 1 / 3] = np.nan

model = ConditionalRankRLSCV(row_kernel="rbf", row_gamma=[0.03, 0.1, 0.3], leave="both", cv=4)
model.fit(drugs[:32], proteins[:24], known)
scores = model.predict(drugs, proteins)
print(f"concordance of new drugs and new proteins by cross-validation: {1 - model.best_score_:.2f}")

# %%
# Measured and predicted cells
# ----------------------------
# Missing cells are gray. The lines separate the training data from new drugs (below) and new
# proteins (right). Columns are sorted by the common order of the drugs; colors show scores minus
# the mean of the row, because only differences within a row have a meaning.


def shown(table):
    return table - np.nanmean(table, axis=1, keepdims=True)


order = np.argsort(-scores.mean(axis=0)[:24]).tolist()
order += (24 + np.argsort(-scores.mean(axis=0)[24:])).tolist()
whole = np.full(truth.shape, np.nan)
whole[:32, :24] = known
parts = {"measured": whole, "predicted": scores, "truth": truth}
limit = np.quantile(np.abs(shown(truth)), 0.97)
figure, axes = plt.subplots(1, 3, figsize=(13, 5), layout="constrained", sharey=True)
colors = plt.get_cmap("PuOr").with_extremes(bad="#DDDDDD")
for ax, (title, table) in zip(axes, parts.items(), strict=True):
    rows = np.full(truth.shape, np.nan)
    some = ~np.isnan(table).all(axis=1)
    rows[some] = shown(table[some])
    image = ax.imshow(rows[:, order], cmap=colors, vmin=-limit, vmax=limit, aspect="auto")
    ax.axhline(31.5, color="black", linewidth=1.5)
    ax.axvline(23.5, color="black", linewidth=1.5)
    ax.set(title=title, xlabel="protein")
axes[0].set_ylabel("drug")
figure.colorbar(image, ax=axes, label="score, less the mean of the row", shrink=0.85)

# %%
# Selection of alpha
# ------------------
# The held-out error of every alpha for new drugs, for new proteins and for both; it is largest if
# both are new.

alphas = np.logspace(-5, 1, 13)
learner = ConditionalRankRLS(row_kernel="rbf", row_gamma=0.1)
styles = {"rows": "s--", "columns": "^-.", "both": "D:"}
words = {"rows": "the drug", "columns": "the protein", "both": "both"}
known_cells = ~np.isnan(known)
groups = np.nonzero(known_cells)[0]
figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for leave, style in styles.items():
    held = learner.leave_out(drugs[:32], proteins[:24], known, leave, alphas=alphas, cv=4)
    curve = [
        1 - disagreement_error(known[known_cells], held[known_cells][:, k], groups)
        for k in range(13)
    ]
    ax.semilogx(alphas, curve, style, label=words[leave])
ax.axhline(0.5, color="gray", linewidth=1)
ax.set(xlabel="alpha", ylabel="concordance of held-out cells")
ax.legend(title="new to the model")
plt.show()
