r"""
An order of labels for each instance
====================================

`LabelRanker` predicts an order of the same labels for each instance: here, which of four treatments
a patient should get first, and which one if the first fails. The best order changes smoothly with
age and severity. The training data are noisy orders of 200 patients; for every third patient, only
the two best treatments are known.
"""

# %%
# Orders that depend on two features
# ----------------------------------
# Rank 1 is the best; unknown labels are NaN. `LabelRankerCV` selects alpha and the width of the
# kernel on held-out patients.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from rankwise import LabelRankerCV

NAMES = np.array(["diet", "pills", "surgery", "wait"])
COLORS = ["#009E73", "#0072B2", "#D55E00", "#BBBBBB"]


def usefulness(X):
    """What each treatment is worth for age and severity, both from 0 to 1."""
    age, severity = X.T
    diet, pills = 0.9 - severity, 0.8 - 2 * (severity - 0.5) ** 2
    surgery, wait = severity - 0.6 * age, 0.3 + 0.5 * age * (1 - severity)
    return np.column_stack([diet, pills, surgery, wait])


rng = np.random.default_rng(0)
X = rng.random((200, 2))
noisy = usefulness(X) + 0.05 * rng.standard_normal((200, 4))
ranks = (-noisy).argsort(axis=1).argsort(axis=1) + 1.0
ranks[::3] = np.where(ranks[::3] > 2, np.nan, ranks[::3])

alphas = np.logspace(-6, 0, 13)
model = LabelRankerCV(alphas, kernel="rbf", gamma=[1.0, 3.0], values="ranks", cv=5)
model.fit(X, ranks)
print(
    f"Kendall tau of held-out patients {model.best_score_:.2f}, gamma {model.best_params_['gamma']}"
)

# %%
# Predicted orders
# ----------------
# The first two panels show the first and the second treatment by age and severity; dots are
# training patients, colored by their best treatment. The third panel shows the scores for one
# severity over age: where two lines cross, two treatments swap ranks.

grid = np.stack(np.meshgrid(np.linspace(0, 1, 120), np.linspace(0, 1, 120)), axis=-1)
order = np.argsort(-model.predict(grid.reshape(-1, 2)), axis=1).reshape(120, 120, 4)
figure, axes = plt.subplots(1, 3, figsize=(13, 4.3), layout="constrained")
best = np.nanargmin(ranks, axis=1)
for place, title in ((0, "recommended first"), (1, "recommended second")):
    ax = axes[place]
    ax.imshow(
        order[:, :, place], origin="lower", extent=(0, 1, 0, 1), cmap=ListedColormap(COLORS),
        vmin=-0.5, vmax=3.5, alpha=0.55, aspect="auto",
    )  # fmt: skip
    ax.set(xlabel="age", ylabel="severity", title=title)
axes[0].scatter(*X.T, c=[COLORS[k] for k in best], s=14, edgecolor="black", linewidth=0.4)
ages = np.linspace(0, 1, 200)
scores = model.predict(np.column_stack([ages, np.full(200, 0.75)]))
for k, name in enumerate(NAMES):
    axes[2].plot(ages, scores[:, k], color=COLORS[k], linewidth=2.5, label=name)
axes[2].set(xlabel="age", ylabel="score (larger is better)", title="scores at severity 0.75")
axes[2].legend(title="treatment", loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()

# %%
# `predict_order` returns the names, best first.

patients = np.array([[0.2, 0.9], [0.9, 0.9], [0.5, 0.1]])
labels = NAMES[model.predict_order(patients)]
for (age, severity), names in zip(patients, labels, strict=True):
    print(f"age {age:.1f}, severity {severity:.1f}: {' > '.join(names)}")
