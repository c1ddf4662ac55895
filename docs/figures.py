"""Fill the measured figures of README and of the documentation from recorded result files.

    make figures

A figure stands between two comments, ``<!-- figure: NAME -->0.05<!-- end -->``; a table likewise,
with the comments on lines of their own. `FIGURES` computes each figure from the file of a benchmark
or of an experiment. A test (`tests/project/test_figures.py`) compares the pages with the files.
"""

import csv
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FIGURE = re.compile(r"(<!-- figure: ([\w.-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)


@cache
def benchmark_rows() -> list[dict[str, str]]:
    """Rows of the run of ``make bench`` that the page of benchmarks shows."""
    folder = ROOT / "benchmarks"
    page = (folder / "README.md").read_text(encoding="utf-8")
    date, commit, size = re.search(r"^(\S+), commit (\w+), size (\w+),", page, re.M).groups()
    path = folder / "results" / f"{date}-{commit}-{size}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def benchmark_row(work: str, against: str) -> dict[str, str]:
    """The row of a benchmark."""
    return next(
        row
        for row in benchmark_rows()
        if row["work"].startswith(work) and row["against"].startswith(against)
    )


class Peer(NamedTuple):
    """One learner on one data set, from ``experiments/results/quality.txt``."""

    error: float
    difference: str
    seconds: int
    processor_seconds: int


@cache
def quality() -> dict[str, dict[str, Peer]]:
    """Learners by data set."""
    text = (ROOT / "experiments" / "results" / "quality.txt").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Peer]] = {}
    name = ""
    for line in text.splitlines():
        if re.fullmatch(r"[a-z0-9]+", line):
            name = line
            tables[name] = {}
            continue
        cells = re.split(r"\s{2,}", line.strip())
        if name and len(cells) >= 4 and cells[-1].isdigit() and cells[-2].isdigit():
            errors = [cell for cell in cells[1:-2] if re.match(r"0\.\d{4}$", cell)]
            is_baseline = cells[0] == "AutoRanker"
            difference = "" if is_baseline else cells[-3]
            seconds, processor_seconds = map(int, cells[-2:])
            tables[name][cells[0]] = Peer(float(errors[-1]), difference, seconds, processor_seconds)
    return tables


SETS = {
    "mq2008": "MQ2008",
    "ohsumed": "OHSUMED",
    "lightgbm": "LightGBM's example",
    "cadata": "California",
    "jester": "Jester",
}
FAMILIES = ("AutoRanker", "LightGBM", "XGBoost", "CatBoost")


def quality_table() -> str:
    """Share of wrong pairs and seconds of AutoRanker and of the best model of each library."""
    header = "| wrong pairs, seconds | " + " | ".join(SETS.values()) + " |"
    lines = [header, "|---" * (len(SETS) + 1) + "|"]
    for family in FAMILIES:
        cells = [family]
        for name in SETS:
            peers = {k: peer for k, peer in quality()[name].items() if k.startswith(family)}
            best = min(peers.values(), key=lambda peer: peer.error)
            mark = "\\*" if "*" in best.difference else ""
            cells.append(f"{best.error:.3f}{mark}, {best.seconds} s")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n" + "\n".join(lines) + "\n"


def error_cell(peer: Peer | None) -> str:
    """Share of wrong pairs, bold if it differs significantly from that of AutoRanker."""
    if peer is None:
        return "–"
    mark = "**" if "*" in peer.difference else ""
    return f"{mark}{peer.error:.4f}{mark}"


def best_of(name: str, library: str) -> Peer:
    """The model of a library with the fewest wrong pairs on a data set."""
    peers = [peer for learner, peer in quality()[name].items() if learner.startswith(library)]
    return min(peers, key=lambda peer: peer.error)


def learner_table() -> str:
    """Share of wrong pairs of each learner, and seconds of AutoRanker and CatBoost."""
    lines = ["| | " + " | ".join(SETS.values()) + " |", "|---" * (len(SETS) + 1) + "|"]

    def add_row(label: str, cells: list[str]) -> None:
        lines.append("| " + " | ".join([label, *cells]) + " |")

    def add_seconds(label: str, peers: list[Peer]) -> None:
        add_row(label, [f"{peer.seconds} / {peer.processor_seconds}" for peer in peers])

    def add_errors(label: str, learner: str) -> None:
        add_row(label, [error_cell(quality()[name].get(learner)) for name in SETS])

    catboost = dict.fromkeys(SETS, "CatBoost YetiRank") | {"cadata": "CatBoost regression"}
    add_errors("AutoRanker", "AutoRanker")
    add_seconds("AutoRanker: seconds", [quality()[name]["AutoRanker"] for name in SETS])
    add_seconds("CatBoost: seconds", [quality()[name][catboost[name]] for name in SETS])
    for learner in ("CatBoost YetiRank", "CatBoost PairLogit", "CatBoost regression"):
        add_errors(learner, learner)
    for library in ("LightGBM", "XGBoost"):
        cells = [error_cell(best_of(name, library)) for name in SETS]
        add_row(f"{library}, best of its objectives", cells)
    add_errors("ridge regression", "Ridge")
    add_errors("`RankRLSCV()`", "RankRLSCV")
    return "\n" + "\n".join(lines) + "\n"


