"""Problems of the command: files that are made, and the JSON and predictions that it writes."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.baseline.boards import draw_games
from tests.baseline.draws import chance, pick
from tests.baseline.evaluation import draw_table
from tests.baseline.names import find, option
from tests.baseline.record import Record

TEXT_KEYS = frozenset({"model", "data", "file", "pairs", "a", "b", "warnings", "summary"})


def run(*arguments: Any) -> str:
    """Run the command in this process and return its standard output."""
    output = io.StringIO()
    before = sys.argv
    sys.argv = ["rankwise", *map(str, arguments)]
    try:
        with (
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(io.StringIO()) as errors,
        ):
            find("command")()
    except SystemExit as status:
        if status.code not in (0, None):
            message = errors.getvalue().strip()
            raise RuntimeError(f"{' '.join(sys.argv)}: {message}") from None
    finally:
        sys.argv = before
    return output.getvalue()


@cache
def installed_options(command: str) -> frozenset[str]:
    """Return the options that the help of a command names."""
    return frozenset(re.findall(r"--[a-z][a-z-]*", run(command, "--help-all")))


def spelled(command: str, **options: Any) -> list[str]:
    """Return options of a command as arguments, in the spelling of the installed version."""
    arguments = []
    for name, value in options.items():
        arguments.append(option(command, "--" + name.replace("_", "-"), installed_options(command)))
        if value is not True:
            arguments.append(str(value))
    return arguments


def record_json(record: Record, name: str, text: str) -> None:
    """Store the numbers of a JSON document; text is not compared, since messages may change."""
    record.add(name, only_numbers(without_summary(json.loads(text))))


def without_summary(document: Any) -> Any:
    """Return a document of `train` with the summary of the ranker as before version 0.4."""
    if not isinstance(document, dict) or "parameters" not in document.get("chosen", {}):
        return document
    chosen = document["chosen"]
    moved = {part: chosen.pop(part) for part in ("nuisance", "calibration")}
    return {**document, **moved, "chosen": {**chosen.pop("parameters"), **chosen}}


def only_numbers(value: Any) -> Any:
    """Return the value without text."""
    if isinstance(value, dict):
        items = {key: only_numbers(item) for key, item in value.items() if key not in TEXT_KEYS}
        return {key: item for key, item in items.items() if item not in ("", [], {}, None)}
    if isinstance(value, list):
        return [only_numbers(item) for item in value if not isinstance(item, str)]
    return "" if isinstance(value, str) else value


def make_list_table(rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of scored items in lists."""
    table = draw_table(rng, 90)
    table["shop"] = np.repeat([f"s{k}" for k in range(15)], 6)
    noise = rng.normal(size=90)
    table["rating"] = np.round(np.clip(table["stars"] - 2 + noise, 0, 4))
    return table.drop(columns="since") if chance(rng, 0.5) else table


