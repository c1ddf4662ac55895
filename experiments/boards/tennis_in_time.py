"""Tennis: who wins, from ratings that change with time and differ between surfaces.

    python -m experiments.boards.tennis_in_time [--data DIR]

ATP matches of 2010–2019, log loss of every match from those before: (a) a year from all years
before it, (b) a month from all months before it, beside methods that move after every match or
month. `rate` with time and surface, with one of them, and without; Elo and Glicko-2
(Glickman 2013, a rating period is a month). Scales of `rate`, the step of Elo, and deviation and
volatility of Glicko-2 are chosen on the matches of 2011 and 2012, by those before them. A player
who is new is average. Error bars are standard errors of the difference to the first row, match by
match. Chances of Elo have a slope that is chosen on 2011 and 2012 as well.
"""

import time
import warnings
from dataclasses import replace

import numpy as np

from experiments.boards.tennis import read_matches
from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import PairData
from rankwise.leaderboard import PriorScales, rate
from rankwise.leaderboard.backtesting import board_probabilities
from rankwise.leaderboard.forecast import elo_margins
from rankwise.leaderboard.models.dynamic import select_scales

FIRST = 2011  # that is predicted
STEPS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35)
SLOPES = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)
GLICKO = [(rd, vol) for rd in (150.0, 250.0, 350.0) for vol in (0.03, 0.06, 0.1)]
UNIT = 173.7178  # Elo points of Glicko-2's scale


def read_all(data):
    """All matches in the order of time, the winner first, and the year of each."""
    rows = read_matches(data)
    dates = [row["tourney_date"] for row in rows]  # such as 20190131
    iso_dates = [f"{date[:4]}-{date[4:6]}-{date[6:]}" for date in dates]
    names, codes = np.unique(
        [[row["winner_name"], row["loser_name"]] for row in rows], return_inverse=True
    )
    winner, loser = codes.reshape(-1, 2).T
    surface = np.array([row["surface"] or "Hard" for row in rows])
    times = np.array(iso_dates, "datetime64[s]")
    ones = np.ones(len(rows))
    matches = PairData(winner, loser, ones, ones, names, times=times, contexts={"surface": surface})
    return matches, np.array([int(date[:4]) for date in dates])


def without(data, *, times=True, surface=True):
    """The same matches without what is not asked for."""
    if not times:
        data = replace(data, times=None)
    if not surface:
        data = replace(data, contexts={})
    return data


def losses_of(board, later):
    """−log chance of the winner."""
    return -np.log(board_probabilities(board, later)[:, 0])


def quiet_rate(data, **options):
    """A board without intervals; what nothing connects is no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return rate(data, intervals=False, **options)


def ahead(data, periods, first, **options):
    """Losses of all periods from `first` on, each by a board of all before."""
    losses = []
    for period in np.unique(periods[periods >= first]):
        board = quiet_rate(data.take(periods < period).compact()[0], **options)
        losses.append(losses_of(board, data.take(periods == period)))
    return np.concatenate(losses)


def static_ahead(data, periods, first, scales):
    """The same by Bradley and Terry's model, regularized as the scales say."""
    losses = []
    static_data = without(data, times=False, surface=False)
    variance = scales.constant**2 + scales.time**2 + scales.context**2
    for period in np.unique(periods[periods >= first]):
        before = static_data.take(periods < period).compact()[0]
        alpha = 0.5 / variance / before.n_pairs
        board = quiet_rate(before, model="bradley-terry", alpha=alpha)
        losses.append(losses_of(board, static_data.take(periods == period)))
    return np.concatenate(losses)


def elo_losses(data, years, step, slope, first, *, followed):
    """By Elo, moved after every match, or frozen at the end of each year."""
    if followed:
        margins = elo_margins(data, step)[0][years >= first]
        return np.logaddexp(0.0, -slope * margins)
    losses = []
    for year in range(first, 2020):
        _, ratings = elo_margins(data.take(years < year), step)
        matches = data.take(years == year)
        margins = ratings[matches.first] - ratings[matches.second]
        losses.append(np.logaddexp(0.0, -slope * margins))
    return np.concatenate(losses)