def lightgbm_faster() -> str:
    """Number of sets on which the best model of LightGBM takes fewer seconds than AutoRanker."""
    n_faster = 0
    for name in SETS:
        peers = quality()[name]
        models = [peer for learner, peer in peers.items() if learner.startswith("LightGBM")]
        best = min(models, key=lambda peer: peer.error)
        n_faster += best.seconds < peers["AutoRanker"].seconds
    return f"{n_faster} of {len(SETS)}"


def leave_group_out_fits() -> str:
    """Time of 31 alphas of leave-group-out, in fits."""
    row = benchmark_row("every query out, 31 alphas", "one fit")
    return f"{float(row['ratio']):.0f}"


def board_seconds(against: str, *, is_peer: bool) -> str:
    """Seconds of a board with intervals, of rankwise or of a peer."""
    row = benchmark_row("Bradley–Terry, 60 items, 1e6 comparisons, 95% intervals", against)
    seconds = float(row["seconds_against" if is_peer else "seconds"])
    return f"{seconds:.2g}"


def board_seconds_of_frame() -> str:
    """Seconds of a board with intervals from text columns of pandas."""
    work = "Bradley–Terry, 60 items, 1e6 comparisons, 95% intervals, text columns of pandas"
    return f"{float(benchmark_row(work, '0.15 s')['seconds']):.2g}"


def best_set_coverages() -> list[float]:
    """Coverage of best sets in each experiment."""
    path = ROOT / "experiments" / "sets" / "results" / "coverage.txt"
    rows = re.findall(r"^\w+ +\d+ +[\d.]+ +(0\.\d+) ±", path.read_text(encoding="utf-8"), re.M)
    return sorted(float(row) for row in rows)


def best_set_range() -> str:
    """Range of the coverage without the largest value, in percent."""
    coverages = best_set_coverages()
    return f"{100 * coverages[0]:.0f}–{100 * coverages[-2]:.0f}%"


def best_set_count() -> str:
    """Number of experiments in that range, of all."""
    n_sets = len(best_set_coverages())
    return f"{n_sets - 1} of {n_sets}"


def best_set_largest() -> str:
    """The largest coverage of best sets, in percent."""
    return f"{100 * best_set_coverages()[-1]:.0f}%"


TENNIS_METHODS = {
    "time and surface": ("rate: time and surface", "rate: time and surface"),
    "time": ("rate: time", "rate: time"),
    "surface": ("rate: surface", None),
    "neither": ("rate: neither", None),
    "Elo": ("Elo, frozen", "Elo, after every match"),
    "Elo, step chosen in hindsight": ("Elo, frozen, best in hindsight", "Elo, best in hindsight"),
    "Glicko-2": (None, "Glicko-2, monthly"),
}


def tennis_table() -> str:
    """Log loss of tennis matches of 2013 to 2019, predicted for a year and for a month."""
    path = ROOT / "experiments" / "boards" / "results" / "tennis_in_time.txt"
    parts = path.read_text(encoding="utf-8").split("A month's matches")
    row = re.compile(r"^(\w.*?) {2,}0\.\d{4} +(0\.\d{4}) ", re.M)
    by_year, by_month = (dict(row.findall(part)) for part in parts)
    lines = [
        "| ATP tennis, 2013–2019 | a year from all earlier years | a month from all earlier months |",
        "|---|---|---|",
    ]
    for label, (year_method, month_method) in TENNIS_METHODS.items():
        year, month = by_year.get(year_method, "–"), by_month.get(month_method, "–")
        lines.append(f"| {label} | {year} | {month} |")
    return "\n" + "\n".join(lines) + "\n"


