"""One word for everything that a model file should not contain."""

__all__ = ["OddContent"]


class OddContent(ValueError):
    """What is wrong with a model or its file; `load` and `save` add which one it is."""
