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
    dates = [f"{d[:4]}-{d[4:6]}-{d[6:]}" for d in (row["tourney_date"] for row in rows)]
    names, ends = np.unique(
        [[row["winner_name"], row["loser_name"]] for row in rows], return_inverse=True
    )
    first, second = ends.reshape(-1, 2).T
    surface = np.array([row["surface"] or "Hard" for row in rows])
    times, one = np.array(dates, "datetime64[s]"), np.ones(len(rows))
    data = PairData(first, second, one, one, names, times=times, contexts={"surface": surface})
    return data, np.array([int(row["tourney_date"][:4]) for row in rows])


def without(data, *, times=True, surface=True):
    """The same matches without what is not asked for."""
    from dataclasses import replace

    return replace(
        data,
        times=data.times if times else None,
        contexts=data.contexts if surface else {},
    )


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
    out = []
    for period in np.unique(periods[periods >= first]):
        board = quiet_rate(data.take(periods < period).compact()[0], **options)
        out.append(losses_of(board, data.take(periods == period)))
    return np.concatenate(out)


def static_ahead(data, periods, first, scales):
    """The same by Bradley and Terry's model, regularized as the scales say."""
    out, plain = [], without(data, times=False, surface=False)
    variance = scales.constant**2 + scales.time**2 + scales.context**2
    for period in np.unique(periods[periods >= first]):
        before = plain.take(periods < period).compact()[0]
        alpha = 0.5 / variance / before.n_pairs
        board = quiet_rate(before, model="bradley-terry", alpha=alpha)
        out.append(losses_of(board, plain.take(periods == period)))
    return np.concatenate(out)


def elo_losses(data, years, step, slope, first, *, followed):
    """By Elo, moved after every match, or frozen at the end of each year."""
    if followed:
        margins = elo_margins(data, step)[0][years >= first]
        return np.logaddexp(0.0, -slope * margins)
    out = []
    for year in range(first, 2020):
        ratings = elo_margins(data.take(years < year), step)[1]
        games = data.take(years == year)
        out.append(np.logaddexp(0.0, -slope * (ratings[games.first] - ratings[games.second])))
    return np.concatenate(out)


def best_elo(data, years, first, last, *, followed):
    """Step and slope of least loss in the years from `first` to `last`, and the losses of all."""
    tried = {
        (step, slope): elo_losses(data, years, step, slope, 2011, followed=followed)
        for step in STEPS
        for slope in SLOPES
    }
    tested = years[years >= 2011]
    chosen = (tested >= first) & (tested <= last)
    best = min(tried, key=lambda key: tried[key][chosen].mean())
    return best, tried[best]


def glicko(data, months, deviation, volatility, tau=0.5):
    """Losses of all matches by Glicko-2, each month from those before it (Glickman 2013)."""
    n = data.n_items
    mu, phi, sigma = np.zeros(n), np.full(n, deviation / UNIT), np.full(n, volatility)
    out = np.zeros(data.n_pairs)
    for month in np.unique(months):
        at = np.flatnonzero(months == month)
        i, j = data.first[at], data.second[at]
        both = 1 / np.sqrt(1 + 3 * (phi[i] ** 2 + phi[j] ** 2) / np.pi**2)
        out[at] = np.logaddexp(0.0, -both * (mu[i] - mu[j]))
        ends, others = np.r_[i, j], np.r_[j, i]
        score = np.repeat([1.0, 0.0], len(at))
        g = 1 / np.sqrt(1 + 3 * phi[others] ** 2 / np.pi**2)
        chance = 1 / (1 + np.exp(-g * (mu[ends] - mu[others])))
        precision = np.bincount(ends, g**2 * chance * (1 - chance), n)
        surprise = np.bincount(ends, g * (score - chance), n)
        played = precision > 0
        v, delta = 1 / precision[played], surprise[played] / precision[played]
        sigma[played] = new_volatility(sigma[played], phi[played], v, delta, tau)
        wide = np.sqrt(phi**2 + sigma**2)
        phi = np.minimum(wide, deviation / UNIT)
        phi[played] = 1 / np.sqrt(1 / wide[played] ** 2 + 1 / v)
        mu[played] += phi[played] ** 2 * surprise[played]
    return out


