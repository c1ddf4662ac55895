"""Small made-up files of the same form as the real data, so that every experiment can run."""

import gzip
import json
import re

import numpy as np

from experiments.runs.hidden_judgments import RUNS

TOPICS = re.findall(
    r"\S+",
    "acq bop cocoa coffee corn cpi crude dlr earn gnp gold grain interest livestock money-fx "
    "money-supply nat-gas oilseed reserves ship soybean sugar trade veg-oil wheat",
)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        file.write(text)


def write_rows(path, rows, delimiter=",", header=""):
    lines = [delimiter.join(f"{value:g}" for value in row) for row in rows]
    write(path, "\n".join([header, *lines] if header else lines) + "\n")


def write_letor(path, first, rng, n_queries=5, n_items=10):
    lines = []
    for query in range(first, first + n_queries):
        X = rng.uniform(size=(n_items, 4))
        y = np.clip(np.round(3 * X[:, 0] + 0.4 * rng.normal(size=n_items) - 0.5), 0, 2)
        y[:2] = 0, 2
        for row, label in zip(X, y, strict=True):
            features = " ".join(f"{k}:{value:.4f}" for k, value in enumerate(row, 1))
            lines.append(f"{label:.0f} qid:{query} {features}")
    write(path, "\n".join(lines) + "\n")


def write_reuters(folder, rng, n_documents=30):
    for number in range(22):
        documents = []
        for _ in range(n_documents):
            topics = rng.choice(TOPICS, size=2, replace=False)
            words = [
                *(word.replace("-", "") for word in topics),
                *rng.choice(["aa", "bb", "cc"], 4),
            ]
            kind = "TRAIN" if number < 15 else "TEST"
            body = " ".join(words)
            documents.append(
                f'<REUTERS TOPICS="YES" LEWISSPLIT="{kind}"><TOPICS>'
                f"{''.join(f'<D>{topic}</D>' for topic in topics)}</TOPICS>"
                f"<TEXT><TITLE>{body}</TITLE></TEXT></REUTERS>"
            )
        write(folder / f"reut2-{number:03}.sgm.gz", "\n".join(documents))


def make_ratings(rng, n_users=120, n_items=100):
    """Users with 36 to 80 ratings (some with all) of items that all like in about one order."""
    quality = rng.normal(size=n_items)
    ratings = np.clip(np.round(3 + quality + rng.normal(size=(n_users, n_items))), 1, 5)
    for user, count in enumerate(rng.integers(36, 81, size=n_users)):
        if user % 3:
            ratings[user, rng.permutation(n_items)[count:]] = np.nan
    return ratings


def write_ratings(folder, rng):
    ratings = make_ratings(rng)
    counts = (~np.isnan(ratings)).sum(axis=1)
    table = np.column_stack([counts, np.nan_to_num(ratings, nan=99)])
    write_rows(folder / "jester" / "jester-data-1.csv.gz", table)
    users, movies = np.nonzero(~np.isnan(ratings))
    rows = np.column_stack([users + 1, movies + 1, ratings[users, movies], 0 * users])
    write_rows(folder / "movielens100k" / "u.data.gz", rows, "\t")
    people = (f"{k}|{20 + k % 40}|{'MF'[k % 2]}|job{k % 3}|0" for k in range(1, 121))
    write(folder / "movielens100k" / "u.user.gz", "\n".join(people))
    genres = rng.integers(0, 2, size=(100, 19))
    films = (f"{k}|" + "|".join(map(str, row)) for k, row in enumerate(genres, 1))
    write(folder / "movielens100k" / "u.item.gz", "\n".join(films))


def write_comparisons(folder, rng):
    skill = np.linspace(-1, 1, 8)
    rows = [["id", "prompt", "worker", "winner", "left", "right"]]
    for k in range(400):
        a, b = rng.choice(8, size=2, replace=False)
        won = rng.random() < 1 / (1 + np.exp(skill[b] - skill[a]))
        winner = "tie" if k % 5 == 0 else ("left" if won else "right")
        rows.append([k, k % 4, f"w{k % 6}", winner, f"m{a}", f"m{b}"])
    write(
        folder / "llmfao" / "crowd-comparisons.csv.gz",
        "\n".join(",".join(map(str, r)) for r in rows),
    )
    for year in range(2010, 2020):
        lines = ["winner_name,loser_name,tourney_date,match_num"]
        for k in range(60):
            a, b = sorted(rng.choice(8, size=2, replace=False))
            a, b = (b, a) if rng.random() < 0.7 else (a, b)
            lines.append(f"p{a},p{b},{year}0101,{k}")
        write(folder / "atp_tennis" / f"atp_matches_{year}.csv.gz", "\n".join(lines) + "\n")


