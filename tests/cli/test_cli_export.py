"""``rankwise export``: a file that other programs read, or one message and no file."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from rankwise import RankRLS
from rankwise.persistence import load, save
from tests.cli.shell import fail, shell, succeed

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
        succeed("export", table_model, *named, "--to", "onnx", "--float32")
        kinds = {one.type for one in onnxruntime.InferenceSession(str(path)).get_inputs()}
        assert kinds == {"tensor(float)", "tensor(string)"}
    done = succeed("export", table_model, "-o", "-", "--to", "onnx")
    assert onnx.load_from_string(done.stdout_bytes).producer_name == "rankwise"


@pytest.mark.parametrize("to", ["json", "solr", "opensearch"])
def test_weights_cannot_say_what_a_table_needs_and_the_message_points_to_onnx(to, table_model):
    message = fail("export", table_model, "--to", to)
    assert "a step ColumnTransformer cannot be folded into weights" in message
    assert "rankwise export MODEL MODEL.onnx" in message


def test_what_cannot_be_a_graph_is_one_message_and_no_file(tmp_path):
    model = tmp_path / "model.rw"
    save(RankRLS(kernel="precomputed").fit(np.eye(4), [1, 2, 3, 4]), model)
    message = fail("export", model, tmp_path / "model.onnx")
    assert message.startswith("kernel='precomputed' has no items to compute kernel values with.")
    assert [file.name for file in tmp_path.iterdir()] == ["model.rw"]


def test_odd_options_are_refused_before_the_model_is_read(table_model, tmp_path):
    out = tmp_path / "model.onnx"
    assert "two files to write" in fail("export", table_model, out, "-o", out)
    assert "--float32 is for ONNX" in fail("export", table_model, "--float32")
    assert "name a file, such as model.onnx" in fail("export", table_model, "--to", "onnx")
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


def test_the_command_reads_models_without_importing_all_of_scikit_learn(table_model, tmp_path):
    code = (
        "import sys; from rankwise.cli import main; sys.argv[1:] = {!r}\n"
        "try: main()\nexcept SystemExit: pass\n"
        "names = 'sklearn skops sklearn.utils._testing sklearn.neural_network'\n"
        "print(*(name for name in names.split() if name in sys.modules))"
    )
    data, out = table_model.parent / "data.csv", tmp_path / "scores.txt"
    done = shell(code=code.format(["predict", str(table_model), str(data), "-o", str(out)]))
    assert done.stdout.split() == ["sklearn", "skops"], done.stderr
    done = shell(code=code.format(["info", str(table_model)]))
    assert done.stdout.splitlines()[-1] == "", done.stderr  # neither of them


def test_skops_keeps_its_list_of_trusted_classes_outside_of_the_command(table_model):
    code = f"from rankwise.persistence import load; load({str(table_model)!r})\n"
    code += "import skops.io._trusted_types as t; print(len(t.SKLEARN_ESTIMATOR_TYPE_NAMES) > 100)"
    assert shell(code=code).stdout.split() == ["True"]
    assert load(table_model) is not None
