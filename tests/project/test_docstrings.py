"""Public objects are documented: a summary, every parameter, what comes back, a shown result."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

from rankwise import AutoRanker
from rankwise.auto.comparison_members import COMPARISON_MEMBERS
from rankwise.auto.members import CANDIDATE_MEMBERS
from rankwise.datasets.pair_data import PairColumns

MODULES = [
    "rankwise",
    "rankwise.datasets",
    "rankwise.distributed",
    "rankwise.graphs",
    "rankwise.inspection",
    "rankwise.judge",
    "rankwise.leaderboard",
    "rankwise.losses",
    "rankwise.metrics",
    "rankwise.model_selection",
    "rankwise.persistence",
    "rankwise.plot",
    "rankwise.preprocessing",
    "rankwise.report",
    "rankwise.uncertainty",
]
LONGEST_SUMMARY = 92


def import_public(module):
    try:
        return import_module(module)
    except ImportError as error:
        pytest.skip(str(error))


def public_objects(module):
    """Classes and functions of a module by name, and the methods that rankwise defines."""
    package = import_public(module)
    for name in getattr(package, "__all__", []):
        value = getattr(package, name)
        if inspect.isclass(value):
            yield name, value
            yield from public_methods(name, value)
        elif inspect.isfunction(value):
            yield name, value


def public_methods(class_name, cls):
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        method = getattr(method, "__func__", method)
        is_ours = inspect.isfunction(method) and method.__module__.startswith("rankwise.")
        if is_ours and not name.startswith("_"):
            yield f"{class_name}.{name}", method


def section(doc, title):
    """The lines of a section of a numpydoc docstring."""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", doc, re.M | re.S)
    return match[1] if match else ""


def documented_names(doc):
    text = "".join(section(doc, title) for title in ("Parameters", "Attributes"))
    heads = re.findall(r"^(\*{0,2}\w.*?)(?: : .*)?$", text, re.M)
    return {name.strip(" *") for head in heads for name in head.split(",")}


def is_record(value):
    """A named tuple: its fields are documented as attributes, or in its summary."""
    return inspect.isclass(value) and issubclass(value, tuple)


def parameter_names(value, documented):
    """Names of the parameters; ``**columns`` is documented as such, or by the names in it."""
    for parameter in inspect.signature(value).parameters.values():
        is_typed = parameter.annotation == "Unpack[PairColumns]"
        if is_typed and parameter.name not in documented:
            yield from PairColumns.__annotations__
        elif parameter.name not in ("self", "cls") and not parameter.name.startswith("_"):
            yield parameter.name


@pytest.mark.parametrize("module", MODULES)
def test_every_public_object_has_a_summary_of_one_line(module):
    unclear = []
    for name, value in public_objects(module):
        first = (inspect.getdoc(value) or "").split("\n\n")[0]
        if not first or "\n" in first or len(first) > LONGEST_SUMMARY or first[-1] not in ".:":
            unclear.append(name)
    assert unclear == []


@pytest.mark.parametrize("module", MODULES)
def test_every_parameter_is_documented(module):
    missing = []
    for name, value in public_objects(module):
        if is_record(value):
            continue
        documented = documented_names(inspect.getdoc(value) or "")
        names = set(parameter_names(value, documented))
        missing += [f"{name}({one})" for one in names - documented]
    assert missing == []


@pytest.mark.parametrize("module", MODULES)
def test_every_function_and_method_says_what_it_returns(module):
    missing = []
    for name, value in public_objects(module):
        if inspect.isclass(value):
            continue
        returned = inspect.signature(value).return_annotation
        doc = inspect.getdoc(value) or ""
        if returned not in (None, "None") and not re.search(r"^(Returns|Yields)\n-+$", doc, re.M):
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("module", MODULES)
def test_examples_show_results(module):
    hidden = [
        name
        for name, value in public_objects(module)
        if "array([...])" in (inspect.getdoc(value) or "")
    ]
    assert hidden == []


def test_members_of_auto_ranker_are_listed_by_name():
    text = " ".join(AutoRanker.__doc__.split())
    members = (*CANDIDATE_MEMBERS, *COMPARISON_MEMBERS)
    assert [member.name for member in members if f'"{member.name}"' not in text] == []