def write_tables(folder, rng):
    X = rng.normal(size=(40, 3))
    ranks = np.argsort(np.argsort(-(X @ rng.normal(size=(3, 4))), axis=1), axis=1) + 1
    header = ",".join(["A1", "A2", "A3", "L1", "L2", "L3", "L4"])
    write_rows(folder / "label_ranking" / "iris.csv.gz", np.column_stack([X, ranks]), header=header)
    A, B = rng.normal(size=(8, 3)), rng.normal(size=(10, 3))
    Y = (A @ B.T > 0).astype(float)
    for end, matrix in (("admat_dgc", Y), ("simmat_dg", A @ A.T), ("simmat_dc", B @ B.T)):
        rows = [["x", *(f"c{k}" for k in range(matrix.shape[1]))]]
        rows += [[f"r{k}", *map(str, row)] for k, row in enumerate(matrix)]
        path = folder / "drug_target" / "yamanishi" / f"nr_{end}.txt.gz"
        write(path, "\n".join("\t".join(row) for row in rows))
    drugs, targets = (
        ["".join(rng.choice(list("CNO"), size=9)) for _ in range(n)] for n in (16, 10)
    )
    table = [[str(len(set(a) & set(b)) + rng.random()) for b in targets] for a in drugs]
    kiba = folder / "drug_target" / "kiba"
    write(kiba / "ligands_can.txt.gz", json.dumps({f"d{k}": a for k, a in enumerate(drugs)}))
    write(kiba / "proteins.txt.gz", json.dumps({f"t{k}": b for k, b in enumerate(targets)}))
    write(kiba / "kiba_binding_affinity_v2.txt.gz", "\n".join("\t".join(row) for row in table))


def write_sentences(path, rng, n_sentences=12):
    """Three proteins a sentence; the first two interact, with a word that says so between them."""
    lines = []
    for k in range(n_sentences):
        words = [*rng.choice(["aa", "bb"], 2), "P1", "binds", "P2", "cc", "P3"]
        text = " ".join(words)
        lines.append(f'<sentence text="{text}">')
        for name in ("P1", "P2", "P3"):
            at = text.index(name)
            lines.append(f'<entity id="{k}{name}" charOffset="{at}-{at + 2}"/>')
        lines.append(f'<interaction e1="{k}P1" e2="{k}P2"/></sentence>')
    write(path, f"<corpus>{''.join(lines)}</corpus>")


def write_runs(folder, rng, n_queries=12, n_documents=30):
    grades = rng.integers(0, 3, (n_queries, n_documents))
    lines = [f"{q} 0 d{d} {grade}" for (q, d), grade in np.ndenumerate(grades)]
    write(folder / "qrels.txt.gz", "\n".join(lines) + "\n")
    for name in RUNS:
        lines = []
        for query in range(n_queries):
            scores = grades[query] + rng.normal(0, rng.uniform(1, 3), n_documents)
            found = rng.permutation(n_documents)[:20]
            lines += [f"{query} Q0 d{d} 0 {scores[d]:.4f} {name}" for d in found]
        write(folder / f"{name}.top100.gz", "\n".join(lines) + "\n")


def make_data(folder):
    """All files, in this folder."""
    rng = np.random.default_rng(0)
    for k in range(1, 6):
        write_letor(folder / "ohsumed" / "QueryLevelNorm" / f"S{k}.txt.gz", 10 * k, rng)
        write_letor(folder / "mq2008" / f"S{k}.txt.gz", 10 * k, rng)
    for k, part in enumerate(("train", "test")):
        write_letor(folder / "bioinfer_parse" / f"rank_{part}.light.gz", 20 * k, rng, 10, 6)
        write_sentences(folder / "bioinfer_ppi" / f"BioInfer-{part}.xml.gz", rng)
    write_reuters(folder / "reuters21578", rng)
    write_ratings(folder, rng)
    write_comparisons(folder, rng)
    write_tables(folder, rng)
    X = rng.normal(size=(500, 5))
    y = np.clip(np.round(4 + X[:, 0] + rng.normal(size=500)), 1, 7)
    write_rows(folder / "cadata" / "cal_housing.data.gz", np.column_stack([X, y]))
    write_rows(folder / "covtype" / "covtype.csv.gz", np.column_stack([X, y]), header="a,b,c,d,e,f")
    for name, labels in (("alon", ("t", "n")), ("golub", ("AML", "ALL"))):
        is_first = rng.random(40) < 0.5
        X = rng.normal(size=(40, 12)) + is_first[:, None]
        path = folder / "gene_expression" / f"{name}.npz"
        path.parent.mkdir(exist_ok=True)
        np.savez(path, X=X, y=np.where(is_first, *labels))
    write_runs(folder / "scores" / "robust03", rng)
    return folder
