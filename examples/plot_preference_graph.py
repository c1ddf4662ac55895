r"""
A leaderboard from matches
==========================

Eight teams have played some matches against each other; the data are the winners and the goal
differences. Each match is an edge of a *preference graph*, from the winner to the loser, and least
squares on the graph gives every team a rating: the difference of two ratings is the expected goal
difference.
"""

# %%
# A season
# --------
# The strengths are simulated, so the true ratings are known; goals are random. Some pairs of teams
# have not met.

import matplotlib.pyplot as plt
import numpy as np

from rankwise import PairGraph
from rankwise.leaderboard import rate

teams = ["Aalto", "Bergen", "Cork", "Delft", "Essen", "Faro", "Ghent", "Hull"]
strength = np.linspace(1.6, -1.6, len(teams))
rng = np.random.default_rng(5)
home, away = np.array(
    [pair for pair in np.ndindex(8, 8) if pair[0] != pair[1] and rng.random() < 0.45]
).T
goals = np.rint(strength[home] - strength[away] + rng.normal(scale=1.3, size=len(home)))
swap = goals < 0
winner, loser = np.where(swap, away, home), np.where(swap, home, away)
season = PairGraph(winner, loser, magnitude=np.abs(goals), items=teams)
print(season.describe())

# %%
# Ratings
# -------
# `rankwise.leaderboard.rate` gives every team a rating, with an interval from leaving out single
# matches. The column ``rank range`` contains the possible ranks of a team.

board = rate(season)
print(board)
ratings = np.array([board[team].rating for team in teams])

# %%
# The picture
# -----------
# The height of a team is its rating. Arrows point from the winner to the loser, and are wider for
# larger goal differences; blue arrows agree with the ratings, orange arrows are upsets. Dashed
# lines are draws.

_, ax = plt.subplots(figsize=(7, 5.6), layout="constrained")
height = ratings / np.abs(ratings).max()
side = np.where(np.argsort(np.argsort(-ratings)) % 2, -1.0, 1.0)
place = np.c_[side * (0.4 + np.sqrt(1 - height**2)), ratings]  # on both sides of an oval
for i, j, n in zip(season.winner, season.loser, season.magnitude, strict=True):
    arrow = {"arrowstyle": "-|>", "color": "#0072B2", "linewidth": 0.5 + n / 2, "alpha": 0.8}
    if n == 0:
        arrow |= {"arrowstyle": "-", "color": "#808080", "linewidth": 1, "linestyle": "--"}
    elif ratings[i] <= ratings[j]:
        arrow["color"] = "#D55E00"
    bent = {"connectionstyle": "arc3,rad=0.08", "shrinkA": 9, "shrinkB": 9}
    ax.annotate("", place[j], place[i], arrowprops=arrow | bent)
ax.scatter(*place.T, s=260, color="white", edgecolor="black", zorder=3)
for team, (x, y) in zip(teams, place, strict=True):
    beside = {"xytext": (13 * np.sign(x), 0), "textcoords": "offset points", "va": "center"}
    ax.annotate(team, (x, y), ha="left" if x > 0 else "right", **beside)
ax.margins(0.3, 0.1)
ax.set(xticks=[], ylabel="rating", title="a season")
plt.show()

# %%
# Ratings and true strengths
# --------------------------
# The bars are 95% intervals, which are wide because each team has played five to ten matches.

wins = np.bincount(winner[goals != 0], minlength=len(teams))
played = np.bincount(np.r_[winner, loser], minlength=len(teams))
figure, ax = plt.subplots(layout="constrained")
low, high = (np.array([getattr(board[team], end) for team in teams]) for end in ("low", "high"))
ax.errorbar(
    strength,
    ratings,
    [ratings - low, high - ratings],
    fmt="o",
    color="#0072B2",
    ms=9,
    capsize=3,
    label="rating and interval",
)
ax.plot(
    strength, 4 * (wins / played - 0.5), "s", color="#D55E00", ms=7, label="share of wins, rescaled"
)
ax.axline((0, 0), slope=1, color="black", ls=":", lw=1)
for x, y, team in zip(strength, ratings, teams, strict=True):
    ax.annotate(team, (x, y), (6, -12), textcoords="offset points", fontsize=9)
ax.margins(0.12)
ax.set(xlabel="true strength", ylabel="estimate")
ax.legend()
plt.show()
