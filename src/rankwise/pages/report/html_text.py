"""Numbers, shares and short paragraphs of a report as HTML."""

from __future__ import annotations

from html import escape

from rankwise.formatting import TextTable


def number_text(value: float) -> str:
    """Three decimals, a minus sign in place of a hyphen, and no −0."""
    text = f"{value:z.3f}"  # z: no minus before 0.000
    return text.replace("-", "−")


def share_text(n: int, total: int) -> str:
    """A share in percent; 0% and 100% only if the share is exactly 0 or 1."""
    share = n / total
    if 0 < share < 0.0005:
        return "less than 0.1%"
    if 0.9995 <= share < 1:
        return "more than 99.9%"
    return f"{share:.1%}"


def hint(text: str) -> str:
    """A paragraph in small type."""
    return f'<p class="hint">{escape(text)}</p>'


def scrolling_table(table: TextTable, element_id: str, label: str) -> str:
    """A table that scrolls sideways on a narrow screen."""
    return (
        f'<div class="scroll" id="{element_id}" tabindex="0" role="region" '
        f'aria-label="{escape(label)}">{table.html()}</div>'
    )