CLICK_LEARNERS = {
    "RankRLSCV": "RankRLSCV, `nuisance`",
    "RankLogisticCV": "RankLogisticCV, `nuisance`",
    "RankLogistic": "RankLogistic, `nuisance`, fixed alpha",
    "LightGBM": "LightGBM, `position`",
    "XGBoost": "XGBoost, `lambdarank_unbiased`",
}


def clicks_table() -> str:
    """NDCG@10 of learners from simulated clicks, mean of the six settings."""
    path = ROOT / "experiments" / "clicks" / "results" / "mq2008.txt"
    part = re.search(r"Mean of the six\n(.*?)\nexamination", path.read_text(encoding="utf-8"), re.S)
    lines = [
        "| learner | clicks alone | true propensities | position corrected | true labels "
        "| share of the gap closed by the correction | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in part[1].splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if cells[0] not in CLICK_LEARNERS:
            continue
        metrics = [cell.split(" ±")[0] for cell in cells[1:5]]
        share = f"{100 * float(cells[6].split(' ±')[0]):.0f}%"
        cells = [CLICK_LEARNERS[cells[0]], *metrics, share, f"{float(cells[7]):g}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n" + "\n".join(lines) + "\n"


def training_seconds(against: str, *, is_peer: bool = True) -> str:
    """Seconds of training on 20,000 × 50, of AutoRanker or of a peer."""
    row = benchmark_row("AutoRanker, 20,000 × 50, all chosen", against)
    return f"{float(row['seconds_against' if is_peer else 'seconds']):.2g}"


def large_list(work: str, against: str, *, is_peer: bool = False) -> str:
    """A figure of AutoRanker on large lists, or of its peer."""
    row = benchmark_row(f"AutoRanker, {work}", against)
    return f"{float(row['seconds_against' if is_peer else 'seconds']):.3g}"


def parquet_ratio(engine: str) -> str:
    """Processor time of training from Parquet files, relative to reading them."""
    work = f"RankRLS and its alpha from Parquet files, 1e7 × 50, {engine}"
    return f"{float(benchmark_row(work, 'reading the files')['ratio']):.1f}"


def families_ignored() -> str:
    """Coverage of 95% intervals if families of tasks are ignored, in percent."""
    path = ROOT / "experiments" / "boards" / "results" / "score_coverage.txt"
    row = re.search(
        r"^\| the same, families ignored \| \d+ \| ([\d.]+) ", path.read_text(encoding="utf-8"), re.M
    )
    return f"{100 * float(row[1]):.0f}%"


FIGURES: dict[str, Callable[[], str]] = {
    "quality-table": quality_table,
    "learner-table": learner_table,
    "tennis-table": tennis_table,
    "clicks-table": clicks_table,
    "training-seconds": lambda: training_seconds("CatBoost", is_peer=False),
    "training-seconds-catboost": lambda: training_seconds("CatBoost"),
    "training-seconds-xgboost": lambda: training_seconds("XGBoost"),
    "training-seconds-lightgbm": lambda: training_seconds("LightGBM"),
    "million-seconds": lambda: large_list("1e6 × 136, seconds", "300 s"),
    "million-memory": lambda: large_list("1e6 × 136, memory beyond X", "2.5 × X"),
    "two-million-seconds": lambda: large_list("2.27e6 × 137", "LightGBM, 500 trees"),
    "two-million-seconds-lightgbm": lambda: large_list(
        "2.27e6 × 137", "LightGBM, 500 trees", is_peer=True
    ),
    "parquet-ratio-pyarrow": lambda: parquet_ratio("PyArrow"),
    "parquet-ratio-duckdb": lambda: parquet_ratio("DuckDB"),
    "parquet-ratio-polars": lambda: parquet_ratio("Polars"),
    "lightgbm-faster": lightgbm_faster,
    "leave-group-out-fits": leave_group_out_fits,
    "board-seconds": lambda: board_seconds("evalica", is_peer=False),
    "board-seconds-frame": board_seconds_of_frame,
    "board-seconds-choix": lambda: board_seconds("choix", is_peer=True),
    "board-seconds-evalica": lambda: board_seconds("evalica", is_peer=True),
    "best-set-range": best_set_range,
    "best-set-count": best_set_count,
    "best-set-largest": best_set_largest,
    "families-ignored": families_ignored,
}


def filled(text: str) -> str:
    """The text with every figure as its file has it."""
    return FIGURE.sub(lambda match: match[1] + FIGURES[match[2]]() + match[4], text)


def main() -> None:
    """Write the pages whose figures changed."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new_text = filled(text)
        if new_text != text:
            page.write_text(new_text, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
