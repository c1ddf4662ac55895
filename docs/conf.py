"""The documentation site; ``make docs`` builds it.

Nothing is fetched: mathematics becomes MathML at build time (`_extensions/mathml.py`), and there
are no links to the inventories of other projects.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes

import rankwise

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "rankwise"
author = "The rankwise developers"
copyright = author
version = release = rankwise.__version__

extensions = [
    "chart_tables",
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
highlight_language = "none"
toc_object_entries_show_parents = "hide"
default_role = "autolink"  # `RankRLS` in a docstring links to its page if it has one

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"(^|[/\\])(?!plot_)[^/\\]*\.py$",
    "within_subsection_order": "gallery_order.StoryOrder",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("rankwise",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "show_memory": False,
    "thumbnail_size": (600, 400),
    "show_signature": False,
    "capture_repr": (),  # what an example shows it prints
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "rankwise"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["rankwise.css"]
html_favicon = "_static/mark.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_search_scorer = str(HERE / "_extensions" / "scorer.js")
html_theme_options = {
    "logo": {
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
        "text": f"rankwise {version}",
    },
    "navigation_with_keys": False,
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_center": ["evidence_link"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
}
html_sidebars = {"index": []}

SECTIONS = {  # pages that live elsewhere, as they are called here
    "../docs/": "",
    "docs/": "",
    "results/": "../benchmarks/results/",
}
PAPERS = re.findall(r"^## (\w+\d\d)$", (HERE / "references.md").read_text(encoding="utf-8"), re.M)


def adapt_included_page(app, path, parent, content):
    """Links of a page that is included from elsewhere, as they read from here; papers linked."""
    for there, here in SECTIONS.items():
        content[0] = content[0].replace(f"]({there}", f"]({here}")
    content[0] += "".join(f"\n[{key}]: references.md#{key.lower()}" for key in PAPERS)


def add_defaults(app, kind, name, obj, options, lines):
    """``alpha : float`` becomes ``alpha : float, default=1.0``, by the signature."""
    try:
        parameters = inspect.signature(obj).parameters
    except (TypeError, ValueError):
        return
    for k, line in enumerate(lines):
        found = re.fullmatch(r"(\w+) : (?!.*(?:default|optional))(.+)", line)
        default = getattr(parameters.get(found[1]), "default", None) if found else None
        if default is not None and default is not inspect.Parameter.empty:
            lines[k] = f"{line}, default={default!r}"


def link_papers(app, kind, name, obj, options, lines):
    """``[RankRLS09]`` in a docstring leads to the paper."""
    keys = "|".join(PAPERS)
    lines[:] = [re.sub(rf"\[({keys})\]", r":doc:`\1 </references>`", line) for line in lines]


def skip_tuple_fields(app, kind, name, obj, skip, options):
    """The fields of a NamedTuple are in its docstring; their own say "Alias for field"."""
    return True if type(obj).__name__ == "_tuplegetter" else skip


def unlink_metrics(app, doctree):
    """A name such as ndcg@10 is no mail address."""
    for link in list(doctree.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(link.children)


def show_dark_pictures(app, doctree):
    """A picture X.png that has a twin X-dark.png is shown in light mode, the twin in dark mode."""
    for image in list(doctree.findall(nodes.image)):
        path = Path(image["uri"])
        if (HERE / "_static" / f"{path.stem}-dark.png").is_file() and "_static" in path.parts:
            twin = image.deepcopy()
            twin["uri"] = image["uri"].replace(".png", "-dark.png")
            twin["classes"].append("only-dark")
            image["classes"].append("only-light")
            image.parent.insert(image.parent.index(image) + 1, twin)


def reach_tables_by_keyboard(app, pagename, templatename, context, doctree):
    """What scrolls can have the focus, so that arrow keys scroll it."""
    if "body" in context:
        body = re.sub(r"<table class=\"(?!field-list)", '<table tabindex="0" class="', context["body"])
        body = body.replace('<div class="equation"', '<div tabindex="0" class="equation"')
        context["body"] = body.replace("<pre>", '<pre tabindex="0">')


def write_example_report(app, error):
    """The report that `report_page.md` links to: what its own code writes."""
    if error is None and app.builder.name == "html":
        page = (HERE / "report_page.md").read_text(encoding="utf-8")
        names: dict[str, object] = {}
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(block, names)
        shutil.copy(names["path"], app.outdir / "example_report.html")


def setup(app):
    """Connect the hooks above."""
    app.connect("include-read", adapt_included_page)
    app.connect("autodoc-process-docstring", add_defaults, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", link_papers, priority=900)  # after numpydoc
    app.connect("autodoc-skip-member", skip_tuple_fields)
    app.connect("doctree-read", unlink_metrics)
    app.connect("doctree-read", show_dark_pictures, priority=400)  # before images are collected
    app.connect("html-page-context", reach_tables_by_keyboard)
    app.connect("build-finished", write_example_report)