def lists(rng: np.random.Generator, record: Record) -> None:
    """Commands train, predict, evaluate, compare and cv on a table of lists."""
    columns = {"target": "rating", "group": "shop"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        table = make_list_table(rng)
        table[:60].to_csv(path / "train.csv", index=False)
        table[60:].to_csv(path / "test.csv", index=False)
        name = pick(rng, ("rankrls", "rankrls", "ranksvm", "ranklogistic", "pursuit"))
        alpha = {} if name == "pursuit" else {"alpha": pick(rng, ("0.1", "0.01,0.1,1"))}
        kernel = {"kernel": "rbf"} if chance(rng, 0.3) else {}
        record.describe(name, alpha, kernel)
        train = spelled("train", model=name, **alpha, **kernel, **columns)
        record_json(
            record,
            "train",
            run("train", path / "train.csv", "-o", path / "one.rw", "--json", *train),
        )
        variants: list[dict[str, Any]] = [{"calibrate": True}, {"feature_scaling": "group"}]
        variant = pick(rng, variants)
        record.describe(variant)
        other = spelled("train", alpha="1", **variant, **columns)
        run("train", path / "train.csv", "-o", path / "two.rw", *other)
        record_predictions(record, path, "one.rw")
        record_predictions(record, path, "two.rw")
        metrics = ["--metric", "ndcg@5", "--metric", "tau", "--json"]
        evaluate = spelled("evaluate", **columns)
        record_json(
            record,
            "evaluate",
            run("evaluate", path / "one.rw", path / "test.csv", *metrics, *evaluate),
        )
        files = [path / "test.csv", path / "one.rw", path / "two.rw"]
        record_json(
            record, "compare", run("compare", *files, *metrics, *spelled("compare", **columns))
        )
        cv = spelled("cv", model=name, **alpha, **columns)
        record_json(record, "cv", run("cv", path / "train.csv", *metrics, *cv))


def record_predictions(record: Record, path: Path, model: str) -> None:
    """Store the scores that the command predicts."""
    group = spelled("predict", group="shop")
    run("predict", path / model, path / "test.csv", "-o", path / "scores.txt", *group)
    record.add(f"predict.{model}", np.loadtxt(path / "scores.txt"))


def calibrated(rng: np.random.Generator, record: Record) -> None:
    """Scores, intervals of ranks and best sets of calibrated models, and their training."""
    table = make_list_table(rng)
    options: dict[str, Any] = {"alpha": pick(rng, ("0.1", "1"))}
    options["feature_scaling"] = pick(rng, ("standard", "group", "none"))
    if chance(rng, 0.3):
        options["kernel"] = "rbf"
    record.describe(options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        table[:60].to_csv(path / "train.csv", index=False)
        table[60:].to_csv(path / "test.csv", index=False)
        train = spelled("train", target="rating", group="shop", calibrate=True, **options)
        text = run("train", path / "train.csv", "-o", path / "model.rw", "--json", *train)
        record_json(record, "train", text)
        record_predictions(record, path, "model.rw")
        outputs: dict[str, dict[str, Any]] = {
            "intervals": {"intervals": True, "confidence": "0.9"},
            "best_set": {"best_set": "0.8"},
        }
        for name, output in outputs.items():
            predict = spelled("predict", group="shop", **output)
            run("predict", path / "model.rw", path / "test.csv", "-o", path / "out.csv", *predict)
            for column, values in pd.read_csv(path / "out.csv").items():
                record.add(f"{name}.{column}", values.to_numpy())


def comparisons(rng: np.random.Generator, record: Record) -> None:
    """Command rank on a table of games."""
    games = pd.DataFrame(draw_games(rng))
    options: dict[str, Any] = {"sides": "left,right", "outcome": "outcome"}
    model = pick(rng, ("least-squares", "bradley-terry"))
    options["rating_model"] = model
    if chance(rng, 0.3):
        options["judge"] = "judge"
    if chance(rng, 0.3) and model == "bradley-terry":
        options["rating_scale"] = "elo"
    if chance(rng, 0.3):
        options["sort_by"] = "lower"
    if chance(rng, 0.3):
        options["covariates"] = "heat"
    if chance(rng, 0.3):
        options["board_per"] = "court"
    record.describe(options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "games.csv"
        games.to_csv(path, index=False)
        record_json(record, "rank", run("rank", path, "--json", *spelled("rank", **options)))


def draw_items(rng: np.random.Generator, games: pd.DataFrame, label: str) -> pd.DataFrame:
    """Return a table with features of the items of games."""
    names = sorted(set(games["left"]) | set(games["right"]))
    items = pd.DataFrame({label: names, "speed": rng.normal(size=len(names))})
    items["weight_kg"] = rng.normal(size=len(names))
    return items


def rank_with_features(rng: np.random.Generator, record: Record) -> None:
    """Command rank with a table of features of the items."""
    games = pd.DataFrame(draw_games(rng))
    options: dict[str, Any] = {"sides": "left,right", "outcome": "outcome", "alpha": "0.1"}
    options["rating_model"] = pick(rng, ("least-squares", "bradley-terry"))
    if chance(rng, 0.4):
        options["side"] = True
    record.describe(options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        games.to_csv(path / "games.csv", index=False)
        draw_items(rng, games, "item").to_csv(path / "items.csv", index=False)
        rank = spelled("rank", item_features=path / "items.csv", **options)
        record_json(record, "rank", run("rank", path / "games.csv", "--json", *rank))


def item_comparisons(rng: np.random.Generator, record: Record) -> None:
    """Commands train, predict and evaluate on comparisons of items with features."""
    games = pd.DataFrame(draw_games(rng))
    items = draw_items(rng, games, "name")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        games[["left", "right", "outcome"]].to_csv(path / "games.csv", index=False)
        items.to_csv(path / "items.csv", index=False)
        options = {"items": path / "items.csv", "sides": "left,right", "outcome": "outcome"}
        train = spelled("train", alpha="0.1", **options)
        run("train", path / "games.csv", "-o", path / "model.rw", *train)
        evaluate = spelled("evaluate", **options)
        text = run("evaluate", path / "model.rw", path / "games.csv", "--json", *evaluate)
        record_json(record, "evaluate", text)
        run("predict", path / "model.rw", path / "items.csv", "-o", path / "scores.txt")
        record.add("predict", np.loadtxt(path / "scores.txt"))


AREAS = {
    "command_lists": (lists, 16),
    "command_calibrated": (calibrated, 12),
    "command_rank_with_features": (rank_with_features, 12),
    "command_comparisons": (comparisons, 24),
    "command_item_comparisons": (item_comparisons, 10),
}
