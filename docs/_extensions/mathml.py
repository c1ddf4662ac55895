r"""Mathematics as MathML, by docutils' own converter: no scripts, no fonts, no network.

Every current browser draws MathML. ``\tag{...}`` becomes the number at the right of an equation.
TeX that the converter does not know is a warning, and shown as it is.
"""

from __future__ import annotations

import html
import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
BAR = re.compile('<mo( class="math[a-z]+")?>‖</mo>')  # bars of a norm would grow with the line
TAG = re.compile(r"\\tag\{([^{}]*)\}")


def convert(source, node, as_block):
    """TeX to MathML."""
    try:
        return BAR.sub('<mo stretchy="false">‖</mo>', tex2mathml(source, as_block=as_block))
    except (MathError, IndexError, SyntaxError) as error:
        LOGGER.warning("docutils cannot read %r: %s", source, error, location=node)
        return f"<code>{html.escape(source)}</code>"


def draw_inline(self, node):
    """A formula in a line of text."""
    self.body.append(convert(node.astext(), node, as_block=False))
    raise nodes.SkipNode


def draw_block(self, node):
    """A formula in a line of its own, with its tag."""
    source = node.astext()
    number = TAG.search(source)
    shown = f'<span class="equation-tag">{html.escape(number[1])}</span>' if number else ""
    formula = convert(TAG.sub("", source).strip(), node, as_block=True)
    self.body.append(f'<div class="equation">{formula}{shown}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer; `html_math_renderer` chooses it."""
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
