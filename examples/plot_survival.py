r"""
Survival times: curves of predicted thirds
==========================================

Patients of twelve hospitals were followed until they died or the study ended. A model of survival
times is trained on eight hospitals, and the patients of the other four are divided into thirds by
predicted score. If the model is good, the survival curves of the thirds are far apart.
"""

# %%
# Data
# ----
# For some patients the time of death is known; for others only that they lived at least until the
# end of the observation: their times are *censored*.

import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankRLSCV, SurvivalGraph
from rankwise.metrics import concordance, kaplan_meier

rng = np.random.default_rng(0)
n_patients = 900
age = rng.normal(65, 9, n_patients)
pressure = rng.normal(140, 18, n_patients)
treated = rng.random(n_patients) < 0.5
hospital = rng.integers(0, 12, n_patients)
X = np.column_stack([age, pressure, treated])
risk = 0.06 * (age - 65) + 0.015 * (pressure - 140) - 0.7 * treated
months = 60 * rng.exponential(np.exp(-risk))
end_of_study = rng.uniform(12, 96, n_patients)
time, event = np.minimum(months, end_of_study), months <= end_of_study

# %%
# Model and curves
# ----------------
# Larger scores mean longer survival. The concordance is the share of comparable pairs of patients
# that are in the right order.

train, test = hospital < 8, hospital >= 8
scale = X[train].std(axis=0)
model = RankRLSCV().fit(X[train] / scale, SurvivalGraph(time[train], event[train], hospital[train]))
score = model.predict(X[test] / scale)
value = concordance(np.column_stack([time[test], event[test]]), score)

third = np.searchsorted(np.quantile(score, [1 / 3, 2 / 3]), score)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
names = ["shortest predicted survival", "middle third", "longest predicted survival"]
for k, (name, color) in enumerate(zip(names, ["#b2182b", "#777777", "#2166ac"], strict=True)):
    rows = third == k
    times, survival = kaplan_meier(time[test][rows], event[test][rows])
    ax.step(times, survival, where="post", color=color, label=name)
ax.set(xlabel="months", ylabel="share alive", ylim=(0, 1.02))
ax.set_title(f"Patients of four other hospitals, concordance {value:.2f}")
ax.legend(frameon=False)
plt.show()
