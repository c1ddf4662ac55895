"""``rankwise export``: a file that other programs read, or one message and no file."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from rankwise import RankRLS
from rankwise.persistence import save
from tests.cli.shell import fail, succeed

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TABLE = "query,score,price,color\n" + "".join(
    f"q{k // 8},{k % 5},{'' if k % 7 == 3 else k * k % 11},{['red', 'blue', ''][k % 3]}\n"
    for k in range(40)
)


@pytest.fixture(scope="module")
def table_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    data, model = folder / "data.csv", folder / "model.rw"
    data.write_text(TABLE)
    succeed("train", data, "--target", "score", "--group", "query", "-o", model)
    return model


def test_a_model_of_a_messy_table_becomes_a_graph_of_its_columns(table_model, tmp_path):
    done = succeed("export", table_model, tmp_path / "model.onnx")
    assert done.output == ""
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert [one.name for one in session.get_inputs()] == ["price", "color"]
    succeed("predict", table_model, table_model.parent / "data.csv", "-o", tmp_path / "scores.txt")
    rows = [line.split(",") for line in TABLE.splitlines()[1:]]
    price = np.array([[float(row[2] or "nan")] for row in rows])
    color = np.array([[row[3]] for row in rows], dtype=object)
    (found,) = session.run(["scores"], {"price": price, "color": color})
    expected = [float(line.split()[-1]) for line in (tmp_path / "scores.txt").read_text().split()]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_target_can_be_said_in_words_and_the_file_by_either_name(table_model, tmp_path):
    for k, arguments in enumerate((["-o", "{}"], ["{}"])):
        path = tmp_path / f"graph{k}"
        named = [argument.format(path) for argument in arguments]
        succeed("export", table_model, *named, "--to", "onnx")
        kinds = {one.type for one in onnxruntime.InferenceSession(str(path)).get_inputs()}
        assert kinds == {"tensor(double)", "tensor(string)"}
    done = succeed("export", table_model, "-o", "-", "--to", "onnx")
    assert onnx.load_from_string(done.stdout_bytes).producer_name == "rankwise"


@pytest.mark.parametrize("to", ["json", "solr", "opensearch", "elasticsearch"])
def test_weights_cannot_say_what_a_table_needs_and_the_message_points_to_onnx(to, table_model):
    message = fail("export", table_model, "--to", to)
    assert "categories or missing values, which cannot be folded into weights" in message
    assert "rankwise export MODEL MODEL.onnx" in message


def test_what_cannot_be_a_graph_is_one_message_and_no_file(tmp_path):
    model = tmp_path / "model.rw"
    save(RankRLS(kernel="precomputed").fit(np.eye(4), [1, 2, 3, 4]), model)
    message = fail("export", model, tmp_path / "model.onnx")
    assert message.startswith("the kernel 'precomputed' cannot be written to ONNX")
    assert [file.name for file in tmp_path.iterdir()] == ["model.rw"]


def test_odd_options_are_refused_before_the_model_is_read(table_model, tmp_path):
    out = tmp_path / "model.onnx"
    assert "pass one of them" in fail("export", table_model, out, "-o", out)
    assert "pass --output, such as model.onnx" in fail("export", table_model, "--to", "onnx")
    assert not out.exists()


def test_names_of_the_features_are_in_the_file(tmp_path):
    (tmp_path / "data.csv").write_text(
        "y,size,age\n" + "".join(f"{k},{k * 7 % 5}.5,{k * 3 % 4}.5\n" for k in range(12))
    )
    model, out = tmp_path / "model.rw", tmp_path / "model.onnx"
    succeed("train", tmp_path / "data.csv", "--target", "y", "-o", model)
    succeed("export", model, out)
    facts = {entry.key: entry.value for entry in onnx.load(str(out)).metadata_props}
    assert json.loads(facts["feature_names"]) == ["size", "age"]


def test_without_the_extra_one_line_says_how_to_install_it(table_model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    message = fail("export", table_model, tmp_path / "model.onnx")
    assert "pip install onnx" in message
