"""Summary of a fitted ranker: its parameters, their selection, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.formatting import Json, TextTable

SUMMARY_WIDTH = 80  # characters


@dataclass(frozen=True)
class NuisanceEffect:
    """Effect of a nuisance column, which is not part of the score of an item."""

    name: str
    effect: float
    standard_error: float


@dataclass(frozen=True)
class ColumnUse:
    """How a column of a table is used, and why."""

    name: str
    use: str
    why: str


@dataclass(frozen=True)
class Calibration:
    """Data from which standard errors and probabilities are computed.

    Attributes
    ----------
    units : str
        Kind of the units that are left out: groups, items or folds.
    n_units, n_pairs : int
        Number of units, and of held-out pairs.
    log_loss : float
        Log loss of the probabilities of these pairs.
    is_refitted : bool
        Whether the ranker was refitted without each unit; otherwise a closed form applies.
    """

    units: str
    n_units: int
    n_pairs: int
    log_loss: float
    is_refitted: bool


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors of AutoRanker on one kind of held-out comparison.

    Attributes
    ----------
    kind : str
        "both items new", "one item new" or "later".
    n_comparisons : int
        Number of held-out comparisons.
    predictor : {"order", "pairs"}
        The ranking, or the model of both items.
    wrong, standard_error : float
        Share of wrong comparisons, and its standard error for comparisons that share items.
    log_loss : float
        Mean log loss.
    """

    kind: str
    n_comparisons: int
    predictor: str
    wrong: float
    standard_error: float
    log_loss: float


@dataclass(frozen=True)
class Summary:
    """Summary of a fitted ranker, returned by `summary`; ``print`` shows it as text.

    Attributes
    ----------
    model : str
        Class of the ranker; a search has the class of its learner.
    parameters : dict
        Parameters that were selected, or set.
    metric, held_out_by : str or None
        Metric that selected the parameters, and the cross-validation scheme; None without a
        selection.
    held_out_score : float or None
        The metric of the selected parameters on held-out data.
    held_out_error : float or None
        Its standard error, if comparisons were held out; it allows for comparisons that share
        items.
    n_candidates : int or None
        Number of candidates.
    combine, best_member : str or None
        How AutoRanker combines its members, and the best of them.
    estimate : dict
        Estimate of AutoRanker's held-out score, with an interval.
    members : list of dict
        Members of AutoRanker, as in its `members_`.
    columns : list of ColumnUse
        Use of the columns of a table.
    nuisance : list of NuisanceEffect
        Effects of nuisance columns.
    calibration : Calibration or None
        How a CalibratedRanker estimates standard errors.
    notes : list of str
        Remarks on the data and the selection.
    comparisons : list of HeldOutErrors
        Errors of AutoRanker on held-out comparisons.
    """

    model: str
    parameters: dict[str, Json] = field(default_factory=dict)
    metric: str | None = None
    held_out_score: float | None = None
    held_out_by: str | None = None
    n_candidates: int | None = None
    combine: str | None = None
    best_member: str | None = None
    estimate: dict[str, float] = field(default_factory=dict)
    members: list[dict[str, Json]] = field(default_factory=list)
    columns: list[ColumnUse] = field(default_factory=list)
    nuisance: list[NuisanceEffect] = field(default_factory=list)
    calibration: Calibration | None = None
    notes: list[str] = field(default_factory=list)
    comparisons: list[HeldOutErrors] = field(default_factory=list)
    held_out_error: float | None = None

    def __str__(self) -> str:
        lines = [self._headline()]
        if self.comparisons:
            lines += ["", *comparison_table(self.comparisons).lines(SUMMARY_WIDTH)]
        if self.members:
            lines += ["", *member_table(str(self.metric), self.members).lines(SUMMARY_WIDTH)]
        if self.columns:
            cells = [[column.name, column.use, column.why] for column in self.columns]
            table = TextTable(["column", "used as", "because"], cells, names=(0, 1, 2))
            lines += ["", *table.lines(SUMMARY_WIDTH)]
        if self.nuisance:
            cells = [
                [effect.name, f"{effect.effect:.4f}", f"{effect.standard_error:.4f}"]
                for effect in self.nuisance
            ]
            lines += ["", *TextTable(["nuisance", "effect", "standard error"], cells).lines()]
        if self.members or self.notes:
            lines.append("")
        for note in self.notes:
            lines += wrap(note, SUMMARY_WIDTH)
        return "\n".join(lines)

    def _headline(self) -> str:
        """The held-out score if parameters were selected, else the parameters."""
        if self.members:
            text = f"{self.metric} {self.estimate.get('score', self.held_out_score):.4f}"
            text += " on held-out data"
            if "low" in self.estimate:
                low = self.estimate["low"]
                high = self.estimate["high"]
                text += f" ({DEFAULT_CONFIDENCE:.0%} from {low:.4f} to {high:.4f})"
            return text
        text = self.model
        if self.parameters:
            text += f" with {self.describe_parameters()}"
        if self.held_out_score is not None:
            text += f", {self.metric} {_short(self.held_out_score)}"
            if self.held_out_error is not None:
                text += f" ± {self.held_out_error:.2g}"
            text += f" by {self.held_out_by}"
        return text

    def describe_parameters(self) -> str:
        """The parameters as text, such as "alpha 0.1, n_basis 30"."""
        return ", ".join(
            f"{name} {_short(value)}"
            for name, value in self.parameters.items()
            if value is not None
        )


def _short(value: object) -> str:
    """A number with four digits; other values, such as arrays, as text."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def member_table(metric: str, members: Sequence[Mapping[str, Json]]) -> TextTable:
    """Members of AutoRanker: name, score, weight (and weight in the stack of pairs), seconds."""
    has_pairs = any(member.get("pair_weight") for member in members)
    header = ["member", metric, "weight", "seconds"]
    if has_pairs:
        header.insert(3, "in pairs")
    rows = []
    for member in members:
        cells = member_cells(member)
        if has_pairs:
            pair_weight = ""
            if "pair_weight" in member:
                pair_weight = f"{member['pair_weight']:+.3f}"
            cells.insert(3, pair_weight)
        rows.append(cells)
    return TextTable(header, rows)


def member_cells(member: Mapping[str, Json]) -> list[str]:
    """The cells of a member of AutoRanker in a table: name, score, weight, seconds."""
    name = str(member["name"])
    if member["note"]:
        name += f" ({member['note']})"
    seconds = f"{member['seconds']:.1f}"
    if "score" not in member:
        return [name, "", "", seconds]
    return [name, f"{member['score']:.4f}", f"{member['weight']:+.3f}", seconds]


def comparison_table(errors: list[HeldOutErrors]) -> TextTable:
    """Errors on held-out comparisons: kind, number, predictor, share of wrong ones, log loss."""
    header = ["held out", "comparisons", "by the", "wrong", "log loss"]
    rows = []
    for error in errors:
        wrong = f"{error.wrong:.1%} ± {error.standard_error:.1%}"
        count = f"{error.n_comparisons:,}"
        rows.append([error.kind, count, error.predictor, wrong, f"{error.log_loss:.4f}"])
    return TextTable(header, rows, names=(0, 2))