def best_elo(data, years, first, last, *, followed):
    """Step and slope of least loss in the years from `first` to `last`, and the losses of all."""
    losses_of_settings = {
        (step, slope): elo_losses(data, years, step, slope, FIRST, followed=followed)
        for step in STEPS
        for slope in SLOPES
    }
    tested_years = years[years >= FIRST]
    is_selected = (tested_years >= first) & (tested_years <= last)
    best = min(losses_of_settings, key=lambda key: losses_of_settings[key][is_selected].mean())
    return best, losses_of_settings[best]


def glicko(data, months, deviation, volatility, tau=0.5):
    """Losses of all matches by Glicko-2, each month from those before it (Glickman 2013)."""
    n = data.n_items
    mu = np.zeros(n)  # rating, rating deviation and volatility of each player, on Glicko-2's scale
    phi = np.full(n, deviation / UNIT)
    sigma = np.full(n, volatility)
    losses = np.zeros(data.n_pairs)
    for month in np.unique(months):
        matches = np.flatnonzero(months == month)
        winner = data.first[matches]
        loser = data.second[matches]
        # predicted before the update; uncertain ratings shrink the margin
        shrinkage = 1 / np.sqrt(1 + 3 * (phi[winner] ** 2 + phi[loser] ** 2) / np.pi**2)
        losses[matches] = np.logaddexp(0.0, -shrinkage * (mu[winner] - mu[loser]))

        player = np.r_[winner, loser]
        opponent = np.r_[loser, winner]
        score = np.repeat([1.0, 0.0], len(matches))
        g = 1 / np.sqrt(1 + 3 * phi[opponent] ** 2 / np.pi**2)
        chance = 1 / (1 + np.exp(-g * (mu[player] - mu[opponent])))
        precision = np.bincount(player, g**2 * chance * (1 - chance), n)
        surprise = np.bincount(player, g * (score - chance), n)
        played = precision > 0
        v = 1 / precision[played]  # steps 3 and 4: variance and estimated improvement
        delta = surprise[played] / precision[played]
        sigma[played] = new_volatility(sigma[played], phi[played], v, delta, tau)
        # steps 6 and 7: the deviation grows with time and shrinks with matches
        phi_before_matches = np.sqrt(phi**2 + sigma**2)
        phi = np.minimum(phi_before_matches, deviation / UNIT)
        phi[played] = 1 / np.sqrt(1 / phi_before_matches[played] ** 2 + 1 / v)
        mu[played] += phi[played] ** 2 * surprise[played]
    return losses


def new_volatility(sigma, phi, v, delta, tau):
    """Step 5 of Glicko-2 by bisection, for all players at once."""
    log_variance = np.log(sigma**2)

    def f(x):
        """Decreasing in x; its root is the new log variance."""
        variance = np.exp(x)
        numerator = variance * (delta**2 - phi**2 - v - variance)
        denominator = 2 * (phi**2 + v + variance) ** 2
        return numerator / denominator - (x - log_variance) / tau**2

    low = log_variance - 5.0
    high = log_variance + 5.0
    for _ in range(40):
        middle = (low + high) / 2
        is_below_root = f(middle) > 0
        low = np.where(is_below_root, middle, low)
        high = np.where(is_below_root, high, middle)
    return np.exp((low + high) / 4)  # square root of the exponential of the middle


def print_losses(title, losses, years):
    """Mean log loss of all years and of those that nothing was chosen on."""
    reference = next(iter(losses.values()))
    is_untouched = years >= 2013
    rows = []
    for name, loss in losses.items():
        behind = loss[is_untouched] - reference[is_untouched]
        standard_error = behind.std() / np.sqrt(len(behind))
        rows.append([name, loss.mean(), loss[is_untouched].mean(), behind.mean(), standard_error])
    header = ["method", "2011–2019", "2013–2019", "behind", "± s.e."]
    print_table(title, header, rows, digits=4)


