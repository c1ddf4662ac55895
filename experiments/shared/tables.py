"""Print results as aligned tables."""

__all__ = ["format_table", "print_notes", "print_table"]


def format_table(header, rows, digits=3):
    """An aligned table; a newline in a header cell makes a second header line.

    The first column is text and stands left, the others right. Floats get `digits` decimals,
    None (nothing published or measured) becomes a dash.
    """
    titles = [cell.split("\n") for cell in header]
    n_header_lines = max(map(len, titles))
    padded = [[""] * (n_header_lines - len(title)) + title for title in titles]
    cells = [list(line) for line in zip(*padded, strict=True)]
    cells += [[_format_cell(cell, digits) for cell in row] for row in rows]

    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_join(row, widths) for row in cells]
    total_width = sum(widths) + 2 * (len(widths) - 1)  # two spaces between columns
    lines.insert(n_header_lines, "-" * total_width)
    return "\n".join(lines)


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
    if isinstance(cell, float):
        return f"{cell:.{digits}f}"
    return str(cell)


def _join(row, widths):
    """A line of the table."""
    title, *figures = row
    aligned = [title.ljust(widths[0])]
    aligned += [cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True)]
    return "  ".join(aligned).rstrip()
