"""Storage of questions and answers: one SQLite file, from which no answer is ever lost."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from rankwise.formatting import csv_text
from rankwise.judge.item_set import Item

VERSION = 1
APPLICATION = 0x72776A31  # "rwj1": distinguishes the file from those of other programs
OUTCOMES = ("first", "second", "tie")
RESERVED = timedelta(minutes=10)  # during which nobody else is asked about an open pair

BUSY_SECONDS = 10.0  # how long to wait for another process that writes to the same file

#: Statements that make the tables, in order.
SCHEMA = (
    "CREATE TABLE item (code INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest TEXT NOT NULL)",
    """
CREATE TABLE question (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- no number is used twice, even if its row is deleted
    judge TEXT NOT NULL,
    first INTEGER NOT NULL REFERENCES item (code),
    second INTEGER NOT NULL REFERENCES item (code),
    asked TEXT NOT NULL,
    outcome TEXT CHECK (outcome IN ('first', 'second', 'tie')),
    answered TEXT,
    is_undone INTEGER NOT NULL DEFAULT 0,
    CHECK (first <> second)
)""",
    "CREATE UNIQUE INDEX one_open_question ON question (judge) "
    "WHERE outcome IS NULL AND is_undone = 0",
    "CREATE INDEX answers_of_judge ON question (judge, id) "
    "WHERE outcome IS NOT NULL AND is_undone = 0",
)


class Question(NamedTuple):
    """An open question: the judge, and the codes of the two items."""

    id: int
    judge: str
    first: int
    second: int


class Answer(NamedTuple):
    """An answer; the outcome is "first", "second" or "tie"."""

    first: int
    second: int
    outcome: str
    judge: str
    answered: str


class NotOpenError(ValueError):
    """The question has an answer, was undone, or never existed."""


class AnswerStore:
    """Questions and answers in one SQLite file.

    The file has a write-ahead log and full synchronization (SQLite calls fsync at each commit):
    when a method returns, its changes are on disk. Methods may be called from several threads.

    Parameters
    ----------
    path : str or Path
        The file; created if it does not exist.
    items : sequence of Item
        The items. They must be those that the file was created with, unless `accept_changes`.
    accept_changes : bool, default=False
        Whether to continue with new or changed items. Removed items stay in the file with their
        answers, and no more questions are asked about them.

    Examples
    --------
    >>> import tempfile
    >>> from rankwise.judge.item_set import Item
    >>> from rankwise.judge.storage import AnswerStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = AnswerStore(Path(folder) / "a.db", [Item("x", ()), Item("y", ())])
    ...     question = store.ask("Ann", lambda: (0, 1))
    ...     store.answer("Ann", question.id, "second")
    ...     [(c.first, c.second, c.outcome) for c in store.answers()]
    ...     store.close()
    [(0, 1, 'second')]
    """

    def __init__(
        self, path: str | Path, items: Sequence[Item], *, accept_changes: bool = False
    ) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise ValueError(
                f"the folder {self.path.parent} for the answers does not exist; create it, or name "
                "another file."
            )
        self._lock = RLock()
        self._file_ids: list[tuple[int, int]] = []  # of the database and its log
        with self._locked_database():
            self._db = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
            )
        try:
            with self._locked_database():
                self._check_file()
                self._prepare_tables(items, accept_changes)
                self._use_write_ahead_log()
        except BaseException:
            self._db.close()  # the file stays: another process may have begun to write to it
            raise
        self._file_ids = self._read_file_ids()

    def close(self) -> None:
        """Close the file; a copy of it is then complete."""
        with self._lock:
            self._db.close()

    def is_gone(self) -> bool:
        """Whether the file or its write-ahead log was deleted or replaced since it was opened.

        SQLite continues to write to a file that no name refers to.
        """
        was_opened = bool(self._file_ids)
        return was_opened and self._read_file_ids() != self._file_ids

    def rescue(self) -> str:
        """Write all answers to a CSV file if the database is gone, and return a message."""
        path = self.path.with_name(f"{self.path.name}.rescued.csv")
        path.write_text(self.csv(), encoding="utf-8")
        return f"{self.path} was deleted or replaced. All answers are in {path}, for rankwise rank."

    def ask(self, judge: str, choose: Callable[[], tuple[int, int]]) -> Question:
        """Return the open question of the judge, or a new one about the pair of `choose`."""
        with self._write_transaction():
            row = self._db.execute(
                "SELECT id, judge, first, second FROM question "
                "WHERE judge = ? AND outcome IS NULL AND is_undone = 0",
                (judge,),
            ).fetchone()
            if row is not None:  # the judge has an open question
                return Question(*row)
            first, second = choose()
            return self._insert_question(judge, first, second)

    def answer(self, judge: str, question: int, outcome: str) -> None:
        """Store an answer; NotOpenError if this judge has no such open question."""
        if outcome not in OUTCOMES:
            raise ValueError(f"an outcome is one of {', '.join(OUTCOMES)}; got {outcome!r}.")
        with self._write_transaction():
            update = self._db.execute(
                "UPDATE question SET outcome = ?, answered = ? WHERE id = ? AND judge = ? "
                "AND outcome IS NULL AND is_undone = 0",
                (outcome, _utc_text(), question, judge),
            )
            n_updated_rows = update.rowcount
            if n_updated_rows != 1:
                raise NotOpenError(
                    "This question was already answered, or was asked of another judge. Nothing "
                    "was changed; this is the open question."
                )

    def undo(self, judge: str) -> bool:
        """Undo the last answer of the judge; False if there is none.

        The answer stays in the file, marked as undone. The same question is open again, unless
        one of its items was removed.
        """
        with self._write_transaction():
            row = self._db.execute(
                "SELECT id, first, second FROM question WHERE judge = ? AND outcome IS NOT NULL "
                "AND is_undone = 0 ORDER BY id DESC LIMIT 1",
                (judge,),
            ).fetchone()
            if row is None:
                return False
            last_answered, first, second = row
            self._db.execute("UPDATE question SET is_undone = 1 WHERE id = ?", (last_answered,))
            self._db.execute("DELETE FROM question WHERE judge = ? AND outcome IS NULL", (judge,))
            if {first, second} <= self._codes:  # ask again, unless an item was removed
                self._insert_question(judge, first, second)
            return True

    def answers(self) -> list[Answer]:
        """Answers that were not undone, oldest question first."""
        rows = self._fetch_rows(
            "SELECT first, second, outcome, judge, answered FROM question "
            "WHERE outcome IS NOT NULL AND is_undone = 0 ORDER BY id"
        )
        return [Answer(*row) for row in rows]

    def open_pairs(self) -> set[tuple[int, int]]:
        """Pairs of items, smaller code first, of open questions of the last minutes."""
        rows = self._fetch_rows(
            "SELECT min(first, second), max(first, second) FROM question "
            "WHERE outcome IS NULL AND is_undone = 0 AND asked > ?",
            _utc_text(before=RESERVED),
        )
        return set(rows)

    def n_answers(self, judge: str | None = None) -> int:
        """Number of answers that were not undone, of one judge or of all."""
        ((n_answers,),) = self._fetch_rows(
            "SELECT count(*) FROM question WHERE outcome IS NOT NULL AND is_undone = 0 "
            "AND ifnull(?, judge) = judge",  # None: answers of any judge
            judge,
        )
        return int(n_answers)

    def item_names(self) -> list[str]:
        """Names of all items that were ever in this file, by code."""
        rows = self._fetch_rows("SELECT name FROM item ORDER BY code")
        return [name for (name,) in rows]

    def csv(self) -> str:
        """All answers that were not undone, one per line, as read by `rankwise rank`."""
        names = self.item_names()
        rows = []
        for answer in self.answers():
            first_name = names[answer.first]
            second_name = names[answer.second]
            rows.append((first_name, second_name, answer.outcome, answer.judge, answer.answered))
        return csv_text(["first", "second", "outcome", "judge", "answered"], rows)

    def _fetch_rows(self, query: str, *values: str | None) -> list[Any]:
        with self._locked_database():
            return self._db.execute(query, values).fetchall()

    def _is_empty(self) -> bool:
        """Whether no program has written to the database; ValueError if another program has.

        One statement, so that the three numbers are of one state of a file that another process
        may be writing.
        """
        application, version, n_objects = self._db.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if (application, version, n_objects) == (0, 0, 0):
            return True
        is_own_database = (application, version) == (APPLICATION, VERSION)
        if not is_own_database:
            raise ValueError(
                f"{self.path} is a database of another program, or of another version of rankwise; "
                "name another file for the answers."
            )
        return False

    def _check_file(self) -> None:
        """Raise an error if the file is damaged or of another program."""
        if self._is_empty():
            return
        (result_of_check,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        if result_of_check != "ok":
            raise sqlite3.DatabaseError(result_of_check)

    def _prepare_tables(self, items: Sequence[Item], accept_changes: bool) -> None:
        """Create the tables of a new file and store the items, in one transaction.

        If several processes create the same file, one of them creates the tables. The others wait
        for its transaction.
        """
        self._db.execute("PRAGMA synchronous = FULL")
        with self._write_transaction():
            is_new = self._is_empty()
            if is_new:
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")
                for statement in SCHEMA:
                    self._db.execute(statement)
            self._store_items(items, accept_changes=is_new or accept_changes)

    def _use_write_ahead_log(self) -> None:
        """Switch to the write-ahead log; the file remembers it.

        SQLite does not wait if another process holds the file at this step, so it is repeated.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                primary_code = error.sqlite_errorcode & 0xFF  # without the extended part
                is_busy = primary_code == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        self._db.execute("SELECT count(*) FROM item").fetchone()  # makes the file of the log

    def _store_items(self, items: Sequence[Item], *, accept_changes: bool) -> None:
        """Compare the items with those in the file, and store changes, inside a transaction."""
        stored_digests = dict(self._db.execute("SELECT name, digest FROM item ORDER BY code"))
        digests = {item.name: item.digest for item in items}
        new = [name for name in digests if name not in stored_digests]
        removed = [name for name in stored_digests if name not in digests]
        changed = []
        for name, digest in digests.items():
            if name in stored_digests and stored_digests[name] != digest:
                changed.append(name)
        differing = new + removed + changed
        if differing and not accept_changes:
            raise ValueError(
                f"the items are not those that {self.path} was created with: {len(new)} new, "
                f"{len(removed)} removed, {len(changed)} changed, for example {differing[0]!r}. "
                "Use the old items, choose a new file, or pass accept_changes=True to continue "
                "with these."
            )
        self._db.executemany(  # the code of an item is the number of items before it
            "INSERT INTO item (code, name, digest) SELECT count(*), ?, ? FROM item",
            [(name, digests[name]) for name in new],
        )
        self._db.executemany(
            "UPDATE item SET digest = ? WHERE name = ?",
            [(digests[name], name) for name in changed],
        )
        self._db.executemany(  # nobody can answer a question about a removed item
            "DELETE FROM question WHERE outcome IS NULL AND "
            "? IN (SELECT name FROM item WHERE code IN (first, second))",
            [(name,) for name in removed],
        )
        all_names = [*stored_digests, *new]
        self._codes = {code for code, name in enumerate(all_names) if name in digests}

    def _read_file_ids(self) -> list[tuple[int, int]]:
        """Device and inode of the file and its log, which identify them."""
        file_ids = []
        write_ahead_log = Path(f"{self.path}-wal")
        for path in (self.path, write_ahead_log):
            with suppress(OSError):  # a file that does not exist has no id
                status = path.stat()
                file_ids.append((status.st_dev, status.st_ino))
        return file_ids

    def _insert_question(self, judge: str, first: int, second: int) -> Question:
        insertion = self._db.execute(
            "INSERT INTO question (judge, first, second, asked) VALUES (?, ?, ?, ?)",
            (judge, first, second, _utc_text()),
        )
        assert insertion.lastrowid is not None
        return Question(insertion.lastrowid, judge, first, second)

    @contextmanager
    def _write_transaction(self) -> Iterator[None]:
        """Run one transaction, which is on disk at the end, or undone completely."""
        with self._locked_database():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                if self.is_gone():
                    raise OSError(f"{self.path} was deleted; this answer is not stored.")
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _locked_database(self) -> Iterator[None]:
        """Exclude other threads, and turn errors of SQLite into messages with advice."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            if str(error) == "file is not a database":
                raise OSError(
                    f"{self.path}: this is not a database of answers; name another file with "
                    "database=, or restore a copy."
                ) from error
            raise OSError(
                f"{self.path}: {error}; this change was not stored. Free disk space, check the "
                "permissions, or close the program that uses the file. If the file is damaged, "
                f"restore a copy, or recover its contents: sqlite3 {self.path} .recover"
            ) from error


def _utc_text(before: timedelta = timedelta()) -> str:
    time = datetime.now(UTC) - before
    return time.isoformat(timespec="milliseconds")