def choose_scales(variants, years):
    """Scales of each variant of the matches, chosen on those up to 2012."""
    scales = {}
    for name, variant in variants.items():
        early = variant.take(years <= 2012).compact()[0]
        levels = {context: np.unique(labels) for context, labels in early.contexts.items()}
        no_covariates = np.empty((early.n_pairs, 0))
        scales[name] = select_scales(early, levels, no_covariates, "half", None)
    return scales


def main(arguments=None):
    """Print both tables."""
    options = make_parser(__doc__).parse_args(arguments)
    data, years = read_all(options.data)
    variants = {
        "time and surface": data,
        "time": without(data, surface=False),
        "surface": without(data, times=False),
    }
    scales = choose_scales(variants, years)
    start = time.process_time()
    quiet_rate(data, scales=scales["time and surface"])
    seconds = time.process_time() - start

    elo_of_years = print_yearly_losses(variants, years, scales)
    elo_of_matches, glicko_setting = print_monthly_losses(variants, years, scales)
    for name, chosen in scales.items():
        print_notes(f"scales of {name}: {describe(chosen)}")
    deviation, volatility = glicko_setting
    print_notes(
        f"Elo: step {elo_of_years[0]} and slope {elo_of_years[1]} by year, {elo_of_matches[0]} "
        f"and {elo_of_matches[1]} followed; Glicko-2: deviation {deviation:g}, "
        f"volatility {volatility:g}",
        f"one fit of {data.n_pairs} matches of {data.n_items} players: {seconds:.2f} s of one core",
        "chosen on 2011 and 2012 only; 2013–2019 are untouched",
    )


def print_yearly_losses(variants, years, scales):
    """The table of years from all years before; returns step and slope of Elo."""
    data = variants["time and surface"]
    losses = {
        f"rate: {name}": ahead(variant, years, FIRST, scales=scales[name])
        for name, variant in variants.items()
    }
    losses["rate: neither"] = static_ahead(data, years, FIRST, scales["time and surface"])
    chosen, losses["Elo, frozen"] = best_elo(data, years, 2011, 2012, followed=False)
    _, losses["Elo, frozen, best in hindsight"] = best_elo(data, years, 2011, 2019, followed=False)
    title = "A year's matches from all years before: log loss"
    print_losses(title, losses, years[years >= FIRST])
    return chosen


def print_monthly_losses(variants, years, scales):
    """The table of months from all months before; returns settings of Elo and Glicko-2."""
    data = variants["time and surface"]
    is_tested = years >= FIRST
    months = data.times.astype("datetime64[M]").astype(int)
    first_month = months[is_tested].min()
    losses = {
        f"rate: {name}": ahead(variants[name], months, first_month, scales=scales[name])
        for name in ("time and surface", "time")
    }
    elo_setting, losses["Elo, after every match"] = best_elo(data, years, 2011, 2012, followed=True)
    _, losses["Elo, best in hindsight"] = best_elo(data, years, 2011, 2019, followed=True)
    is_early = (years == 2011) | (years == 2012)
    glicko_setting = min(GLICKO, key=lambda g: glicko(data, months, *g)[is_early].mean())
    losses["Glicko-2, monthly"] = glicko(data, months, *glicko_setting)[is_tested]
    title = "A month's matches from all months before: log loss"
    print_losses(title, losses, years[is_tested])
    return elo_setting, glicko_setting


def describe(scales: PriorScales):
    """The scales in words."""
    return (
        f"constant {scales.constant:.2f}, time {scales.time:.2f}, half-life "
        f"{scales.half_life:.0f} days, surface {scales.context:.2f}"
    )


if __name__ == "__main__":
    record(main)
