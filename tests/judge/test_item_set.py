"""Items to judge: tables, lines and folders."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("click")

from rankwise.judge.item_set import read_items
from tests.judge.data import write


def test_a_table_gives_names_cells_and_features(tmp_path):
    path = write(tmp_path, "price;Name;note\n9,5;Brie;soft\n14,5;Comté;\n")
    found = read_items(path)
    assert found.names == ["Brie", "Comté"]
    assert [column for column, _ in found.items[0].cells] == ["price", "Name", "note"]
    assert [column for column, _ in found.items[1].cells] == ["price", "Name"]  # a gap says nothing
    assert found.features.shape[0] == 2
    np.testing.assert_allclose(found.features.mean(axis=0), 0, atol=1e-12)
    assert read_items(path, use_features=False).features is None
    only = read_items(path, show=["note", "price"])
    assert [column for column, _ in only.items[0].cells] == ["note", "price"]


def test_lines_and_folders_are_items_too(tmp_path):
    assert read_items(write(tmp_path, "\ufeffone\n\ntwo \n", "a.txt")).names == ["one", "two"]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.PNG").write_bytes(b"png")
    (folder / "y.md").write_text("# y")
    (folder / "other.bin").write_bytes(b"")
    found = read_items(folder)
    assert found.names == ["x", "y"]
    assert found.items[0].image.name == "x.PNG"
    assert found.items[1].cells == (("", "# y"),)


def test_a_folder_does_not_follow_links_out_of_itself(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("about a")
    (folder / "c.md").mkdir()
    (folder / "d.txt").symlink_to(folder / "a.txt")  # a link inside is a file like others
    assert read_items(folder).names == ["a", "d"]
    for name in ("b.txt", "b.png"):
        (folder / name).symlink_to(tmp_path / "secret.txt")
        with pytest.raises(ValueError, match=f"{name} is outside"):
            read_items(folder)
        (folder / name).unlink()


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("name\nx\n", {}, "1 item;"),
        ("name,a\nx,1\nx,2\n", {}, "item 1 has the name of another item"),
        ("name,a\n,1\ny,2\n", {}, "item 1 has no name"),
        ("name,a\nx,\ny,2\n", {"show": ["a"]}, "nothing to show.*x"),
        ("a,b\n1,1\n1,1\n", {}, "unique values"),
        ("name,a\nx,1\ny,2\n", {"name": "nme"}, "no column 'nme'; its columns are name, a"),
        ("name,p\nx,../../etc/passwd\ny,\n", {"image": "p"}, "outside"),
        ("name,p\nx,no.png\ny,\n", {"image": "p"}, "not a picture"),
        ("name,p\nx,items.csv\ny,\n", {"image": "p"}, "not a picture"),
        ("name\n" + "\n".join(f"n{k}" for k in range(2001)), {}, "2,001 items"),
        (f"name,a\nx,{'w' * 100_001}\ny,2\n", {}, "100,000 characters"),
    ],
)
def test_items_that_cannot_be_judged_are_refused(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_items(write(tmp_path, text), **options)


def test_options_of_tables_are_refused_for_lines(tmp_path):
    with pytest.raises(ValueError, match="show= and image= are for tables"):
        read_items(write(tmp_path, "a\nb\n", "a.txt"), show=["x"])
