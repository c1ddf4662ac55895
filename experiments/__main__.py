"""Run all experiments, each in a process of its own: ``make experiments DATA=DIR``.

    python -m experiments [--data DIR] [--again] [--stale] [FOLDER ...]

Every script that records its results is run, with the options below where a table needs some.
Results that were recorded with the present code are not computed again, so an interrupted run can
be continued. A script whose data are missing is named at the end. ``--stale`` runs nothing: it
lists the results that are missing or of older code, and its exit status is 1 if there are any.
"""

import os
import subprocess
import sys

from experiments.shared.command_line import EXPERIMENTS, VARIABLE, is_current, make_parser

OPTIONS = {  # a run for each; the others are run once, without options
    "boards.answers_needed": ("--runs 10",),
    "rankrls07.tables123": ("", "--dataset mq2008"),
    "rankrls09.parses": ("", "--kernel rbf"),
    "corankrls10.parses": ("", "--reading groups", "--kernel rbf"),
    "corankrls10.letor": (
        "",
        "--dataset mq2008 --repeats 3",
        "--reading groups",
        "--reading groups --dataset mq2008",
        "--scored 5 --nus 10000",
        "--scored 5 --nus 10000 --dataset mq2008",
    ),
    "pursuit13.jester": ("--table 1", "--table 2 --draws 3 --users 30 --hold-out 6"),
    "pursuit13.movielens": ("", "--density"),
    "auto_coverage": (
        "--only made",
        "--only mq2008 --repeats 40",
        "--only ohsumed --repeats 40",
    ),
    "metric_weights": (
        "",
        "--only ohsumed,mq2008 --scoring map",
        "--only ohsumed,mq2008 --scoring mrr",
    ),
    "quality_tables": ("--splits 2",),
    "score_tables.drug_target": ("", "--growth"),
    "score_tables.label_ranking": ("--repeats 1",),
    "comparisons.who_wins": (
        "--only pokemon",
        "--only side",
        "--only pokemon-known",
        "--only types",
        "--only order",
        "--only atp",
        "--only chameleons",
    ),
    "sums.clusters": ("--rows 10000000", "--rows 100000000"),
    "sums.engines": ("", "--rows 10000000"),
    "survival.peers": (
        "--only veterans",
        "--only whas500",
        "--only gbsg2",
        "--only flchain",
        "--growth",
    ),
    "uncertainty.coverage": ("--runs 300",),
    "uncertainty.next_pairs": ("--runs 20",),
}


def find_modules(folders=()):
    """Modules under ``experiments`` that record what they print."""
    for path in sorted(EXPERIMENTS.rglob("*.py")):
        names = path.relative_to(EXPERIMENTS).with_suffix("").parts
        is_selected = not folders or names[0] in folders
        records_results = "    record(main)\n" in path.read_text(encoding="utf-8")
        if is_selected and records_results:
            yield ".".join(names)


def find_runs(folders=()):
    """Module and options of every run that records a result."""
    for module in find_modules(folders):
        for words in OPTIONS.get(module, ("",)):
            yield module, words


def run_all(runs, environment, *, again):
    """Run what is not current, or everything; return the commands that failed."""
    failed = []
    for module, words in runs:
        command = [sys.executable, "-m", f"experiments.{module}", *words.split()]
        if is_current(module, words) and not again:
            print("done:", *command[2:])
            continue
        print("$", *command[1:], flush=True)
        process = subprocess.run(command, cwd=EXPERIMENTS.parent, env=environment, check=False)
        if process.returncode:
            failed.append(" ".join(command[2:]))
    return failed


def main(argv=None):
    """Run what is not done yet, or list it."""
    parser = make_parser(__doc__)
    parser.add_argument("folders", nargs="*", help="such as rankrls09; all without")
    parser.add_argument("--again", action="store_true", help="also what the present code has done")
    parser.add_argument("--stale", action="store_true", help="list results of older code")
    options = parser.parse_args(argv)
    runs = list(find_runs(options.folders))
    if options.stale:
        stale = [run for run in runs if not is_current(*run)]
        for module, words in stale:
            print(f"experiments.{module} {words}".rstrip())
        sys.exit(int(bool(stale)))

    environment = {**os.environ, VARIABLE: str(options.data or "")}
    failed = run_all(runs, environment, again=options.again)
    if failed:
        raise SystemExit("These did not finish:\n  " + "\n  ".join(failed))


if __name__ == "__main__":
    main()
