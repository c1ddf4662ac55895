"""Options of `rankwise rank`: columns of comparisons, and how items are rated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rankwise.cli.command import FILE, option, option_group
from rankwise.cli.shared_options import COMPARISONS, OUTPUT, confidence_option, split_names

if TYPE_CHECKING:
    from rankwise.datasets.pair_data import PairColumns

TIME = "Time"  # section of the help


@dataclass(frozen=True)
class ComparisonOptions:
    """Columns and files that only boards use."""

    weight: str | None
    board_per: str | None
    cluster: str | None
    covariates: tuple[str, ...]
    delimiter: str | None
    no_header: bool
    item_features: Path | None
    prior: tuple[Path, ...]
    item: str | None
    ranking: str | None
    place: str
    places: tuple[str, ...]
    unlisted: str
    time: str | None
    context: tuple[str, ...]
    team_separator: str | None
    team_weights: tuple[str, ...]

    @property
    def item_column(self) -> str:
        """Column of the items of rankings, features and priors."""
        return self.item or "item"

    def are_named(self) -> bool:
        """Whether an option says that the file has comparisons or rankings."""
        options = (
            self.ranking,
            self.places,
            self.covariates,
            self.context,
            self.prior,
            self.item_features,
            self.board_per,
            self.cluster,
            self.weight,
            self.time,
            self.team_separator,
            self.team_weights,
        )
        return any(options)

    def columns(self) -> PairColumns:
        """The arguments of `rankwise.datasets.read_pairs`."""
        columns: PairColumns = {
            "weight": self.weight,
            "group": self.board_per,
            "cluster": self.cluster,
            "item": self.item_column,
            "ranking": self.ranking,
            "place": self.place,
            "places": split_names(self.places) or None,
            "unlisted": self.unlisted,
            "time": self.time,
            "team_separator": self.team_separator,
            "team_weights": split_names(self.team_weights) or None,
        }
        if self.covariates:
            columns["covariates"] = split_names(self.covariates)
        if self.context:
            columns["context"] = split_names(self.context)
        return columns


comparison_options = option_group(
    ComparisonOptions,
    "comparisons",
    option(
        "--weight",
        metavar="COLUMN",
        section=COMPARISONS,
        help="Column of comparison weights.",
    ),
    option(
        "--board-per",
        metavar="COLUMN",
        section=COMPARISONS,
        is_advanced=True,
        help="Make one board for each value of this column.",
    ),
    option(
        "--item-features",
        metavar="FILE",
        type=FILE,
        section=COMPARISONS,
        is_advanced=True,
        help="Table with features of the items.",
    ),
    option(
        "--cluster",
        metavar="COLUMN",
        section=COMPARISONS,
        is_advanced=True,
        help="Column of clusters of dependent comparisons, such as users or matches.",
    ),
    option(
        "--covariates",
        metavar="COLUMNS",
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Covariates: numeric (from the first side's view) or categorical.",
    ),
    option(
        "--delimiter",
        metavar="CHARACTER",
        section=COMPARISONS,
        is_advanced=True,
        help="Column separator of a text table; detected by default.",
    ),
    option(
        "--no-header",
        is_flag=True,
        section=COMPARISONS,
        is_advanced=True,
        help="The first line has no names; columns are called 0, 1, 2, …",
    ),
    option(
        "--prior",
        metavar="FILE",
        type=FILE,
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Prior ratings, such as those of an LLM judge, as rank -o writes them; repeatable.",
    ),
    option(
        "--item",
        metavar="COLUMN",
        section=COMPARISONS,
        help="Column of items in rankings and scores; default: item.",
    ),
    option(
        "--ranking",
        metavar="COLUMN",
        section=COMPARISONS,
        is_advanced=True,
        help="Column of rankings, such as races or ballots; one item per row.",
    ),
    option(
        "--place",
        metavar="COLUMN",
        default="place",
        section=COMPARISONS,
        is_advanced=True,
        help="Column of places in the ranking; an empty cell or DNF is below all places.",
    ),
    option(
        "--places",
        metavar="COLUMNS",
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Columns of the best item, the second best, …; one ranking per row.",
    ),
    option(
        "--unlisted",
        metavar="absent|last",
        default="absent",
        section=COMPARISONS,
        is_advanced=True,
        help="Whether items that a ranking does not list did not take part, or are last.",
    ),
    option(
        "--time",
        metavar="COLUMN",
        section=TIME,
        is_advanced=True,
        help="Column of dates or numbers; or rows, the order of the rows.",
    ),
    option(
        "--context",
        metavar="COLUMNS",
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Conditions under which strength may differ, such as the surface of a court.",
    ),
    option(
        "--team-separator",
        metavar="TEXT",
        section=COMPARISONS,
        is_advanced=True,
        help="Text between the members of a team, such as +; the members are rated.",
    ),
    option(
        "--team-weights",
        metavar="A,B",
        multiple=True,
        section=COMPARISONS,
        is_advanced=True,
        help="Columns of member weights of each side, such as the share of the time played.",
    ),
)


@dataclass(frozen=True)
class RatingOptions:
    """How items are rated: options of `rankwise.leaderboard.rate`."""

    rating_model: str | None
    ties: str
    alpha: str | None
    side: bool
    reweight: bool
    confidence: float
    half_life: float | None
    rating_scale: str
    anchor: str | None
    sort_by: str
    min_comparisons: int


rating_options = option_group(
    RatingOptions,
    "rating",
    option(
        "--rating-model",
        metavar="NAME",
        help="bradley-terry, least-squares or plackett-luce; default: by the outcomes.",
    ),
    option(
        "--ties",
        metavar="NAME",
        default="half",
        is_advanced=True,
        help="Model of ties: half; davidson with bradley-terry.",
    ),
    option(
        "--alpha",
        metavar="auto|X",
        is_advanced=True,
        help="Regularization; default: almost none. auto selects it by leave-one-comparison-out.",
    ),
    option(
        "--side",
        is_flag=True,
        is_advanced=True,
        help="Estimate the advantage of the first side and remove it.",
    ),
    option(
        "--reweight",
        is_flag=True,
        is_advanced=True,
        help="Weight judges by their agreement with the other judges.",
    ),
    confidence_option,
    option(
        "--half-life",
        metavar="DAYS",
        type=float,
        section=TIME,
        is_advanced=True,
        help="Half-life of rating changes; default: selected on later comparisons.",
    ),
    option(
        "--rating-scale",
        metavar="NAME",
        default="margin",
        section=OUTPUT,
        help="Unit of the ratings: margin (unit of the model), logit or elo.",
    ),
    option(
        "--anchor",
        metavar="ITEM",
        section=OUTPUT,
        is_advanced=True,
        help="Item with rating 0, or 1000 Elo points.",
    ),
    option(
        "--sort-by",
        metavar="rating|lower",
        default="rating",
        section=OUTPUT,
        is_advanced=True,
        help="Rank by the rating, or by the lower end of its interval.",
    ),
    option(
        "--min-comparisons",
        metavar="N",
        type=int,
        default=0,
        section=OUTPUT,
        is_advanced=True,
        help="Items with fewer comparisons are listed without a rank.",
    ),
)
