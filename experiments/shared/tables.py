"""Print results as aligned tables."""

__all__ = ["format_table", "print_notes", "print_table"]


def format_table(header, rows, digits=3):
    """An aligned table; a newline in a header cell makes a second header line.

    The first column is text and stands left, the others right. Floats get `digits` decimals,
    None (nothing published or measured) becomes a dash.
    """
    titles = [cell.split("\n") for cell in header]
    height = max(map(len, titles))
    padded = [[""] * (height - len(title)) + title for title in titles]
    cells = [list(line) for line in zip(*padded, strict=True)]
    cells += [[_format_cell(cell, digits) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    text = [_join(row, widths) for row in cells]
    text.insert(height, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(text)


def print_table(title, header, rows, digits=3):
    """Print a titled table."""
    print(f"\n{title}\n")
    print(format_table(header, rows, digits))


def print_notes(*notes):
    """Print remarks on a table, one a line."""
    print()
    for note in notes:
        print(f"* {note}")


def _format_cell(cell, digits):
    if cell is None:
        return "–"
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


def _join(row, widths):
    first, *others = row
    right = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
    return "  ".join([first.ljust(widths[0]), *right]).rstrip()
