"""Make the CSV files that README and the first pages of the documentation read.

    python examples/data/make_data.py

hotels.csv   hotels shown for 60 searches, with the grade that the guests gave
battles.csv  300 votes on answers of six language models
scores.csv   scores of eight models on twelve tasks, one row for each model and task
creatures.csv, duels.csv   120 creatures with features, and 3,000 duels between them
"""

from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent
MODELS = ("Aster", "Birch", "Cedar", "Dahlia", "Elm", "Fern", "Ginkgo", "Hazel")


def make_hotels() -> pd.DataFrame:
    """Guests prefer many stars, a low price and a short way."""
    rng = np.random.default_rng(0)
    hotels = pd.DataFrame(
        {
            "search": np.repeat(np.arange(60), 8),
            "price": rng.uniform(40, 300, 480).round(),
            "stars": rng.integers(1, 6, 480),
            "km": rng.exponential(3, 480).round(1),
        }
    )
    value = hotels["stars"] - hotels["price"] / 60 - hotels["km"] / 2
    noise = rng.normal(size=480)
    hotels["grade"] = pd.qcut(value + noise, 4, labels=False)
    return hotels


def make_battles() -> pd.DataFrame:
    """Votes by the Bradley-Terry model, a tenth of them ties."""
    rng = np.random.default_rng(1)
    strength = np.linspace(1.0, -1.0, 6)
    first = rng.integers(0, 6, 300)
    second = (first + rng.integers(1, 6, 300)) % 6
    probability = 1.0 / (1.0 + np.exp(strength[second] - strength[first]))
    winner = np.where(rng.random(300) < probability, "model_a", "model_b")
    winner[rng.random(300) < 0.1] = "tie"
    names = np.array(MODELS)
    return pd.DataFrame({"model_a": names[first], "model_b": names[second], "winner": winner})


def make_scores() -> pd.DataFrame:
    """Quality of the model plus ease of the task plus noise, in percent."""
    rng = np.random.default_rng(2)
    quality = np.linspace(70, 60, 8)
    ease = rng.normal(0, 10, 12)
    scores = quality[:, None] + ease + rng.normal(0, 2, (8, 12))
    names = [f"task {number}" for number in range(1, 13)]
    table = pd.DataFrame(scores.round(1), index=pd.Index(MODELS, name="model"), columns=names)
    return table.reset_index().melt("model", var_name="task", value_name="score")


def make_creatures() -> pd.DataFrame:
    """Speed, armor, and a kind."""
    rng = np.random.default_rng(0)
    speed = rng.normal(50, 15, 120).round(1)
    armor = rng.integers(0, 40, 120)
    kind = rng.choice(["fire", "grass", "water"], 120)
    names = [f"{word[0].upper()}{number:03d}" for number, word in enumerate(kind)]
    return pd.DataFrame({"name": names, "speed": speed, "armor": armor, "kind": kind})


def make_duels() -> pd.DataFrame:
    """The faster one tends to win; fire beats grass, grass beats water, water beats fire."""
    rng = np.random.default_rng(3)
    creatures = make_creatures()
    first = rng.integers(120, size=3000)
    second = (first + rng.integers(1, 120, size=3000)) % 120
    code = creatures["kind"].map({"fire": 0, "grass": 1, "water": 2}).to_numpy()
    strength = 0.12 * creatures["speed"].to_numpy() + 0.03 * creatures["armor"].to_numpy()
    advantage = np.array([0.0, 3.0, -3.0])[(code[second] - code[first]) % 3]
    log_odds = strength[first] - strength[second] + advantage
    is_first = rng.random(3000) < 1.0 / (1.0 + np.exp(-log_odds))
    names = creatures["name"].to_numpy()
    left, right = names[first], names[second]
    return pd.DataFrame({"left": left, "right": right, "winner": np.where(is_first, left, right)})


TABLES = {
    "hotels.csv": make_hotels,
    "battles.csv": make_battles,
    "scores.csv": make_scores,
    "creatures.csv": make_creatures,
    "duels.csv": make_duels,
}


if __name__ == "__main__":
    for name, make in TABLES.items():
        make().to_csv(FOLDER / name, index=False, lineterminator="\n")