def new_volatility(sigma, phi, v, delta, tau):
    """Step 5 of Glicko-2 by bisection, for all players at once."""
    a = np.log(sigma**2)

    def f(x):
        e = np.exp(x)
        top = e * (delta**2 - phi**2 - v - e)
        return top / (2 * (phi**2 + v + e) ** 2) - (x - a) / tau**2

    low, high = a - 5.0, a + 5.0
    for _ in range(40):
        middle = (low + high) / 2
        up = f(middle) > 0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return np.exp((low + high) / 4)


def print_losses(title, losses, years):
    """Mean log loss of all years and of those that nothing was chosen on."""
    first = next(iter(losses.values()))
    rows = []
    for name, loss in losses.items():
        late = loss[years >= 2013]
        behind = late - first[years >= 2013]
        error = behind.std() / np.sqrt(len(behind))
        rows.append([name, loss.mean(), late.mean(), behind.mean(), error])
    header = ["method", "2011–2019", "2013–2019", "behind", "± s.e."]
    print_table(title, header, rows, digits=4)


def main(arguments=None):
    """Print both tables."""
    parser = make_parser(__doc__)
    options = parser.parse_args(arguments)
    data, years = read_all(options.data)
    early = data.take(years <= 2012).compact()[0]
    scales = {}
    for name, use in {"time and surface": (True, True), "time": (True, False),
                      "surface": (False, True)}.items():  # fmt: skip
        part = without(early, times=use[0], surface=use[1])
        levels = {each: np.unique(labels) for each, labels in part.contexts.items()}
        scales[name] = select_scales(part, levels, np.empty((part.n_pairs, 0)), "half", None)
    start = time.process_time()
    quiet_rate(data, scales=scales["time and surface"])
    seconds = time.process_time() - start
    test = years >= FIRST
    parts = {"time and surface": data, "time": without(data, surface=False),
             "surface": without(data, times=False)}  # fmt: skip
    losses = {
        f"rate: {name}": ahead(part, years, FIRST, scales=scales[name])
        for name, part in parts.items()
    }
    losses["rate: neither"] = static_ahead(data, years, FIRST, scales["time and surface"])
    by_year, losses["Elo, frozen"] = best_elo(data, years, 2011, 2012, followed=False)
    _, losses["Elo, frozen, best in hindsight"] = best_elo(data, years, 2011, 2019, followed=False)
    print_losses("A year's matches from all years before: log loss", losses, years[test])
    months = data.times.astype("datetime64[M]").astype(int)
    first_month = months[years >= FIRST].min()
    monthly = {
        f"rate: {name}": ahead(parts[name], months, first_month, scales=scales[name])
        for name in ("time and surface", "time")
    }
    follow, monthly["Elo, after every match"] = best_elo(data, years, 2011, 2012, followed=True)
    _, monthly["Elo, best in hindsight"] = best_elo(data, years, 2011, 2019, followed=True)
    early_test = (years == 2011) | (years == 2012)
    best = min(GLICKO, key=lambda g: glicko(data, months, *g)[early_test].mean())
    monthly["Glicko-2, monthly"] = glicko(data, months, *best)[test]
    print_losses("A month's matches from all months before: log loss", monthly, years[test])
    for name, chosen in scales.items():
        print_notes(f"scales of {name}: {describe(chosen)}")
    print_notes(
        f"Elo: step {by_year[0]} and slope {by_year[1]} by year, {follow[0]} and {follow[1]} "
        f"followed; Glicko-2: deviation {best[0]:g}, volatility {best[1]:g}",
        f"one fit of {data.n_pairs} matches of {data.n_items} players: {seconds:.2f} s of one core",
        "chosen on 2011 and 2012 only; 2013–2019 are untouched",
    )


def describe(scales: PriorScales):
    """The scales in words."""
    return (
        f"constant {scales.constant:.2f}, time {scales.time:.2f}, half-life "
        f"{scales.half_life:.0f} days, surface {scales.context:.2f}"
    )


if __name__ == "__main__":
    record(main)
