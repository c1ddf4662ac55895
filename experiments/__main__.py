"""Run all experiments, each in a process of its own: ``make experiments DATA=DIR``.

    python -m experiments [--data DIR] [--again] [FOLDER ...]

Every script that records its results is run, with the options below where a table needs some.
What has been recorded at this commit is not run again, so an interrupted run goes on where it
stopped. A script whose data are missing is named at the end.
"""

import os
import subprocess
import sys

from experiments.shared.command_line import EXPERIMENTS, VARIABLE, commit, make_parser, result_path

OPTIONS = {  # a run for each; the others are run once, without options
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
    "score_tables.drug_target": ("", "--growth"),
    "comparisons.who_wins": (
        "--only pokemon",
        "--only side",
        "--only pokemon-known",
        "--only types",
        "--only order",
        "--only atp",
        "--only chameleons",
    ),
    "sums.engines": ("", "--rows 10000000"),
    "survival.peers": ("", "--growth"),
    "uncertainty.next_pairs": ("--runs 20",),
}


def find_modules(folders=()):
    """Modules under ``experiments`` that record what they print."""
    for path in sorted(EXPERIMENTS.rglob("*.py")):
        parts = path.relative_to(EXPERIMENTS).with_suffix("").parts
        is_wanted = not folders or parts[0] in folders
        if is_wanted and "    record(main)\n" in path.read_text(encoding="utf-8"):
            yield ".".join(parts)


def is_done(module, options):
    """Whether this commit has recorded it already."""
    path = result_path(module, options)
    return path.is_file() and f"commit {commit()}," in path.read_text(encoding="utf-8")


def main(argv=None):
    """Run what is not done yet."""
    parser = make_parser(__doc__)
    parser.add_argument("folders", nargs="*", help="such as rankrls09; all without")
    parser.add_argument("--again", action="store_true", help="also what this commit has done")
    options = parser.parse_args(argv)
    environment = {**os.environ, VARIABLE: str(options.data or "")}
    failed = []
    for module in find_modules(options.folders):
        for words in OPTIONS.get(module, ("",)):
            command = [sys.executable, "-m", f"experiments.{module}", *words.split()]
            if is_done(module, words) and not options.again:
                print("done:", *command[2:])
                continue
            print("$", *command[1:], flush=True)
            done = subprocess.run(command, cwd=EXPERIMENTS.parent, env=environment, check=False)
            if done.returncode:
                failed.append(" ".join(command[2:]))
    if failed:
        raise SystemExit("These did not finish:\n  " + "\n  ".join(failed))


if __name__ == "__main__":
    main()
